//! What type stubs say of arguments and results; see the feature `stubs`.

use core::marker::PhantomData;

use dlpack_core::{DLPack, DataType};
use pyo3::inspect::{PyClassNameStaticExpr, PyStaticConstant, PyStaticExpr};
use pyo3::{IntoPyObject, prelude::*, type_hint_identifier, type_hint_subscript, type_hint_union};

/// By this the protocol in the stubs is found.
pub(crate) const PRODUCER_ID: &str = "dlpack_pyo3.Producer";

/// Whatever has `__dlpack__`; anything, where a module does not have `Tensor`, under which the protocol stands.
pub(crate) const PRODUCER: PyStaticExpr = PyStaticExpr::PyClass(PyClassNameStaticExpr::new(
    &type_hint_identifier!("typing", "Any"),
    PRODUCER_ID,
));

/// An argument: what has `__dlpack__` or a buffer. NumPy's own stubs give an array of `bool` neither before Python 3.12.
pub(crate) const ARRAY: PyStaticExpr = type_hint_union!(
    PRODUCER,
    type_hint_identifier!("typing_extensions", "Buffer"),
    NDARRAY
);

/// An argument that NumPy converts.
pub(crate) const ARRAY_LIKE: PyStaticExpr = type_hint_identifier!("numpy.typing", "ArrayLike");

/// Results of methods that never run, as stubs show them.
macro_rules! results {
    ($($(#[$doc:meta])* $name:ident: $hint:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl<'py> IntoPyObject<'py> for $name {
            type Target = PyAny;
            type Output = Bound<'py, PyAny>;
            type Error = PyErr;

            const OUTPUT_TYPE: PyStaticExpr = $hint;

            fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
                Ok(py.None().into_bound(py))
            }
        }
    )*};
}

results! {
    /// What `__dlpack__` gives. PyO3 says `types.CapsuleType`, which Python has from 3.13 on.
    Capsule: type_hint_identifier!("typing_extensions", "CapsuleType");
    /// What `__buffer__` gives.
    Memoryview: type_hint_identifier!("builtins", "memoryview");
}

/// A NumPy array over a value: of the value's data type, if its types tell it. `__array__` of a class gives one.
pub struct ArrayOf<T>(PhantomData<fn() -> T>);

impl<'py, T: DLPack> IntoPyObject<'py> for ArrayOf<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    const OUTPUT_TYPE: PyStaticExpr = ndarray_of(T::EXTRAS.facts.dtype());

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(py.None().into_bound(py))
    }
}

macro_rules! arrays {
    ($($dtype:ident: $name:literal;)*) => {
        /// The type of a NumPy array of this data type; of any, if it is known only at run time or is none of NumPy's own.
        const fn ndarray_of(dtype: Option<DataType>) -> PyStaticExpr {
            match dtype {
                $(Some(DataType::$dtype) => type_hint_subscript!(
                    type_hint_identifier!("numpy.typing", "NDArray"),
                    type_hint_identifier!("numpy", $name)
                ),)*
                _ => NDARRAY,
            }
        }
    };
}
arrays! {
    BOOL: "bool_";
    I8: "int8";
    I16: "int16";
    I32: "int32";
    I64: "int64";
    U8: "uint8";
    U16: "uint16";
    U32: "uint32";
    U64: "uint64";
    F16: "float16";
    F32: "float32";
    F64: "float64";
    C64: "complex64";
    C128: "complex128";
}

/// The names of tensors.
pub(crate) const NAMES: PyStaticExpr =
    type_hint_subscript!(TUPLE, type_hint_identifier!("builtins", "str"), ELLIPSIS);

/// What stands between the brackets of a tensor: one of these, or a tuple of them.
pub(crate) const INDEX: PyStaticExpr =
    type_hint_union!(ONE_INDEX, type_hint_subscript!(TUPLE, ONE_INDEX, ELLIPSIS));

const ONE_INDEX: PyStaticExpr = type_hint_union!(
    type_hint_identifier!("typing", "SupportsIndex"),
    type_hint_identifier!("builtins", "slice"),
    type_hint_identifier!("types", "EllipsisType"),
    PyStaticExpr::Constant {
        value: PyStaticConstant::None,
    }
);

/// Extents and strides.
pub(crate) const INTEGERS: PyStaticExpr =
    type_hint_subscript!(TUPLE, type_hint_identifier!("builtins", "int"), ELLIPSIS);

const TUPLE: PyStaticExpr = type_hint_identifier!("builtins", "tuple");

const ELLIPSIS: PyStaticExpr = PyStaticExpr::Constant {
    value: PyStaticConstant::Ellipsis,
};

/// An array of NumPy's, of whatever data type.
pub(crate) const NDARRAY: PyStaticExpr = type_hint_subscript!(
    type_hint_identifier!("numpy.typing", "NDArray"),
    type_hint_identifier!("typing", "Any")
);

/// A library, as an argument.
pub(crate) const LIBRARY: PyStaticExpr = type_hint_union!(
    type_hint_identifier!("builtins", "str"),
    type_hint_identifier!("types", "ModuleType")
);

/// An argument, and a result of its type. PyO3 cannot declare a type variable, so this is a public one of the stub files that type
/// checkers bring along. It is an ordinary type variable, not `typing.Self`.
pub(crate) const SAME_TYPE: PyStaticExpr = type_hint_identifier!("_typeshed", "Self");
