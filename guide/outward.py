"""A preprocessor of mdBook: links to files of the repository lead to where that is published, and sessions of Python
are highlighted as such, so that a traceback is not coloured as a program.

In the sources they are relative, so that they work in a checkout and `tests` can follow them. As long as `Cargo.toml` names
no repository, the book shows their words alone.
"""

import json
import re
import sys
from pathlib import Path

MANIFEST = (Path(__file__).parent.parent / "Cargo.toml").read_text()


def outward(text):
    found = re.search(r'^repository = "([^"]+)"', MANIFEST, re.M)
    target = rf"[\1]({found[1]}/blob/main/\2)" if found else r"\1"
    text = re.sub(r"^```python\n>>>", "```python-repl\n>>>", text, flags=re.M)
    return re.sub(r"\[([^]]+)\]\(\.\./\.\./([^)]+)\)", target, text)


def chapters(items):
    for item in items:
        if "Chapter" in item:
            item["Chapter"]["content"] = outward(item["Chapter"]["content"])
            chapters(item["Chapter"]["sub_items"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0)
    _, book = json.load(sys.stdin)
    chapters(book.get("items") or book.get("sections"))
    json.dump(book, sys.stdout)
