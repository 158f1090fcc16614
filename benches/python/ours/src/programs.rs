//! Programs as users write them: a loader of frames, an environment, a table of columns.

use dlpack_pyo3::{DLPack, Numpy, Shaped, SharedBuffer, View, dlpack_pymethods};
use pyo3::prelude::*;

/// The sides of a frame.
const FRAME: [usize; 2] = [64, 64];

/// Iterates over frames, each of which is a new array.
#[pyclass]
pub struct Loader {
    left: usize,
}

#[pymethods]
impl Loader {
    #[new]
    fn new(frames: usize) -> Self {
        Self { left: frames }
    }

    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__(&mut self) -> Option<Numpy<Shaped<Vec<f32>, [usize; 2]>>> {
        self.left = self.left.checked_sub(1)?;
        let pixels = vec![self.left as f32; FRAME.iter().product()];
        Some(Numpy::shaped(pixels, FRAME))
    }
}

/// Environments whose observations and rewards are arrays over memory that each step changes.
#[pyclass]
#[derive(DLPack)]
pub struct Environments {
    #[dlpack(tensor(owner))]
    observations: SharedBuffer<[f32; 4]>,
    #[dlpack(tensor(owner))]
    rewards: SharedBuffer<f64>,
}

#[dlpack_pymethods(arrays = "numpy")]
#[pymethods]
impl Environments {
    #[new]
    fn new(count: usize) -> PyResult<Self> {
        Ok(Self {
            observations: SharedBuffer::zeroed(count)?,
            rewards: SharedBuffer::zeroed(count)?,
        })
    }

    fn step(&mut self, actions: View<i64, 1>) {
        for (index, action) in actions.iter().enumerate() {
            let push = action as f32;
            let [x, speed, angle, turn] = self.observations.get(index);
            let state = [x + speed, speed + push, angle + turn, turn - push];
            self.observations.set(index, state);
            self.rewards.set(index, f64::from(push));
        }
    }
}

/// Columns and their names; each column is a new array.
#[pyfunction]
pub fn table(columns: usize, rows: usize) -> Vec<(String, Numpy<Vec<f64>>)> {
    let column = |index| (format!("c{index}"), Numpy(vec![index as f64; rows]));
    (0..columns).map(column).collect()
}
