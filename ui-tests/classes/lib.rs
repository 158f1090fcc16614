//! Right classes, which `#[dlpack_pymethods]` must take: every place, condition and name around it that users have.
//!
//! Only checked: to run, they would have to be a module of Python. What this crate denies, the expansions are
//! silent under; what it forbids, they do without.
#![forbid(unsafe_code)]
#![deny(
    warnings,
    missing_docs,
    deprecated,
    unused,
    nonstandard_style,
    unused_qualifications,
    unused_lifetimes,
    single_use_lifetimes,
    unreachable_pub,
    elided_lifetimes_in_paths,
    clippy::pedantic,
    clippy::nursery,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block
)]

use dlpack_pyo3::{
    DLPack, FromDLPack, Layout, Protocol, SharedBuffer, TensorNames, dlpack_pymethods,
};
use pyo3::prelude::*;

/// With methods of its own, behind an attribute inside the block.
#[pyclass(frozen)]
#[derive(DLPack)]
pub struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 3],
}

#[dlpack_pymethods]
#[pymethods]
impl Image {
    #![allow(
        clippy::missing_const_for_fn,
        reason = "Python's methods are no constants"
    )]

    #[new]
    fn new(height: usize, width: usize) -> Self {
        let dims = [height, width, 3];
        Self {
            pixels: vec![0.0; height * width * 3],
            dims,
        }
    }

    #[getter]
    fn height(&self) -> usize {
        self.dims[0]
    }
}

/// With every option, and a tensor besides.
#[pyclass]
#[derive(DLPack, FromDLPack)]
pub struct Signal {
    #[dlpack(data)]
    samples: Vec<f32>,
}

#[dlpack_pymethods(info)]
#[pymethods]
impl Signal {
    fn push(&mut self, sample: f32) {
        self.samples.push(sample);
    }
}

/// A tensor that has another.
#[pyclass]
#[derive(DLPack)]
pub struct Masked {
    #[dlpack(data)]
    items: Vec<f32>,
    #[dlpack(tensor)]
    mask: Vec<bool>,
}

#[dlpack_pymethods(crate = dlpack_pyo3)]
#[pymethods]
impl Masked {}

use dlpack_pyo3 as renamed;

/// By a path that is longer than it must be.
#[pyclass]
#[derive(DLPack)]
#[dlpack(crate = crate::renamed)]
pub struct ByLongPath {
    #[dlpack(data)]
    items: Vec<f32>,
}

#[dlpack_pymethods(crate = crate::renamed)]
#[pymethods]
impl ByLongPath {
    #[getter]
    fn len(&self) -> usize {
        self.items.len()
    }
}

/// Has tensors and is none.
#[pyclass]
#[derive(DLPack)]
pub struct Batch {
    #[dlpack(tensor)]
    actions: Vec<i64>,
    #[dlpack(tensor)]
    rewards: Vec<f32>,
}

#[dlpack_pymethods]
#[pymethods]
impl Batch {
    #[allow(non_snake_case, reason = "Python's own name")]
    fn __len__(&self) -> usize {
        self.actions.len().min(self.rewards.len())
    }
}

/// Shape and strides in one field.
#[pyclass(frozen)]
#[derive(DLPack)]
pub struct Frame {
    #[dlpack(data)]
    pixels: SharedBuffer<f32>,
    #[dlpack(shape, strides)]
    layout: Layout<2>,
}

#[dlpack_pymethods]
#[pymethods]
impl Frame {}

/// Delegates to the variant.
#[pyclass(frozen)]
#[derive(DLPack)]
pub enum Audio {
    /// Floats.
    Float {
        /// The samples.
        #[dlpack(data)]
        samples: Samples,
    },
}

/// What a variant holds.
#[pyclass(frozen, from_py_object)]
#[derive(DLPack, Clone)]
pub struct Samples(SharedBuffer<f32>);

#[dlpack_pymethods]
#[pymethods]
impl Samples {}

#[dlpack_pymethods]
#[pymethods]
impl Audio {}

/// Without a macro for the methods.
#[pyclass(frozen)]
#[derive(DLPack)]
pub struct ByHand(Vec<f32>);

#[pymethods]
impl ByHand {
    /// The methods.
    #[classattr]
    #[allow(non_upper_case_globals, reason = "Python's own name")]
    pub const __dlpack_c_exchange_api__: Protocol<Self> = Protocol::new().info();
}

/// The same for a class that only has tensors.
#[pyclass(frozen)]
#[derive(DLPack)]
pub struct TensorsByHand {
    #[dlpack(tensor)]
    items: Vec<f32>,
}

#[pymethods]
impl TensorsByHand {
    /// The attributes.
    #[classattr]
    #[allow(non_upper_case_globals, reason = "Python's own name")]
    pub const __dlpack_tensors__: TensorNames<Self> = TensorNames::new();
}

/// No class at all: nothing is asked of it.
#[derive(DLPack)]
pub struct Plain(Vec<f32>);

