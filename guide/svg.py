"""Pictures as text: boxes, words and arrows, in the colours of the guide. Narrow enough to be read on a phone."""

from html import escape

WIDTH = 560
INK, PALE, LINE, WHITE = "#1f2933", "#e4e7eb", "#7b8794", "#ffffff"
RED, AMBER, GREEN = "#d64545", "#de911d", "#2f8132"
# One for each row of an array, and for each lane.
HUES = ["#b3d9ff", "#ffd8a8", "#c3e6b5", "#e3c7f0", "#ffc9c9", "#bfe8e6"]


class Picture:
    """What is drawn so far. `text` keeps account of the lowest line, so that the height need not be said."""

    def __init__(self, title, width=WIDTH):
        self.title, self.width, self.bottom, self.parts = title, width, 0, []

    def add(self, low, part):
        self.bottom = max(self.bottom, low)
        self.parts.append(part)

    def box(self, x, y, width, height, fill=WHITE, stroke=LINE, round=4, dash=False):
        more = ' stroke-dasharray="4 3"' if dash else ""
        self.add(
            y + height,
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round}" fill="{fill}" stroke="{stroke}"{more}/>',
        )

    def text(self, x, y, words, size=15, anchor="middle", mono=False, fill=INK, bold=False):
        """`y` is the line that the letters stand on."""
        family = (
            "ui-monospace, Menlo, Consolas, monospace" if mono else "system-ui, Segoe UI, Helvetica, Arial, sans-serif"
        )
        weight = ' font-weight="600"' if bold else ""
        left = x - {"start": 0, "middle": 0.5, "end": 1}[anchor] * self.long(words, size, mono)
        right = left + self.long(words, size, mono)
        assert -1 <= left and right <= self.width + 1, f"{self.title}: {words!r} reaches from {left:g} to {right:g}"
        self.add(
            y + 6,
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" font-family="{family}" fill="{fill}" xml:space="preserve"{weight}>{escape(words, quote=False)}</text>',
        )

    @staticmethod
    def long(words, size, mono):
        """About how long the words are; a bit more than in most fonts."""
        return len(words) * size * (0.61 if mono else 0.53)

    def line(self, points, stroke=LINE, width=1.5, dash=False, head=False):
        more = ' stroke-dasharray="5 4"' if dash else ""
        more += ' marker-end="url(#head)"' if head else ""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        low = max(y for _, y in points)
        self.add(low, f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="{width}"{more}/>')

    def arrow(self, *points, stroke=LINE, dash=False):
        self.line(points, stroke=stroke, dash=dash, head=True)

    def dot(self, x, y, radius, fill, stroke=LINE):
        self.add(y + radius, f'<circle cx="{x:g}" cy="{y:g}" r="{radius}" fill="{fill}" stroke="{stroke}"/>')

    def cells(self, x, y, words, width=36, height=32, fills=None, size=14):
        """A row of numbered cells."""
        for index, word in enumerate(words):
            fill = fills[index] if fills else WHITE
            self.box(x + index * width, y, width, height, fill, round=0, dash=fill == WHITE)
            self.text(
                x + (index + 0.5) * width,
                y + height / 2 + 5,
                str(word),
                size,
                mono=True,
                fill=INK if fill != WHITE else LINE,
            )

    def __str__(self):
        height = self.bottom + 12
        head = (
            '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">'
            f'<path d="M0 0 L8 4 L0 8 z" fill="{LINE}"/></marker>'
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {height:g}" width="{self.width:g}" height="{height:g}" role="img">',
                f"<title>{escape(self.title, quote=False)}</title>",
                f"<defs>{head}</defs>",
                f'<rect width="100%" height="100%" fill="{WHITE}"/>',
                *self.parts,
                "</svg>\n",
            ]
        )
