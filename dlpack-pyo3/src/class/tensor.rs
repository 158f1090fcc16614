//! [`Tensor`]: any tensor, as a Python object.

use dlpack_core::binding::{Extras, device_of, text};
use dlpack_core::{DLPack, Descriptor, Device, DeviceType, Error, FromDLPack, Managed, TensorRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::types::{PyComplex, PyFloat, PyInt, PyTuple, PyType};
use pyo3::{PyTypeInfo, prelude::*};

use crate::class::hinted::{Array, Index, Integers, Producer, Tensors};
use crate::class::{Protocol, array::numpy_of, index::picks, numbers, pickle};
use crate::error::{OrRaise, Tuple};
use crate::export::part;
use crate::hold::Quiet;
use crate::import::{argument, from_dlpack_with};
use crate::library::function::{CUPY, JAX, Known, TORCH};

/// A tensor as a Python object: an import, one of an object's several tensors, or anything in a [`Managed`].
///
/// It is a producer itself, so any library reads it. As the type of an argument it takes any producer:
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::Tensor;
/// use pyo3::prelude::*;
///
/// #[pyfunction]
/// fn sum(tensor: Tensor) -> PyResult<f32> {
///     Ok(tensor.view().iter::<f32>()?.sum())
/// }
///
/// #[pyfunction]
/// fn ramp(len: u16) -> PyResult<Tensor> {
///     let samples: Vec<f32> = (0..len).map(f32::from).collect();
///     Ok(Tensor::new(dlpack_pyo3::DLPack::into_dlpack(samples)?))
/// }
/// ```
///
/// In Python `tensor[1:, ::-2, ..., None, 3]` is a part of it over the same memory, on any device: integers, slices, `...`
/// and None mean what they do in NumPy. In Rust [`Managed::slice`] and its like cut tensors. `tensor.numpy()`, `tensor.torch()`, `tensor.jax()`
/// and `tensor.cupy()` are arrays over it that can do more; `tensor.tolist()` and, of one element, `tensor.item()`, `float(tensor)`
/// and `bool(tensor)` are numbers. It is not compared: `==` is a `TypeError`.
///
/// The memory of an import may be written by its producer at any time, so it is never lent as a slice;
/// `to_vec` and `iter` read it.
#[pyclass(frozen, mapping, module = "dlpack_pyo3")]
#[derive(Debug)]
pub struct Tensor {
    managed: Quiet,
}

impl Tensor {
    /// An object for a tensor. What nobody else has, all who get it from here may write.
    #[must_use]
    pub fn new(managed: Managed) -> Self {
        let managed = Quiet::new(managed.shared());
        Self { managed }
    }

    /// The tensor.
    #[must_use]
    pub fn managed(&self) -> &Managed {
        &self.managed
    }

    /// The tensor, for as long as one likes.
    #[must_use]
    pub fn into_managed(self) -> Managed {
        self.managed.into_inner()
    }

    /// What the tensor is.
    #[must_use]
    pub fn view(&self) -> TensorRef<'_> {
        self.managed.view()
    }
}

impl Tensor {
    /// Whether nobody may write to the data.
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
    const EXTRAS: Extras<Self> = Extras::NONE
        .transparent()
        .device(|tensor| device_of(&tensor.managed));

    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.managed.describe()
    }

    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        self.managed.describe_mut()
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
        argument(&object).map(Self::new)
    }
}

