//! `dlpack_gpu`: producers and a consumer on a GPU, for `run.py`.

mod arguments;
mod device;
mod graph;
mod kernels;
mod producers;
mod queue;
mod reading;

/// Producers and a consumer on a GPU.
#[pyo3::pymodule(gil_used = false)]
mod dlpack_gpu {
    #[pymodule_export]
    use crate::arguments::{fill, read};
    #[pymodule_export]
    use crate::device::describe;
    #[pymodule_export]
    use crate::graph::Graph;
    #[pymodule_export]
    use crate::kernels::faults;
    #[pymodule_export]
    use crate::producers::{
        Immediate, Managed, Pinned, Prod, Rocm, captured, collect, collect_in_background,
        release_captured, retained,
    };
    #[pymodule_export]
    use crate::queue::Stream;
    #[pymodule_export]
    use crate::reading::Reading;
}
