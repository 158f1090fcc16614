//! What a class declares, by macro or by hand, and what the derive finds missing.
//!
//! PyO3 evaluates the class attribute while it makes a class, and that puts everything else on it:
//!
//! ```text
//! #[dlpack_pymethods] ──▶ const __dlpack_c_exchange_api__: Protocol<T>
//!                                          │ evaluated
//!                       Vtable::of::<T>() ─┴─▶ methods, exchange table, an attribute for each tensor
//! ```
//!
//! | file | job |
//! |---|---|
//! | `tensors` | attributes for the several tensors of an object |
//! | `tensor` | [`Tensor`], the class for any tensor |
//! | `index` | what stands between its brackets |

mod index;
pub(crate) mod tensor;
pub(crate) mod tensors;

use core::marker::PhantomData;

use pyo3::types::{PyCapsule, PyTuple, PyType};
use pyo3::{PyClass, prelude::*};

use crate::exchange::{self, Imports, ToPyObject, lookup::OwnTable};
use crate::{class::tensor::Tensor, class::tensors::ExportsTensors};
use crate::{export::method, vtable::Exports};

/// The methods of a class, as a class attribute: the form of `#[dlpack_pymethods]` without a macro.
///
/// PyO3 evaluates class attributes while it makes the class. Evaluating this one puts `__dlpack__` and
/// `__dlpack_device__` on the class; its value is DLPack's C exchange table.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{DLPack, Protocol};
/// use pyo3::prelude::*;
///
/// #[pyclass(frozen)]
/// #[derive(DLPack)]
/// struct Samples(Vec<f32>);
///
/// #[pymethods]
/// impl Samples {
///     #[classattr]
///     const __dlpack_c_exchange_api__: Protocol<Samples> = Protocol::new();
/// }
/// ```
pub struct Protocol<T> {
    tensors: Option<Install>,
    import: Option<ToPyObject>,
    info: bool,
    class: PhantomData<fn() -> T>,
}

/// How a class gets attributes for its tensors.
type Install = fn(&Bound<'_, PyType>) -> PyResult<()>;

impl<T> Protocol<T> {
    /// The methods of a class that is a tensor.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "only ever stands in a constant")]
    pub const fn new() -> Self {
        Self {
            tensors: None,
            import: None,
            info: false,
            class: PhantomData,
        }
    }

    /// What `#[dlpack_pymethods]` found out about the class: how it gets attributes, and how its objects are made.
    #[doc(hidden)]
    #[must_use]
    pub const fn with(mut tensors: Self, import: Self) -> Self {
        tensors.import = import.import;
        tensors
    }

    /// An attribute for each tensor of [`DLPackTensors`](crate::DLPackTensors) as well.
    #[must_use]
    pub const fn tensors(mut self) -> Self
    where
        T: ExportsTensors,
    {
        self.tensors = Some(tensors::install::<T>);
        self
    }

    /// Tensors that come in through the exchange table become objects of this class, not of [`Tensor`](crate::Tensor).
    #[must_use]
    pub const fn importing(mut self) -> Self
    where
        T: Imports,
    {
        self.import = Some(exchange::to_object_of::<T, Tensor>);
        self
    }

    /// The method `__dlpack_info__` and the keyword `version` of the draft from before DLPack 1.0.
    #[must_use]
    pub const fn info(mut self) -> Self {
        self.info = true;
        self
    }
}

impl<T> Clone for Protocol<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Protocol<T> {}

impl<'py, T: Exports> IntoPyObject<'py> for Protocol<T> {
    type Target = PyCapsule;
    type Output = Bound<'py, PyCapsule>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        // PyO3 is in the middle of making this class: the object is there, its attributes come next.
        let methods = method::Functions::of::<T>(self.info);
        let import = self.import.unwrap_or(exchange::to_plain_object::<Tensor>);
        let table = OwnTable::of::<T>(import);
        install(&T::type_object(py), &methods, table, self.tensors)
    }
}

