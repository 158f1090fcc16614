//! Classes as a user writes them: structs with a derive and an attribute, and one line of `unsafe`, which maps a file.
#![expect(
    clippy::cast_possible_truncation,
    reason = "what is drawn and played is rounded"
)]

mod batch;
mod cart_pole;
mod image;
mod point_cloud;
mod recording;
mod samples;
mod trace;

/// What `import dlpack_showcase` gets from Rust.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::cart_pole::CartPole;
    #[pymodule_export]
    use crate::image::{Image, brightness, mirrored};
    #[pymodule_export]
    use crate::point_cloud::PointCloud;
    #[pymodule_export]
    use crate::recording::Recording;
    #[pymodule_export]
    use crate::samples::Samples;
    #[pymodule_export]
    use crate::trace::Trace;
    #[pymodule_export]
    use dlpack_pyo3::Tensor;

    /// What an object really exports, as text.
    #[pyfunction]
    fn inspect(obj: &Bound<'_, PyAny>) -> PyResult<String> {
        dlpack_pyo3::inspect(obj)
    }
}
