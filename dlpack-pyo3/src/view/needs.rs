//! The requirements of a view on its argument, and the error for an argument that does not meet them.

use core::fmt;

#[cfg(feature = "cudarc")]
use dlpack_core::Device;
use dlpack_core::element::Axes;
use dlpack_core::{DataType, Error, Managed, TensorRef};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{intern, prelude::*};

use crate::capi::class_attribute;
use crate::error::{
    DisplayTuple, add_cause, concerns_object, fail, none_if_concerns_object, raise_core_error,
};
use crate::import::{bytes_of_buffer, from_dlpack, import_if_array};
use crate::library::{lossy::Loss, numpy, torch};

/// The requirements of a view on its argument.
#[derive(Debug)]
pub(super) struct Needs {
    pub(super) dtype: DataType,
    /// The number of axes in front of those of an element; `None` for any number.
    pub(super) rank: Option<usize>,
    /// The axes of an element.
    pub(super) element: Axes,
    pub(super) contiguous: bool,
    /// Whether the view is one of the bytes of an array of any data type.
    pub(super) as_bytes: bool,
    /// [`Self::convert_by_numpy`], if an argument that does not fit is converted. It is a pointer so that a module without such views
    /// does not contain it.
    pub(super) convert: Option<Conversion>,
    /// Whether the view has a promise, so that it must not overlap others.
    pub(super) promise: bool,
    pub(super) writes: bool,
    /// Whether the memory has to be on a GPU instead of the host.
    pub(super) cuda: bool,
}