#[pymethods]
impl Tensor {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "the name that DLPack gives it")]
    const __dlpack_c_exchange_api__: Protocol<Self> = Protocol::new().over(&["__array__"]);

    #[cfg(feature = "stubs")]
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__(
        slf: &Bound<'_, Self>,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<crate::hints::Array> {
        let _ = (dtype, copy);
        crate::class::placeholder(slf)
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
        super::placeholder(slf)
    }

    #[cfg(feature = "stubs")]
    fn __dlpack_device__(slf: &Bound<'_, Self>) -> PyResult<(i32, i32)> {
        super::placeholder(slf)
    }

    /// A tensor over the memory of any object that exports one.
    ///
    /// device: where the data is wanted, as (type, id)
    /// copy: True for a copy, False for an error where one is needed
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

    /// The extents, one an axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Integers<'py>> {
        PyTuple::new(py, self.view().shape()).map(Integers)
    }

    /// The strides in elements, one an axis.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Integers<'py>> {
        PyTuple::new(py, self.view().strides()).map(Integers)
    }

    /// The number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.view().shape().len()
    }

    /// The data type, as "float32".
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<String> {
        text(self.view().dtype()).or_fetch(py)
    }

    /// The (type, id) of the device on which the data lies.
    #[getter]
    fn device(&self) -> (i32, i32) {
        let device = self.view().device();
        (device.device_type.0, device.device_id)
    }

    /// The bytes that the elements take, one after another.
    #[getter]
    fn nbytes(&self) -> usize {
        self.view().len_bytes()
    }

    /// Whether nobody may write to the data.
    #[getter]
    fn readonly(&self) -> PyResult<bool> {
        self.is_read_only()
    }

    /// The address of the first element, 0 if there is none.
    #[getter]
    fn data_ptr(&self) -> usize {
        self.view().as_ptr().addr()
    }

    /// An array of NumPy's over the same memory.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py>> {
        numpy_of(slf).map(Array)
    }

    /// What pickle writes: the bytes, their type and the shape.
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: i32) -> PyResult<Bound<'py, PyAny>> {
        pickle::reduce_tensor(slf, protocol)
    }

    /// The tensor that was pickled.
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

    /// A copy, which may be written, as of an array of NumPy.
    fn __copy__(slf: &Bound<'_, Self>) -> PyResult<Self> {
        from_dlpack_with(slf.as_any(), None, Some(true)).map(Self::new)
    }

    fn __deepcopy__(slf: &Bound<'_, Self>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::__copy__(slf)
    }

    /// A part of the tensor, over the same memory: integers, slices, `...` and None, as in NumPy.
    fn __getitem__(slf: &Bound<'_, Self>, index: Index<'_, '_>) -> PyResult<Self> {
        part(slf, |shape| picks(&index.0, shape)).map(Self::new)
    }

    /// The parts along the first axis. A plain sequence, which needs no iterator, is taken by NumPy for one of objects.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Tensors<'py>> {
        let builtins = slf.py().import("builtins")?;
        let indices = builtins.call_method1("range", (slf.len()?,))?;
        let parts = builtins.call_method1("map", (slf.getattr("__getitem__")?, indices))?;
        Ok(Tensors(parts))
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.view().shape() {
            [len, ..] => Ok(usize::try_from(*len).unwrap_or(usize::MAX)),
            [] => Err(PyTypeError::new_err("len() of a tensor without axes")),
        }
    }

    /// A `torch.Tensor` over the memory.
    fn torch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        array(slf, &TORCH)
    }

    /// A `jax.Array` over the memory, or over a copy where JAX wants one.
    fn jax<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        array(slf, &JAX)
    }

    /// A `cupy.ndarray` over the memory, which lies on a GPU.
    fn cupy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        array(slf, &CUPY)
    }

    /// The elements as numbers, in a list for each axis.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numbers::nested(py, &self.managed)
    }

    /// The one element, as a number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numbers::one::<PyValueError>(py, &self.managed)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        numbers::truth(py, &self.managed)
    }

    fn __float__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFloat>> {
        let number = numbers::one::<PyTypeError>(py, &self.managed)?;
        Ok(PyFloat::type_object(py).call1((number,))?.cast_into()?)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        let number = numbers::one::<PyTypeError>(py, &self.managed)?;
        Ok(PyInt::type_object(py).call1((number,))?.cast_into()?)
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyComplex>> {
        let number = numbers::one::<PyTypeError>(py, &self.managed)?;
        Ok(PyComplex::type_object(py).call1((number,))?.cast_into()?)
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        numbers::index(py, &self.managed)
    }

    /// Neither the elements nor the objects: whoever means the former has an array, and for the latter there is `is`.
    fn __eq__(&self, _other: &Bound<'_, PyAny>) -> PyResult<bool> {
        Err(PyTypeError::new_err(
            "a Tensor is not compared: make an array of it, as `tensor.numpy() == other`, or ask whether it `is` another",
        ))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let view = self.view();
        let words = format_args!(
            "Tensor(shape={}, dtype={}, device={}, strides={}{}{})",
            Tuple(view.shape()),
            view.dtype(),
            view.device(),
            Tuple(view.strides()),
            if self.readonly()? { ", readonly" } else { "" },
            if view.is_copied() { ", copied" } else { "" },
        );
        text(words).or_fetch(py)
    }
}

fn array<'py>(tensor: &Bound<'py, Tensor>, library: &Known) -> PyResult<Bound<'py, PyAny>> {
    library.find(tensor.py())?.call(tensor.as_any())
}
