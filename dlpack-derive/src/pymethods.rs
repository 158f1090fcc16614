//! `#[dlpack_pymethods]`: what a class gets beside the methods that its author wrote.

pub(crate) mod block;
pub(crate) mod methods;
