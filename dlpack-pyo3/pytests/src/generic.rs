//! Python classes of a generic struct: one newtype for each element, made by a macro.

use dlpack_pyo3::{DLPack, Element, dlpack_pymethods};
use pyo3::prelude::*;

use crate::alive::Alive;

/// Rows of equal length.
#[derive(DLPack)]
#[dlpack(shape = [_, columns])]
struct Grid<T: Element> {
    #[dlpack(data)]
    items: Vec<T>,
    columns: usize,
    _alive: Alive,
}

macro_rules! grids {
    ($($(#[$doc:meta])* $name:ident: $element:ty;)*) => {$(
        $(#[$doc])*
        #[pyclass(frozen, module = "dlpack_probe")]
        #[derive(DLPack)]
        pub(crate) struct $name(Grid<$element>);

        #[dlpack_pymethods]
        #[pymethods]
        impl $name {
            #[new]
            fn new(items: Vec<$element>, columns: usize) -> Self {
                Self(Grid { items, columns, _alive: Alive::new() })
            }
        }
    )*};
}

grids! {
    /// A grid of `float64`.
    Floats: f64;
    /// A grid of `int32`.
    Ints: i32;
}
