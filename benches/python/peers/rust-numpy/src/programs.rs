//! The programs of `ours/src/programs.rs`, as rust-numpy's documentation writes them.

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadwriteArray1,
    PyReadwriteArray2, ndarray::Array2,
};
use pyo3::prelude::*;

const FRAME: (usize, usize) = (64, 64);

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

    fn __next__<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyArray2<f32>>> {
        self.left = self.left.checked_sub(1)?;
        Some(Array2::from_elem(FRAME, self.left as f32).into_pyarray(py))
    }
}

#[pyclass]
pub struct Environments {
    #[pyo3(get)]
    observations: Py<PyArray2<f32>>,
    #[pyo3(get)]
    rewards: Py<PyArray1<f64>>,
}

#[pymethods]
impl Environments {
    #[new]
    fn new(py: Python<'_>, count: usize) -> Self {
        Self {
            observations: PyArray2::zeros(py, [count, 4], false).unbind(),
            rewards: PyArray1::zeros(py, [count], false).unbind(),
        }
    }

    fn step(&self, py: Python<'_>, actions: PyReadonlyArray1<'_, i64>) {
        let mut observations: PyReadwriteArray2<'_, f32> = self.observations.bind(py).readwrite();
        let mut rewards: PyReadwriteArray1<'_, f64> = self.rewards.bind(py).readwrite();
        let mut observations = observations.as_array_mut();
        let rewards = rewards.as_array_mut();
        for ((mut row, reward), &action) in observations
            .rows_mut()
            .into_iter()
            .zip(rewards)
            .zip(actions.as_array())
        {
            let push = action as f32;
            let [x, speed, angle, turn] = [row[0], row[1], row[2], row[3]];
            (row[0], row[1]) = (x + speed, speed + push);
            (row[2], row[3]) = (angle + turn, turn - push);
            *reward = f64::from(push);
        }
    }
}

#[pyfunction]
pub fn table(
    py: Python<'_>,
    columns: usize,
    rows: usize,
) -> Vec<(String, Bound<'_, PyArray1<f64>>)> {
    let column = |index| {
        (
            format!("c{index}"),
            vec![index as f64; rows].into_pyarray(py),
        )
    };
    (0..columns).map(column).collect()
}
