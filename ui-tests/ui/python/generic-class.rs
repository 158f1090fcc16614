use dlpack_pyo3::{DLPack, Element, dlpack_pymethods};

#[derive(DLPack)]
struct Image<T: Element>(Vec<T>);

#[dlpack_pymethods]
#[pyo3::pymethods]
impl<T: Element> Image<T> {
    #[new]
    fn new() -> Self {
        Self(vec![])
    }
}

fn main() {}
