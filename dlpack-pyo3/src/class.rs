//! What a class declares, by macro or by hand, and the compile errors for what it does not.
//!
//! PyO3 evaluates class attributes while it creates a class. Evaluating ours defines everything else on the class:
//!
//! ```text
//! #[dlpack_pymethods] ──▶ const __dlpack_tensors__: Attributes<T>
//!                                          │ evaluated
//!                       Vtable::of::<T>() ─┴─▶ methods, exchange table, an attribute for each tensor
//! ```
//!
//! | file | job |
//! |---|---|
//! | `array`, `arrays` | `__array__`, for NumPy; attributes as arrays of a library |
//! | `buffer` | Python's buffer protocol: fills buffers over an object's data |
//! | `tensors` | attributes for the tensors of an object |
//! | `tensor`, `contents` | [`Tensor`], the class for any tensor; what it holds: a tensor, or a slice of another one |
//! | `plain` | the class of objects that C code creates in a module without `Tensor` |
//! | `iterable` | `__iter__` and `__len__`, for classes that declare them |
//! | `hinted` | arguments and results of `Tensor` that are precise in type stubs only |
//! | `index` | parses the index of `tensor[index]` |
//! | `numbers` | the elements of a `Tensor` as Python numbers |
//! | `pickle` | reduces and restores objects for `pickle` and `copy` |
//! | `producer` | for type stubs: a protocol class for objects with `__dlpack__` |

mod array;
pub(crate) mod arrays;
mod buffer;
mod contents;
pub(crate) mod hinted;
mod index;
mod iterable;
mod numbers;
pub(crate) mod pickle;
mod plain;
#[cfg(feature = "stubs")]
mod producer;
pub(crate) mod tensor;
pub(crate) mod tensors;

use core::ffi::{CStr, c_int};
use core::marker::PhantomData;

use pyo3::pyclass::boolean_struct::False;
use pyo3::types::{PyCapsule, PyTuple, PyType};
use pyo3::{PyClass, ffi, prelude::*};
#[cfg(feature = "stubs")]
use {crate::hints, pyo3::inspect::PyStaticExpr};

use crate::class::pickle::{Pickles, Restore, restore_object};
use crate::exchange::{self, Imports, ToPyObject, lookup::OwnTable};
use crate::{class::plain::PlainTensor, class::tensors::ExportsTensors};
use crate::{export::method, vtable::Exports};

/// The methods of a class, as a class attribute: what `#[dlpack_pymethods]` defines, without a macro.
///
/// PyO3 evaluates class attributes while it creates the class. Evaluating this one defines `__dlpack__` and `__dlpack_device__`
/// on the class; its value is DLPack's C exchange table.
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
    parts: Parts,
    class: PhantomData<fn() -> T>,
}

impl<T> Protocol<T> {
    /// The methods of a class that is a tensor.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "only used in constants")]
    pub const fn new() -> Self {
        Self {
            parts: Parts::NONE,
            class: PhantomData,
        }
    }

    /// An attribute for each tensor of [`DLPackTensors`](crate::DLPackTensors) as well.
    #[must_use]
    pub const fn tensors(mut self) -> Self
    where
        T: ExportsTensors,
    {
        self.parts.tensors = Some(tensors::define_tensor_attributes::<T>);
        self
    }

    /// Tensors imported through the exchange table become objects of this class instead of [`Tensor`](crate::Tensor).
    #[must_use]
    pub const fn importing(mut self) -> Self
    where
        T: Imports,
    {
        self.parts.import = Some(exchange::to_object_of::<T, PlainTensor>);
        self
    }

    /// `__iter__` and `__len__`, over the first axis.
    #[must_use]
    pub const fn iterable(mut self) -> Self {
        self.parts.iterable = Some(iterable::define_iteration_methods);
        self
    }

    /// Attributes of the class that are replaced, as in [`Attributes::over`].
    #[must_use]
    pub(crate) const fn over(mut self, names: &'static [&'static str]) -> Self {
        self.parts.over = names;
        self
    }

    /// The method `__dlpack_info__` and the keyword `version` of the draft from before DLPack 1.0.
    #[must_use]
    pub const fn info(mut self) -> Self {
        self.parts.info = true;
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

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: PyStaticExpr = hints::Capsule::OUTPUT_TYPE;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        // PyO3 is creating this class: the type object exists, and its attributes are set next.
        let class = T::type_object(py);
        if let Some(install) = self.parts.tensors {
            class.setattr("__dlpack_tensors__", install(&class, &self.parts)?)?;
        }
        define_tensor_methods::<T>(&class, &self.parts)
    }
}

/// What a class declares.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Parts {
    tensor: Option<DefineMethods>,
    tensors: Option<DefineAttributes>,
    import: Option<ToPyObject>,
    info: bool,
    iterable: Option<DefineIteration>,
    /// The library of the arrays that the attributes return.
    arrays: Option<&'static str>,
    /// Attributes that are replaced: placeholders defined with PyO3, for type stubs.
    over: &'static [&'static str],
}

