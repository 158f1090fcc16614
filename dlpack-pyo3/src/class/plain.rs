//! [`PlainTensor`]: the objects that C code creates through the exchange tables of a module without [`Tensor`](crate::Tensor).
//!
//! Every class has an exchange table, and every table creates objects for tensors. These objects have what consumers read, and
//! few other methods: those of `Tensor` would be linked into every module with a class.

use dlpack_core::binding::{Extras, device_of, text};
use dlpack_core::{DLPack, Descriptor, Error, FromDLPack, Managed};
use pyo3::{prelude::*, types::PyString};

use crate::class::{Protocol, array::numpy_of};
use crate::error::{DisplayTuple, OrRaise};
use crate::import::import_from_own_class;
use crate::{keepalive::ExceptionSafeTensor, values};

/// A tensor that C code created. Any DLPack consumer reads it: `numpy.asarray(tensor)`, `torch.from_dlpack(tensor)`.
#[pyclass(frozen, module = "dlpack_pyo3")]
pub(crate) struct PlainTensor {
    managed: ExceptionSafeTensor,
}

impl DLPack for PlainTensor {
    const EXTRAS: Extras<Self> = Extras::<Self>::NONE
        .transparent(|tensor| Some(&tensor.managed))
        .device(|tensor| device_of(&tensor.managed));

    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.managed.describe()
    }

    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        self.managed.describe_mut()
    }
}

impl FromDLPack for PlainTensor {
    fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
        let managed = ExceptionSafeTensor::new(tensor.shared());
        Ok(Self { managed })
    }
}

#[pymethods]
impl PlainTensor {
    #[classattr]
    #[expect(non_upper_case_globals, reason = "the name is defined by DLPack")]
    const __dlpack_c_exchange_api__: Protocol<Self> = Protocol::new();

    /// A NumPy array over the same memory.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        numpy_of(slf, None, import_from_own_class)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let view = self.managed.view();
        let words = text(format_args!(
            "PlainTensor(shape={}, dtype={}, device={})",
            DisplayTuple(view.shape()),
            view.dtype(),
            view.device(),
        ));
        values::new_string(py, &words.or_fetch(py)?)
    }
}
