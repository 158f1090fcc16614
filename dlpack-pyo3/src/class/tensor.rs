//! [`Tensor`]: any tensor, as a Python object.

use dlpack_core::binding::{Extras, device_of, text};
use dlpack_core::{DLPack, Descriptor, Device, DeviceType, Error, FromDLPack, Managed, TensorRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::types::{PyCapsule, PyComplex, PyFloat, PyInt, PyString, PyType};
use pyo3::{intern, prelude::*};

use crate::class::hinted::{Array, Index, Integers, Pair, Producer, Tensors};
use crate::class::{
    Protocol,
    contents::{Contents, numpy_of_tensor},
    index::select_view,
    numbers, pickle,
};
use crate::error::{DisplayTuple, OrRaise, fail};
use crate::exchange::import_as;
use crate::import::{from_dlpack_with, import_argument};
use crate::keepalive::ExceptionSafeTensor;
use crate::library::function::{CUPY, JAX, KnownLibrary, TORCH};
use crate::values;

/// A tensor that belongs to no library. Any DLPack consumer reads it: `numpy.asarray(tensor)`, `torch.from_dlpack(tensor)`.
///
/// `tensor.numpy()`, `tensor.torch()`, `tensor.jax()` and `tensor.cupy()` are arrays over the same memory. `tensor[1:, ::-2, ..., None, 3]` is
/// a slice of it, on any device; integers, slices, `...` and None work as in NumPy. `tensor.tolist()` and, for one element,
/// `tensor.item()`, `float(tensor)` and `bool(tensor)` are numbers. `==` is a `TypeError`: compare arrays instead.
// Python shows the lines above in `help()`; those below are for Rust.
#[cfg_attr(any(doc, doctest), doc = include_str!("tensor.md"))]
#[pyclass(frozen, mapping, module = "dlpack_pyo3")]
#[derive(Debug)]
pub struct Tensor {
    contents: Contents,
}

impl Tensor {
    /// A Python object for a tensor. Memory that nothing else owns is writable for every consumer of the object.
    #[must_use]
    pub fn new(managed: Managed) -> Self {
        let tensor = ExceptionSafeTensor::new(managed.shared());
        Self {
            contents: Contents::Whole(tensor),
        }
    }

    /// The tensor, owned.
    #[must_use]
    pub fn into_managed(self) -> Managed {
        self.contents.into_whole()
    }

    /// The description of the tensor: shape, strides, data type, device.
    #[must_use]
    pub fn view(&self) -> TensorRef<'_> {
        self.contents.view()
    }
}

impl Tensor {
    #[inline(always)]
    pub(super) fn of_contents(py: Python<'_>, contents: Contents) -> PyResult<Bound<'_, Self>> {
        Bound::new(py, Self { contents })
    }

    #[inline]
    pub(super) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Whether the data is read-only.
    pub(super) fn is_read_only(&self) -> PyResult<bool> {
        Ok(self.describe()?.is_read_only())
    }
}

impl From<Managed> for Tensor {
    fn from(managed: Managed) -> Self {
        Self::new(managed)
    }
}

impl DLPack for Tensor {
    const EXTRAS: Extras<Self> = Extras::<Self>::NONE
        .transparent(|tensor| tensor.contents.as_whole())
        .device(|tensor| device_of(tensor.contents.whole()));

    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.contents.describe()
    }

    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        self.contents.describe_mut()
    }
}

impl FromDLPack for Tensor {
    fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
        Ok(Self::new(tensor))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Tensor {
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const INPUT_TYPE: pyo3::inspect::PyStaticExpr = crate::hints::ARRAY;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        import_argument(&object).map(Self::new)
    }
}