/// Defines the methods of a class that is a tensor, and returns its exchange table.
type DefineMethods = for<'py> fn(&Bound<'py, PyType>, &Parts) -> PyResult<Bound<'py, PyCapsule>>;

/// Defines `__iter__` and `__len__`. A module links the code only if a class declares it.
type DefineIteration = fn(&Bound<'_, PyType>, &[&str]) -> PyResult<()>;

/// Defines an attribute for each tensor of a class, and returns their names.
type DefineAttributes = for<'py> fn(&Bound<'py, PyType>, &Parts) -> PyResult<Bound<'py, PyTuple>>;

impl Parts {
    const NONE: Self = Self {
        tensor: None,
        tensors: None,
        import: None,
        info: false,
        iterable: None,
        arrays: None,
        over: &[],
    };

    #[inline(never)]
    fn define_attributes<'py>(&self, class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyTuple>> {
        if let Some(methods) = self.tensor {
            class.setattr("__dlpack_c_exchange_api__", methods(class, self)?)?;
        }
        match self.tensors {
            Some(install) => install(class, self),
            None => Ok(PyTuple::empty(class.py())),
        }
    }
}

fn define_tensor_methods<'py, T: Exports>(
    class: &Bound<'py, PyType>,
    parts: &Parts,
) -> PyResult<Bound<'py, PyCapsule>> {
    let methods = method::MethodFunctions::for_class::<T>(parts.info);
    let plain = exchange::to_plain_object::<PlainTensor>;
    let import = parts.import.unwrap_or(plain);
    let buffers = buffer::BufferFunctions::for_tensor::<T>();
    let table = OwnTable::for_class::<T>(import);
    define_all(class, &methods, &buffers, table, parts)
}

#[inline(never)]
fn define_all<'py>(
    class: &Bound<'py, PyType>,
    methods: &method::MethodFunctions,
    buffers: &buffer::BufferFunctions,
    table: OwnTable,
    parts: &Parts,
) -> PyResult<Bound<'py, PyCapsule>> {
    methods.define_methods(class)?;
    array::define_array_method(class, parts.over)?;
    if let Some(define_iteration) = parts.iterable {
        define_iteration(class, parts.over)?;
    }
    buffers.define_on(class, parts.over)?;
    table.install_on_class(class)
}

/// Defines a method on a class. Keeps the class's own method of that name, unless `over` names it.
fn define_unless_own(
    class: &Bound<'_, PyType>,
    name: &'static CStr,
    call: ffi::PyMethodDefPointer,
    flags: c_int,
    doc: &'static CStr,
    over: &[&str],
) -> PyResult<()> {
    let is_over = over.iter().any(|over| name.to_bytes() == over.as_bytes());
    if is_over {
        return method::define_method(class, name, call, flags, doc);
    }
    method::define_default_method(class, name, call, flags, doc)
}

/// The attributes of a class that has tensors but is not a tensor: what `#[dlpack_pymethods]` defines for it, without a macro.
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
    #[expect(clippy::new_without_default, reason = "only used in constants")]
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

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: PyStaticExpr = hints::NAMES;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        tensors::define_tensor_attributes::<T>(&T::type_object(py), &Parts::NONE)
    }
}

/// All that `#[dlpack_pymethods]` defines on a class. The attribute's value is the tuple of the tensors' names.
#[doc(hidden)]
pub struct Attributes<T> {
    parts: Parts,
    class: PhantomData<fn() -> T>,
}

impl<T> Attributes<T> {
    /// From the constants of [`Class`].
    #[must_use]
    pub const fn of<A: Copy, B: Copy>(_tensor: A, _tensors: B, import: Protocol<T>) -> Self
    where
        (A, B): Offers<T>,
    {
        Self {
            parts: Parts {
                import: import.parts.import,
                ..<(A, B) as Offers<T>>::PARTS
            },
            class: PhantomData,
        }
    }

    /// The method `__dlpack_info__` and the keyword `version` of the draft from before DLPack 1.0.
    #[must_use]
    pub const fn info(mut self) -> Self
    where
        T: Exports,
    {
        self.parts.info = true;
        self
    }

    /// `for part in obj` and `len(obj)`, over the first axis.
    #[must_use]
    pub const fn iterable(mut self) -> Self
    where
        T: Exports,
    {
        self.parts.iterable = Some(iterable::define_iteration_methods);
        self
    }

    /// Attributes that the class has already, and that are replaced.
    #[must_use]
    pub const fn over(mut self, names: &'static [&'static str]) -> Self {
        self.parts.over = names;
        self
    }

    /// The attributes are arrays of this library.
    #[must_use]
    pub const fn arrays(mut self, library: &'static str) -> Self
    where
        T: ExportsTensors,
    {
        self.parts.arrays = Some(library);
        self
    }
}

impl<'py, T: PyClass> IntoPyObject<'py> for Attributes<T> {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: PyStaticExpr = hints::NAMES;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        self.parts.define_attributes(&T::type_object(py))
    }
}