/// A function that imports an argument after a conversion.
type Conversion = fn(&Needs, &Bound<'_, PyAny>) -> PyResult<Managed>;

impl Needs {
    /// The tensor of an argument, or of the array that the argument was converted to.
    #[inline(always)]
    pub(super) fn import_or_convert(&self, object: &Bound<'_, PyAny>) -> PyResult<Managed> {
        match import_if_array(object) {
            Ok(Some(tensor)) => Ok(tensor),
            Ok(None) => self.convert_or_refuse(object, None),
            Err(error) if concerns_object(object.py(), &error) => {
                self.convert_or_refuse(object, Some(error))
            }
            Err(error) => Err(error),
        }
    }

    /// The tensor of an argument that exports none, or whose export raised `error`.
    #[cold]
    #[inline(never)]
    fn convert_or_refuse(
        &self,
        object: &Bound<'_, PyAny>,
        error: Option<PyErr>,
    ) -> PyResult<Managed> {
        match (self.convert, error) {
            (Some(convert), None) => convert(self, object),
            // `numpy.asarray` would read some of the tensors whose export PyTorch refuses, such as one whose memory was freed. A
            // capsule is nothing but its tensor.
            (Some(convert), Some(error))
                if !torch::is_torch_tensor(object) && !object.is_instance_of::<PyCapsule>() =>
            {
                convert(self, object).inspect_err(|failed| {
                    if concerns_object(object.py(), failed) {
                        add_cause(object.py(), failed, error);
                    }
                })
            }
            (_, Some(error)) => self.import_bytes_or_refuse(object, error),
            (_, None) => Err(self.not_an_array(object)),
        }
    }

    /// For a view of bytes, the bytes of a buffer with a format of no data type. Otherwise the error for an argument, after its export
    /// raised `error`.
    fn import_bytes_or_refuse(
        &self,
        object: &Bound<'_, PyAny>,
        mut error: PyErr,
    ) -> PyResult<Managed> {
        if let Some(error) = self.loss_error(object)? {
            return Err(error);
        }
        if self.as_bytes && is_of_buffer(object, &error) {
            match bytes_of_buffer(object) {
                Ok(Some(bytes)) => return Ok(bytes),
                Ok(None) => {}
                Err(again) => error = again,
            }
        }
        Err(self.export_error(object, error)?)
    }

    /// Refuses a copy that the argument's class made for this call, if the view writes: the writes would be lost. The tensor of a
    /// capsule may be an older copy.
    #[inline(always)]
    pub(super) fn refuse_copy(&self, object: &Bound<'_, PyAny>, tensor: &Managed) -> PyResult<()> {
        if self.writes && tensor.view().is_copied() && !object.is_instance_of::<PyCapsule>() {
            return Err(self.copy_error(object));
        }
        Ok(())
    }

    #[cold]
    fn copy_error(&self, object: &Bound<'_, PyAny>) -> PyErr {
        let (py, class) = (object.py(), object.get_type());
        fail!(py, PyTypeError:
            "expected {self} to write to, found {class}, which exports a copy of its data; pass an array, such as numpy.asarray(x)")
        .take_exception(py)
    }

    /// Another tensor of the argument, after the first does not fit: the array that NumPy converts it to. The first is dropped before,
    /// since it may have the object borrowed exclusively.
    #[cold]
    pub(super) fn retry_converted(
        &self,
        object: &Bound<'_, PyAny>,
        error: &Error,
        found: Managed,
    ) -> PyResult<Managed> {
        let fits = matches!(
            error,
            Error::Borrowed | Error::NoLeaseTable { .. } | Error::OutOfMemory { .. }
        );
        match self.convert {
            Some(convert) if !fits && !object.is_instance_of::<PyCapsule>() => {
                drop(found);
                convert(self, object)
            }
            _ => Err(self.unsuitable_tensor(object.py(), error, &found.view())),
        }
    }

    /// The bytes of an argument's tensor, as a tensor of one axis.
    pub(super) fn cast_to_bytes(&self, py: Python<'_>, tensor: Managed) -> PyResult<Managed> {
        let view = tensor.view();
        if !view.is_contiguous() {
            return Err(self.unsuitable_tensor(py, &view.not_contiguous(), &view));
        }
        let bytes = view.len_bytes();
        Ok(tensor.cast(DataType::U8, &[bytes])?)
    }

    /// Imports `numpy.asarray(object, dtype)`, in row-major order if the view is contiguous. If NumPy does not export the strides
    /// of that array, it is copied.
    #[cold]
    pub(super) fn convert_by_numpy(&self, object: &Bound<'_, PyAny>) -> PyResult<Managed> {
        let py = object.py();
        // `numpy.asarray` drops the mask of a masked array.
        if let Some(error) = self.loss_error(object)? {
            return Err(error);
        }
        let dtype = if let Some(dtype) = numpy::ml_dtype(self.dtype) {
            numpy::import_ml_dtypes(py, dtype)?;
            dtype
        } else {
            self.dtype
        };
        let options = PyDict::new(py);
        options.set_item(intern!(py, "dtype"), dtype.to_string())?;
        if self.contiguous {
            options.set_item(intern!(py, "order"), intern!(py, "C"))?;
        }
        let numpy = py.import(intern!(py, "numpy"))?;
        let asarray = intern!(py, "asarray");
        let array = numpy.call_method(asarray, (object,), Some(&options))?;
        if numpy::fractional_strides(&array)?.is_none() {
            return from_dlpack(&array);
        }
        options.set_item(intern!(py, "order"), intern!(py, "C"))?;
        from_dlpack(&numpy.call_method(intern!(py, "array"), (array,), Some(&options))?)
    }

    /// The error for an array of which an import would lose a part, such as a mask; `None` for other objects.
    #[cold]
    pub(super) fn loss_error(&self, object: &Bound<'_, PyAny>) -> PyResult<Option<PyErr>> {
        let py = object.py();
        let loss = none_if_concerns_object(py, Loss::of_object(object))?;
        Ok(loss
            .map(|loss| fail!(py, PyTypeError: "expected {self}, found {loss}").take_exception(py)))
    }

    /// The error for an array that its own library refuses to export: the library's error, unless the data type or the strides of a
    /// NumPy array are the reason, or the format of a buffer.
    #[cold]
    fn export_error(&self, object: &Bound<'_, PyAny>, error: PyErr) -> PyResult<PyErr> {
        let py = object.py();
        let raised = if let Some(dtype) =
            none_if_concerns_object(py, numpy::unsupported_dtype(object))?
        {
            let has_objects =
                self.as_bytes && dtype.getattr(intern!(py, "hasobject"))?.is_truthy()?;
            if has_objects {
                fail!(py, PyTypeError: "expected {self}, found one of {dtype}, whose bytes are references to Python objects")
            } else {
                fail!(py, PyTypeError:
                    "expected {self}, found one of {dtype}, which NumPy does not export; {}", self.conversion_hint())
            }
        } else if let Some(found) = none_if_concerns_object(py, numpy::fractional_strides(object))?
        {
            fail!(py, PyTypeError: "expected {self}, found {found}")
        } else if is_of_buffer(object, &error) {
            let class = object.get_type();
            fail!(py, PyTypeError: "expected {self}, found {class}: {}", error.value(py))
        } else {
            return Ok(error);
        };
        let raised = raised.take_exception(py);
        raised.set_cause(py, Some(error));
        Ok(raised)
    }

    /// The part of a message that says how to convert an array of another data type.
    fn conversion_hint(&self) -> String {
        if self.as_bytes {
            // A conversion would change the bytes. Only a contiguous array with an axis can be viewed so.
            return "pass numpy.ascontiguousarray(x).view('u1')".to_owned();
        }
        let library = if self.cuda { "CuPy" } else { "NumPy" };
        format!(
            "convert it first, in {library} by x.astype({}){}",
            self.dtype_in_python(),
            self.note_on_writes()
        )
    }

    /// The end of a hint to make another array.
    const fn note_on_writes(&self) -> &'static str {
        if self.writes {
            "; keep the new array, because the function writes to that one"
        } else {
            ""
        }
    }

    /// The data type, as an argument of NumPy and of CuPy.
    fn dtype_in_python(&self) -> String {
        match numpy::ml_dtype(self.dtype) {
            // NumPy knows the name only after the package was imported.
            Some(dtype) => format!("ml_dtypes.{dtype}"),
            None => format!("'{}'", self.dtype),
        }
    }

    /// The error for an object that is not an array.
    #[cold]
    pub(super) fn not_an_array(&self, object: &Bound<'_, PyAny>) -> PyErr {
        let (py, class) = (object.py(), object.get_type());
        let (dtype, note) = (self.dtype_in_python(), self.note_on_writes());
        let raised = if self.cuda {
            fail!(py, PyTypeError: "expected {self}, found {class}, which has no `__dlpack__`; pass an array of torch, CuPy \
                or the like, such as cupy.asarray(x, dtype={dtype}){note}")
        } else if class.hasattr(intern!(py, "to_numpy")).unwrap_or(false) {
            fail!(py, PyTypeError: "expected {self}, found {class}, which has neither `__dlpack__` nor a buffer; pass \
                x.to_numpy(){note}")
        } else if self.as_bytes {
            fail!(py, PyTypeError: "expected {self}, found {class}, which has neither `__dlpack__` nor a buffer; pass bytes, or an \
                array of NumPy, torch, JAX or the like")
        } else {
            fail!(py, PyTypeError: "expected {self}, found {class}, which has neither `__dlpack__` nor a buffer; pass an \
                array of NumPy, torch, JAX or the like, such as numpy.asarray(x, dtype={dtype}){note}")
        };
        raised.take_exception(py)
    }

    /// The error for an array that does not fit: a `TypeError`, because PyO3 adds the name of the argument to that.
    #[cold]
    pub(super) fn unsuitable_tensor(
        &self,
        py: Python<'_>,
        error: &Error,
        found: &TensorRef<'_>,
    ) -> PyErr {
        let (dtype, shape) = (found.dtype(), DisplayTuple(found.shape()));
        let raised = match error {
            Error::WrongDataType { .. } if dtype != self.dtype => fail!(py, PyTypeError:
                "expected {self}, found one of {dtype} of shape {shape}; {}", self.conversion_hint()),
            Error::WrongDataType { .. } | Error::Rank { .. } | Error::Extent { .. } => {
                fail!(py, PyTypeError: "expected {self}, found one of {dtype} of shape {shape}")
            }
            Error::NotOnHost { device } => {
                fail!(py, PyTypeError: "expected {self} in host memory, found one on {device}; copy it to the host first")
            }
            #[cfg(feature = "cudarc")]
            Error::NotOnCuda { device } => return self.not_on_cuda(py, *device),
            Error::ReadOnly if found.version().is_none() => fail!(py, PyTypeError:
                "expected {self} to write to, found one without a read-only flag, as its library exports DLPack before 1.0; \
                 pass a {} array", if self.cuda { "CuPy" } else { "NumPy" }),
            Error::ReadOnly => {
                fail!(py, PyTypeError: "expected {self} to write to, found a read-only one; pass a copy of it")
            }
            Error::NotContiguous { .. } => fail!(py, PyTypeError:
                "expected {self}, contiguous in row-major order, found one of shape {shape} with strides {}; pass \
                 {}.ascontiguousarray(x){}", DisplayTuple(found.strides()), if self.cuda { "cupy" } else { "numpy" },
                self.note_on_writes()),
            Error::Borrowed => fail!(py, PyTypeError:
                "expected {self} that shares no memory with another argument or a kept view, found one of shape {shape} that may \
                 share memory, and one of the two is written; pass a copy of it{}",
                if self.promise { "" } else { ", or allow it in Rust by `view::MayOverlap`" }),
            Error::NoLeaseTable { .. } | Error::OutOfMemory { .. } => raise_core_error(py, error),
            _ => fail!(py, PyTypeError: "expected {self}, found one of shape {shape}: {error}"),
        };
        raised.take_exception(py)
    }
}