#[pymethods]
impl Tensor {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "the name is defined by DLPack")]
    const __dlpack_c_exchange_api__: TensorProtocol = TensorProtocol;

    #[cfg(feature = "stubs")]
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__(
        slf: &Bound<'_, Self>,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<crate::hints::ArrayOf<Self>> {
        let _ = (dtype, copy);
        super::hinted::placeholder(slf)
    }

    #[cfg(feature = "stubs")]
    #[pyo3(signature = (flags, /))]
    fn __buffer__(slf: &Bound<'_, Self>, flags: i32) -> PyResult<crate::hints::Memoryview> {
        let _ = flags;
        super::hinted::placeholder(slf)
    }

    #[cfg(feature = "stubs")]
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        slf: &Bound<'_, Self>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<crate::hints::Capsule> {
        let _ = (stream, max_version, dl_device, copy);
        super::hinted::placeholder(slf)
    }

    #[cfg(feature = "stubs")]
    fn __dlpack_device__(slf: &Bound<'_, Self>) -> PyResult<(i32, i32)> {
        super::hinted::placeholder(slf)
    }

    /// A tensor over the memory of any DLPack producer or buffer.
    ///
    /// device: the requested device, as (type, id)
    /// copy: True for a copy, False for an error if a copy is needed
    #[staticmethod]
    #[pyo3(name = "from_dlpack", signature = (obj, /, *, device=None, copy=None))]
    fn import(
        obj: Producer<'_, '_>,
        device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Self> {
        let device = device.map(|(kind, id)| Device::new(DeviceType(kind), id));
        from_dlpack_with(&obj.0, device, copy).map(Self::new)
    }

    /// The size of each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Integers<'py>> {
        values::new_int_tuple(py, self.view().shape().iter().copied()).map(Integers)
    }

    /// The stride of each axis, in elements.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Integers<'py>> {
        values::new_int_tuple(py, self.view().strides().iter().copied()).map(Integers)
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.view().shape().len()
    }

    /// The data type, for example "float32".
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        values::new_string(py, &text(self.view().dtype()).or_fetch(py)?)
    }

    /// The (type, id) of the device of the data.
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        let device = self.view().device();
        values::new_int_tuple(py, [device.device_type.0, device.device_id].map(i64::from)).map(Pair)
    }

    /// The bytes of all elements, without gaps.
    #[getter]
    fn nbytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        values::new_size(py, self.view().len_bytes())
    }

    /// Whether the data is read-only.
    #[getter]
    fn readonly(&self) -> PyResult<bool> {
        self.is_read_only()
    }

    /// The address of the first element, or 0 if there is none.
    #[getter]
    fn data_ptr<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        values::new_size(py, self.view().as_ptr().addr())
    }

    /// A NumPy array over the same memory.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py>> {
        numpy_of_tensor(slf).map(Array)
    }

    /// The state for pickle: the bytes, their data type and the shape.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: i32) -> PyResult<Bound<'py, PyAny>> {
        pickle::reduce_tensor(slf, protocol)
    }

    /// Restores a pickled tensor.
    #[classmethod]
    #[pyo3(signature = (bytes, dtype, shape, /))]
    fn _restore(
        _cls: &Bound<'_, PyType>,
        bytes: &Bound<'_, PyAny>,
        dtype: (u8, u8, u16, bool),
        shape: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        pickle::tensor_of(bytes, dtype, shape).map(Self::new)
    }

    /// A writable copy, as for a NumPy array.
    fn __copy__(slf: &Bound<'_, Self>) -> PyResult<Self> {
        from_dlpack_with(slf.as_any(), None, Some(true)).map(Self::new)
    }

    fn __deepcopy__(slf: &Bound<'_, Self>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::__copy__(slf)
    }

    /// A slice of the tensor over the same memory: integers, slices, `...` and None, as in NumPy.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        index: Index<'_, '_>,
    ) -> PyResult<Bound<'py, Self>> {
        Contents::slice(slf, |view| select_view(&index.0, view))
    }

    /// Iterates over the first axis.
    // Without `__iter__`, NumPy would convert the sequence to an array of Python objects.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Tensors<'py>> {
        let py = slf.py();
        let builtins = py.import(intern!(py, "builtins"))?;
        let len = values::new_size(py, slf.get().__len__(py)?)?;
        let indices = values::call_one(&builtins.getattr(intern!(py, "range"))?, len.into_any())?;
        let part = slf.getattr(intern!(py, "__getitem__"))?;
        let arguments = values::new_tuple(py, [Ok(part), Ok(indices)])?;
        let parts = builtins.getattr(intern!(py, "map"))?.call1(arguments)?;
        Ok(Tensors(parts))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.view().shape() {
            [len, ..] => Ok(usize::try_from(*len).unwrap_or(usize::MAX)),
            [] => Err(fail!(py, PyTypeError: "len() of a tensor without axes").take_exception(py)),
        }
    }

    /// A `torch.Tensor` over the memory.
    fn torch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        array_of_library(slf, &TORCH)
    }

    /// A `jax.Array` over the memory, or over a copy if JAX requires one.
    fn jax<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        array_of_library(slf, &JAX)
    }

    /// `jax.numpy.asarray(tensor)`. JAX would expect a data type of NumPy's in `dtype`.
    fn __jax_array__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::jax(slf)
    }

    /// A `cupy.ndarray` over the memory, which must be on a GPU.
    fn cupy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        array_of_library(slf, &CUPY)
    }

    /// The elements as numbers, in nested lists.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.contents
            .read(py, |view| numbers::nested_list(py, view))
    }

    /// The only element, as a number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.contents
            .read(py, |view| numbers::only_element::<PyValueError>(py, view))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.contents
            .read(py, |view| numbers::only_element_is_true(py, view))
    }

    fn __float__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFloat>> {
        self.contents
            .read(py, |view| numbers::only_element_as(py, view))
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        self.contents
            .read(py, |view| numbers::only_element_as(py, view))
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyComplex>> {
        self.contents
            .read(py, |view| numbers::only_element_as(py, view))
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        self.contents
            .read(py, |view| numbers::element_as_index(py, view))
    }

    /// Raises TypeError: compare arrays by `tensor.numpy() == other`, or objects by `is`.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = other.py();
        Err(fail!(py, PyTypeError:
            "a Tensor has no `==`: compare arrays, as in `tensor.numpy() == other`, or objects, by `is`")
        .take_exception(py))
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let view = self.view();
        let words = text(format_args!(
            "Tensor(shape={}, dtype={}, device={}, strides={}{}{})",
            DisplayTuple(view.shape()),
            view.dtype(),
            view.device(),
            DisplayTuple(view.strides()),
            if self.readonly()? { ", readonly" } else { "" },
            if view.is_copied() { ", copied" } else { "" },
        ));
        values::new_string(py, &words.or_fetch(py)?)
    }
}

/// The methods of the class. Once it exists, tensors that C code imports become its objects.
struct TensorProtocol;

impl<'py> IntoPyObject<'py> for TensorProtocol {
    type Target = PyCapsule;
    type Output = Bound<'py, PyCapsule>;
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr = Protocol::<Tensor>::OUTPUT_TYPE;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        import_as::<Tensor>();
        let protocol = Protocol::<Tensor>::new().over(&["__array__", "__buffer__"]);
        protocol.into_pyobject(py)
    }
}

fn array_of_library<'py>(
    tensor: &Bound<'py, Tensor>,
    library: &KnownLibrary,
) -> PyResult<Bound<'py, PyAny>> {
    library
        .import_once(tensor.py())?
        .create_array(tensor.as_any())
}