/// Nor of a type with parameters.
#[derive(DLPack)]
pub struct Generic<T: dlpack_pyo3::Element>(Vec<T>);

/// A class on some targets only; the other case is [`Never`].
#[cfg_attr(all(), pyclass)]
#[derive(DLPack)]
pub struct Always(Vec<f32>);

#[cfg_attr(all(), dlpack_pymethods)]
#[cfg_attr(all(), pyo3::pymethods)]
impl Always {}

/// See [`Always`].
#[cfg_attr(any(), pyclass)]
#[derive(DLPack)]
pub struct Never(Vec<f32>);

#[cfg_attr(any(), dlpack_pymethods, pymethods)]
impl Never {
    /// Reads it.
    #[must_use]
    pub const fn items(&self) -> &Vec<f32> {
        &self.0
    }
}

/// Attributes between the two.
#[pyclass]
#[derive(DLPack)]
pub struct Between(Vec<f32>);

#[dlpack_pymethods]
#[cfg(not(any()))]
#[doc(hidden)]
#[pymethods]
impl Between {}

/// A class of another module, and names of the prelude that mean something else there.
pub mod inner {
    #![allow(dead_code, reason = "only the names matter")]

    pub(crate) struct Option;
    pub(crate) struct Result;
    pub(crate) struct Vec;
    pub(crate) struct Bound;
    pub(crate) struct PyCapsule;
    mod core {}
    mod std {}
    mod pyo3 {}
    mod dlpack_pyo3 {}

    /// Far away.
    #[::pyo3::pyclass(frozen)]
    #[derive(::dlpack_pyo3::DLPack)]
    pub struct Far(::std::vec::Vec<f32>);

    /// Nearer.
    #[::pyo3::pyclass(frozen)]
    #[derive(::dlpack_pyo3::DLPack)]
    pub struct Near(::std::vec::Vec<f32>);

    #[::dlpack_pyo3::dlpack_pymethods(info)]
    #[::pyo3::pymethods]
    impl Near {}
}

#[dlpack_pymethods]
#[pymethods]
impl inner::Far {}

macro_rules! class {
    (struct $name:ident($element:ty) { $($item:item)* }) => {
        /// Made by a macro, one for each element type.
        #[pyclass(frozen)]
        #[derive(DLPack)]
        pub struct $name(Vec<$element>);

        #[dlpack_pymethods]
        #[pymethods]
        impl $name {
            $($item)*
        }
    };
    (methods of $class:ty) => {
        #[dlpack_pymethods]
        #[pymethods]
        impl $class {}
    };
    (as it is: $item:item) => {
        #[dlpack_pymethods]
        #[pymethods]
        $item
    };
}

class!(
    struct ListF32(f32) {}
);
class!(
    struct ListF64(f64) {}
);

/// Its methods come from a macro, by its type.
#[pyclass(frozen)]
#[derive(DLPack)]
pub struct ByType(Vec<f32>);

class!(methods of ByType);

/// Its methods come from a macro, as a whole.
#[pyclass(frozen)]
#[derive(DLPack)]
pub struct ByItem(Vec<f32>);

class!(as it is: impl ByItem {
    #[new]
    const fn new() -> Self {
        Self(Vec::new())
    }
});

/// With a getter that is not compiled: it hides no tensor.
#[pyclass(frozen)]
#[derive(DLPack)]
pub struct Conditional {
    #[dlpack(tensor)]
    values: Vec<f32>,
}

#[dlpack_pymethods]
#[pymethods(crate = "pyo3")]
impl Conditional {
    #[cfg(any())]
    #[getter]
    fn values(&self) -> usize {
        self.values.len()
    }
}

/// Expansions for public types cause no warning of a lint that is silent in crates that nothing can import.
pub mod public_types {
    #![deny(clippy::missing_inline_in_public_items, missing_docs)]

    use dlpack_pyo3::dlpack_core::{Element, Record};
    use dlpack_pyo3::{DLPack, FromDLPack};

    /// A point.
    #[derive(Element, Record)]
    #[repr(C)]
    pub struct Point {
        /// Rightwards.
        pub left: f32,
        /// Downwards.
        pub top: f32,
    }

    /// An image.
    #[derive(DLPack, FromDLPack)]
    #[dlpack(shape = [rows, 3, _], order = "F")]
    pub struct Image {
        #[dlpack(data, writable)]
        values: Vec<f32>,
        rows: usize,
    }

    /// One or the other.
    #[derive(DLPack, FromDLPack)]
    pub enum Either {
        /// Bytes.
        Bytes(Vec<u8>),
        /// Floats.
        Floats(Vec<f32>),
    }

    /// Several.
    #[derive(DLPack)]
    pub struct Several {
        #[dlpack(tensor, columns)]
        points: Vec<Point>,
        #[dlpack(tensor(shape = [2, _]))]
        values: Vec<f32>,
    }
}