/// Whether the error is about the buffer of an object that has nothing else.
#[cold]
fn is_of_buffer(object: &Bound<'_, PyAny>, error: &PyErr) -> bool {
    let py = object.py();
    error.is_instance_of::<PyBufferError>(py)
        && class_attribute(&object.get_type(), intern!(py, "__dlpack__")).is_none()
}

#[cfg(feature = "cudarc")]
impl Needs {
    /// The error for an array that is not on a CUDA device.
    #[cold]
    pub(super) fn not_on_cuda(&self, py: Python<'_>, device: Device) -> PyErr {
        fail!(py, PyTypeError: "expected {self}, found one on {device}; copy it to the device first").take_exception(py)
    }
}

/// What is expected, such as "an array of float32 of shape (_, _, 3)".
impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.as_bytes {
            return f.write_str("an array of any data type and shape");
        }
        write!(f, "an array of {} of shape (", self.dtype)?;
        let mut before = "";
        match self.rank {
            None => {
                f.write_str("..")?;
                before = ", ";
            }
            Some(rank) => {
                for _ in 0..rank {
                    write!(f, "{before}_")?;
                    before = ", ";
                }
            }
        }
        for extent in self.element.extents() {
            write!(f, "{before}{extent}")?;
            before = ", ";
        }
        f.write_str(
            if self.rank == Some(1) && self.element.extents().is_empty() {
                ",)"
            } else {
                ")"
            },
        )?;
        f.write_str(if self.cuda { " on a CUDA device" } else { "" })
    }
}
