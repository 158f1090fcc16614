//! Views of the bytes of any array, views that are returned, and a class whose data is a tensor itself.

use dlpack_pyo3::view::Promise;
use dlpack_pyo3::{
    AsBytes, DLPack, FromDLPack, Imported, View, ViewDyn, ViewMut, ViewMutDyn, dlpack_pymethods,
};
use pyo3::prelude::*;

/// The functions below hold the GIL and call no Python.
pub(crate) struct Undisturbed;
// SAFETY: the functions below hold the GIL and call no Python.
#[expect(unsafe_code, reason = "as in a user's crate")]
unsafe impl Promise for Undisturbed {}

/// The bytes of an array, read through a view.
#[pyfunction]
pub(crate) fn bytes_of(data: View<u8, 1, AsBytes>) -> PyResult<Vec<u8>> {
    Ok(data.to_vec()?)
}

/// Reverses the bytes of an array through a slice.
#[pyfunction]
pub(crate) fn reverse_bytes(mut data: ViewMut<u8, 1, (AsBytes, Undisturbed)>) -> PyResult<()> {
    data.as_mut_slice()?.reverse();
    Ok(())
}

/// Copies bytes of one array to another.
#[pyfunction]
pub(crate) fn copy_bytes(
    from: View<u8, 1, AsBytes>,
    mut to: ViewMut<u8, 1, AsBytes>,
) -> PyResult<()> {
    Ok(to.copy_from(&from)?)
}

/// An array of one data type, or the bytes of an array of any other one.
#[derive(FromDLPack)]
pub(crate) enum Packet {
    Single(View<f32, 1>),
    Bytes(View<u8, 1, AsBytes>),
}

/// The variant for an array, and its length.
#[pyfunction]
pub(crate) fn packet(data: Imported<Packet>) -> (&'static str, usize) {
    match data.0 {
        Packet::Single(samples) => ("single", samples.len()),
        Packet::Bytes(bytes) => ("bytes", bytes.len()),
    }
}

/// The view of an argument, as a result.
#[pyfunction]
pub(crate) fn give_view(data: View<f32, 1>) -> View<f32, 1> {
    data
}

type OtherViews = (
    ViewDyn<f32>,
    ViewMut<f32, 1, Undisturbed>,
    ViewMutDyn<f32>,
    View<u8, 1, AsBytes>,
);

/// The other kinds of views, as results.
#[pyfunction]
pub(crate) fn give_views(
    any: ViewDyn<f32>,
    written: ViewMut<f32, 1, Undisturbed>,
    any_written: ViewMutDyn<f32>,
    bytes: View<u8, 1, AsBytes>,
) -> OtherViews {
    (any, written, any_written, bytes)
}

#[derive(DLPack)]
#[dlpack(shape = [2, 2])]
struct Easel {
    #[dlpack(data, writable)]
    paint: Vec<u8>,
}

/// An image with a title: the tensor is that of the field.
#[pyclass]
#[derive(DLPack)]
pub(crate) struct Titled {
    #[dlpack(data)]
    easel: Easel,
    title: String,
}

#[dlpack_pymethods]
#[pymethods]
impl Titled {
    #[new]
    fn new() -> Self {
        let paint = vec![1, 2, 3, 4];
        Self {
            easel: Easel { paint },
            title: "Easel".to_owned(),
        }
    }

    fn title(&self) -> &str {
        &self.title
    }
}