#[inline(never)]
fn install<'py>(
    class: &Bound<'py, PyType>,
    methods: &method::Functions,
    table: OwnTable,
    tensors: Option<Install>,
) -> PyResult<Bound<'py, PyCapsule>> {
    methods.install(class)?;
    if let Some(install) = tensors {
        install(class)?;
    }
    table.install(class)
}

/// The attributes of a class that has tensors and is none itself: the form of
/// `#[dlpack_pymethods(tensors)]` without a macro.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{DLPack, TensorNames};
/// use pyo3::prelude::*;
///
/// #[pyclass(frozen)]
/// #[derive(DLPack)]
/// struct Batch {
///     #[dlpack(tensor)]
///     actions: Vec<i64>,
///     #[dlpack(tensor)]
///     rewards: Vec<f32>,
/// }
///
/// #[pymethods]
/// impl Batch {
///     #[classattr]
///     const __dlpack_tensors__: TensorNames<Batch> = TensorNames::new();
/// }
/// ```
pub struct TensorNames<T>(PhantomData<fn() -> T>);

impl<T> TensorNames<T> {
    /// An attribute for each tensor, and the tuple of their names.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "only ever stands in a constant")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Clone for TensorNames<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TensorNames<T> {}

impl<'py, T: ExportsTensors> IntoPyObject<'py> for TensorNames<T> {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        tensors::install::<T>(&T::type_object(py))?;
        PyTuple::new(py, T::NAMES)
    }
}

/// Asks a type what it can do besides. Inherent constants win over those of the trait below, so the
/// answer is right wherever the type is known.
#[doc(hidden)]
pub struct Class<T>(PhantomData<T>);

impl<T: ExportsTensors> Class<T> {
    pub const TENSORS: Protocol<T> = Protocol::new().tensors();
}

impl<T: Imports> Class<T> {
    pub const IMPORT: Protocol<T> = Protocol::new().importing();
}

impl<T: PyClass> Class<T> {
    pub const IS: IsClass = IsClass;
}

/// What is true of a type otherwise: it has no tensors besides, is not made of tensors, and is no class.
#[doc(hidden)]
pub trait Otherwise {
    type Class;
    const TENSORS: Protocol<Self::Class> = Protocol::new();
    const IMPORT: Protocol<Self::Class> = Protocol::new();
    const IS: NotClass = NotClass;
}

impl<T> Otherwise for Class<T> {
    type Class = T;
}

#[doc(hidden)]
pub struct IsClass;

#[doc(hidden)]
pub struct NotClass;

/// What a type has under the name of an attribute if nobody put one there.
#[doc(hidden)]
#[expect(non_upper_case_globals, reason = "the names that Python wants")]
pub trait Forgotten {
    const __dlpack_c_exchange_api__: Missing = Missing;
    const __dlpack_tensors__: Missing = Missing;
}

impl<T: ?Sized> Forgotten for T {}

#[doc(hidden)]
pub struct Missing;

/// That a class `T` has its methods; of a type that is no class, nothing is asked.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{T}` derives `DLPack`, but its methods are not added to the Python class",
    label = "no `#[dlpack_pymethods]` for this class",
    note = "write `#[dlpack_pymethods]` on the line above the `#[pymethods]` of this type",
    note = "or, if it has none: `#[dlpack_pymethods] #[pymethods] impl {T} {{}}`",
    note = "a class that only has `tensor` or `columns` keys takes `#[dlpack_pymethods(tensors)]`"
)]
pub trait Attached<Kind, T: ?Sized> {}

impl<A, T: ?Sized> Attached<NotClass, T> for A {}
impl<T> Attached<IsClass, T> for Protocol<T> {}
impl<T> Attached<IsClass, T> for TensorNames<T> {}

#[doc(hidden)]
pub fn attached<Kind, A: Attached<Kind, T>, T: ?Sized>(_: Kind, _: A) {}

/// Stands in the body of the methods that PyO3 sees: evaluating the class attribute replaced them
/// before anybody could call one.
#[doc(hidden)]
pub fn placeholder<T, R>(_: &Bound<'_, T>) -> PyResult<R> {
    Err(pyo3::exceptions::PySystemError::new_err(
        "the class was made without its class attribute `__dlpack_c_exchange_api__`",
    ))
}