/// What a class `T` exports: itself, its tensors by name, or both.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{T}` cannot be exported from Python",
    label = "expected a `#[pyclass]` with `#[derive(DLPack)]` that is `Send` and `Sync`",
    note = "add `#[pyclass]` and `#[derive(DLPack)]` to it, and check that its fields are `Send` and `Sync`",
    note = "remove `unsendable`: a consumer may use and release the data on any thread"
)]
pub trait Offers<T> {
    const PARTS: Parts;
}

#[diagnostic::do_not_recommend]
impl<T: Exports> Offers<T> for (Protocol<T>, Missing) {
    const PARTS: Parts = Parts {
        tensor: Some(define_tensor_methods::<T>),
        ..Parts::NONE
    };
}

#[diagnostic::do_not_recommend]
impl<T: ExportsTensors> Offers<T> for (Missing, TensorNames<T>) {
    const PARTS: Parts = Parts {
        tensors: Some(tensors::define_tensor_attributes::<T>),
        ..Parts::NONE
    };
}

#[diagnostic::do_not_recommend]
impl<T: Exports + ExportsTensors> Offers<T> for (Protocol<T>, TensorNames<T>) {
    const PARTS: Parts = Parts {
        tensor: Some(define_tensor_methods::<T>),
        tensors: Some(tensors::define_tensor_attributes::<T>),
        ..Parts::NONE
    };
}

/// Asks the compiler what a type can do. An inherent constant has higher priority than a trait's:
/// the inherent constants, which require a bound, define the true case, and [`ClassDefaults`] below defines the false case.
#[doc(hidden)]
pub struct Class<T>(PhantomData<T>);

impl<T: Exports> Class<T> {
    pub const TENSOR: Protocol<T> = Protocol::new();
}

impl<T: ExportsTensors> Class<T> {
    pub const TENSORS: TensorNames<T> = TensorNames::new();
    pub const TENSOR_NAMES: &'static [&'static str] = T::NAMES;
}

impl<T: Imports> Class<T> {
    pub const IMPORT: Protocol<T> = Protocol::new().importing();
}

impl<T: Pickles> Class<T> {
    pub const RESTORE: Restore<T> = restore_object::<T>;
}

impl<T: PyClass> Class<T> {
    pub const IS: IsClass = IsClass;
    pub const FROZEN: PhantomData<T::Frozen> = PhantomData;
}

/// The false case for [`Class`]: the type is not a tensor, has no tensors, cannot be created from tensors, and is not a class.
#[doc(hidden)]
pub trait ClassDefaults {
    type Class;
    const TENSOR: Missing = Missing;
    const TENSORS: Missing = Missing;
    const TENSOR_NAMES: &'static [&'static str] = &[];
    const IMPORT: Protocol<Self::Class> = Protocol::new();
    /// Never called: `reduce`, which generated code names next to this constant, does not compile for the class.
    const RESTORE: Restore<Self::Class> = |_, _, _| unreachable!("this never compiled");
    const IS: NotClass = NotClass;
    const FROZEN: PhantomData<False> = PhantomData;
}

impl<T> ClassDefaults for Class<T> {
    type Class = T;
}

#[doc(hidden)]
pub struct IsClass;

#[doc(hidden)]
pub struct NotClass;

/// The fallback for a class that declares no attribute of these names.
#[doc(hidden)]
#[expect(non_upper_case_globals, reason = "the names of Python attributes")]
pub trait UndeclaredMethods {
    const __dlpack_c_exchange_api__: Missing = Missing;
    const __dlpack_tensors__: Missing = Missing;
}

impl<T: ?Sized> UndeclaredMethods for T {}

#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Missing;

/// Implemented if the class `T` has declared its methods, or if `T` is not a Python class.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{T}` derives `DLPack`, but its methods are not added to the Python class",
    label = "no `#[dlpack_pymethods]` for this class",
    note = "write `#[dlpack_pymethods]` on the line above the `#[pymethods]` of this type",
    note = "or, if it has none: `#[dlpack_pymethods] #[pymethods] impl {T} {{}}`"
)]
pub trait Attached<Kind, T: ?Sized> {}

impl<A, T: ?Sized> Attached<NotClass, T> for A {}
#[diagnostic::do_not_recommend]
impl<T> Attached<IsClass, T> for Attributes<T> {}
#[diagnostic::do_not_recommend]
impl<T> Attached<IsClass, T> for TensorNames<T> {}
// Generated code passes both constants of a class that is a tensor.
#[diagnostic::do_not_recommend]
impl<T> Attached<IsClass, T> for (Missing, Attributes<T>) {}
#[diagnostic::do_not_recommend]
impl<T, B> Attached<IsClass, T> for (Protocol<T>, B) {}

#[doc(hidden)]
pub fn attached<Kind, A: Attached<Kind, T>, T: ?Sized>(_: Kind, _: A) {}
