//! Arguments and results of [`Tensor`](crate::Tensor) that PyO3 treats as any object, and that are more precise in type stubs.

use core::convert::Infallible;

use pyo3::{prelude::*, types::PyTuple};

/// Argument types, with their type hints.
macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident: $hint:expr;)*) => {$(
        $(#[$doc])*
        pub(super) struct $name<'a, 'py>(pub(super) Borrowed<'a, 'py, PyAny>);

        impl<'a, 'py> FromPyObject<'a, 'py> for $name<'a, 'py> {
            type Error = Infallible;

            #[cfg(feature = "stubs")]
            const INPUT_TYPE: pyo3::inspect::PyStaticExpr = $hint;

            fn extract(object: Borrowed<'a, 'py, PyAny>) -> Result<Self, Infallible> {
                Ok(Self(object))
            }
        }
    )*};
}
arguments! {
    /// An object with `__dlpack__` or a buffer.
    Producer: crate::hints::ARRAY;
    /// The index of `tensor[index]`.
    Index: crate::hints::INDEX;
}

/// Result types, with their type hints.
macro_rules! results {
    ($($(#[$doc:meta])* $vis:vis $name:ident: $class:ty, $hint:expr;)*) => {$(
        $(#[$doc])*
        $vis struct $name<'py>(pub(super) Bound<'py, $class>);

        impl<'py> IntoPyObject<'py> for $name<'py> {
            type Target = $class;
            type Output = Bound<'py, $class>;
            type Error = Infallible;

            #[cfg(feature = "stubs")]
            const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr = $hint;

            fn into_pyobject(self, _: Python<'py>) -> Result<Self::Output, Infallible> {
                Ok(self.0)
            }
        }
    )*};
}
results! {
    /// A tuple of integers.
    pub(super) Integers: PyTuple, crate::hints::INTEGERS;
    /// A device: its type and index.
    pub(super) Pair: PyTuple, <(i32, i32) as IntoPyObject<'_>>::OUTPUT_TYPE;
    /// An iterator over tensors.
    pub Tensors: PyAny, pyo3::type_hint_subscript!(
        pyo3::type_hint_identifier!("collections.abc", "Iterator"),
        <crate::Tensor as pyo3::PyTypeInfo>::TYPE_HINT
    );
    /// A NumPy array.
    pub(super) Array: PyAny, crate::hints::NDARRAY;
}

/// The body of methods that exist for type stubs only: evaluating the class attribute replaces them before they can be called.
#[doc(hidden)]
pub fn placeholder<T, R>(_: &Bound<'_, T>) -> PyResult<R> {
    Err(pyo3::exceptions::PySystemError::new_err(
        "the class was made without its class attribute `__dlpack_tensors__`",
    ))
}
