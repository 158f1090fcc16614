//! Vector clocks: what is known to have happened when something begins.
//!
//! Each line of work (a host thread, a stream, a branch of a launched graph) counts its own steps. Its clock holds, for
//! every line, the last step that is finished before the line's next step begins. One step is ordered before another
//! exactly when the other's clock has counted it.

/// A line of work, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Line(pub(crate) usize);

/// The last finished step of every line; a line that is not in it has finished nothing.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Clock(Vec<u64>);

impl Clock {
    pub(crate) fn step(&self, line: Line) -> u64 {
        self.0.get(line.0).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, line: Line, step: u64) {
        if self.0.len() <= line.0 {
            self.0.resize(line.0 + 1, 0);
        }
        self.0[line.0] = step;
    }

    /// Counts one step of `line` on its own clock, and returns the step's number.
    pub(crate) fn tick(&mut self, line: Line) -> u64 {
        let step = self.step(line) + 1;
        self.set(line, step);
        step
    }

    /// Waits for all that `other` knows.
    pub(crate) fn join(&mut self, other: &Self) {
        for (line, &step) in other.0.iter().enumerate() {
            if step > self.step(Line(line)) {
                self.set(Line(line), step);
            }
        }
    }

    /// Whether all that `other` knows is known here.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        (0..other.0.len()).all(|line| self.step(Line(line)) >= other.step(Line(line)))
    }
}
