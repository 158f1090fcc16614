//! The exchange tables of other libraries, as their consumer: creates objects of a library, and uses its allocator.
//!
//! ```text
//! tensor ───────▶ to_object ────────▶ object that owns the tensor; on an error the tensor is released here
//! shape, dtype ─▶ allocate_tensor ──▶ tensor, checked and then filled; on an error the library calls `record_error`
//! ```
//!
//! A table may do anything that its C types permit. All that can be checked is checked. What cannot be checked is what C itself
//! assumes: that addresses are those of memory, and that a function gives away what it returns.
#![expect(unsafe_code, reason = "calls a table of C functions")]

use core::ffi::{c_char, c_void};
use core::ptr::{self, NonNull};

use dlpack_core::abi::{DLManagedTensorVersioned, DLPackManagedTensorAllocator, DLTensor};
use dlpack_core::abi::{DLPackCurrentWorkStream, DLPackExchangeAPI};
use dlpack_core::binding::unordered_stream;
use dlpack_core::{DLPack, DataType, Device, ExportRequest, Managed, TensorRef};
use pyo3::exceptions::{
    PyBufferError, PyIndexError, PyMemoryError, PyNotImplementedError, PyOverflowError,
    PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::{prelude::*, sync::PyOnceLock};

use crate::error::{DisplayTuple, OrRaise, Raised, bail, fail, try_collect};
use crate::exchange::{ToPyObject, lookup::table_of_class};
use crate::keepalive::attached;
use crate::library::torch;

/// The functions of another library's table that create objects and memory. Tables live for the rest of the process, so the
/// class that has the table need not be kept alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForeignTable {
    create: ToPyObject,
    allocate: DLPackManagedTensorAllocator,
    current_stream: DLPackCurrentWorkStream,
}

/// The table of PyTorch's tensors, if PyTorch has been imported and has one.
pub(crate) fn torch_table(py: Python<'_>) -> Option<&'static ForeignTable> {
    static TABLE: PyOnceLock<Option<ForeignTable>> = PyOnceLock::new();

    if let Some(table) = TABLE.get(py) {
        return table.as_ref();
    }
    let class = torch::tensor_class(py)?.bind(py);
    let table = table_of_class(class).and_then(|table| ForeignTable::new(table.api));
    TABLE.get_or_init(py, || table).as_ref()
}

impl ForeignTable {
    /// `None` if the table creates no objects: its function is null, which the standard forbids.
    pub(crate) fn new(api: &DLPackExchangeAPI) -> Option<Self> {
        Some(Self {
            create: api.managed_tensor_to_py_object_no_sync?,
            allocate: api.managed_tensor_allocator,
            current_stream: api.current_work_stream,
        })
    }

    /// Whether the table allocates memory. The standard requires that.
    pub(crate) fn can_allocate(&self) -> bool {
        self.allocate.is_some()
    }

    /// Creates an object of the library, which owns the tensor. Nothing is copied.
    ///
    /// # Errors
    ///
    /// Any exception of the library; `BufferError` if it raises none, or returns no object. The tensor is then released, except
    /// after a success without an object: the library has the tensor then.
    pub(crate) fn create_object<'py>(
        &self,
        py: Python<'py>,
        tensor: Managed,
    ) -> PyResult<Bound<'py, PyAny>> {
        attached::check_interpreter(py).or_fetch(py)?;
        let tensor = self.order_before_consumer(py, tensor)?.into_raw();
        let mut object = ptr::null_mut();
        // SAFETY: attached, as `py` shows; an owned tensor that is not used here unless the call fails; `object` may be written.
        let status = unsafe { (self.create)(tensor.as_ptr(), &raw mut object) };
        // Taken before anything is released: what is released may run Python code.
        let raised = PyErr::take(py);
        if status != 0 {
            let none = || {
                fail!(py, PyBufferError: "the exchange table of the array's library failed to create an object, without an exception")
                    .take_exception(py)
            };
            let error = raised.unwrap_or_else(none);
            // SAFETY: `into_raw` returned the tensor. The call failed, so its ownership stays here (XAP-17).
            drop(unsafe { Managed::from_raw(tensor) });
            return Err(error);
        }
        // SAFETY: the call succeeded: a new reference to an object, or null if the table is wrong.
        let object = unsafe { Bound::from_owned_ptr_or_opt(py, object.cast()) };
        match (object, raised) {
            (_, Some(error)) => Err(error),
            (Some(object), None) => Ok(object),
            (None, None) => Err(fail!(py, PyBufferError: "the exchange table of the array's library returned no object").take_exception(py)),
        }
    }

    /// The tensor, in an order in which the library may use it: the table itself does not wait for the producer's stream.
    fn order_before_consumer(&self, py: Python<'_>, tensor: Managed) -> PyResult<Managed> {
        let device = tensor.view().device();
        if unordered_stream(device).is_none() {
            return Ok(tensor);
        }
        let mut request = ExportRequest::versioned();
        if !device.device_type.is_host_readable() {
            request.stream = self.stream_of(py, device).or_fetch(py)?;
        }
        attached::install_hooks(py);
        tensor.into_dlpack_with(&request).or_fetch(py)
    }

    /// The stream to which the library submits its next work, as a `stream` of `__dlpack__`; `None` for the default stream.
    fn stream_of(&self, py: Python<'_>, device: Device) -> Result<Option<i64>, Raised> {
        let Some(current_stream) = self.current_stream else {
            return Ok(None);
        };
        let (kind, id) = (device.device_type.0, device.device_id);
        let mut stream = ptr::null_mut();
        // SAFETY: attached, as `py` shows; `stream` may be written.
        if unsafe { current_stream(kind, id, &raw mut stream) } != 0 {
            let none = || fail!(py, PyBufferError: "the exchange table of the array's library has no stream for {device}");
            // An exception of the library stays set.
            return Err(PyErr::take(py).map_or_else(none, |error| {
                error.restore(py);
                Raised
            }));
        }
        Ok(i64::try_from(stream.addr())
            .ok()
            .filter(|handle| *handle != 0))
    }

    /// Allocates host memory by the library's allocator. The tensor is row-major and may be written.
    ///
    /// The memory is marked as shared: that no other code has it is only the library's word.
    ///
    /// # Errors
    ///
    /// The error that the library reports, as an exception; `BufferError` if it reports none, or for another tensor than was
    /// requested, which is released.
    ///
    /// # Safety
    ///
    /// The memory may be uninitialised. The caller writes all elements before any is read.
    pub(crate) unsafe fn allocate_tensor(
        &self,
        py: Python<'_>,
        shape: &[i64],
        dtype: DataType,
    ) -> PyResult<Managed> {
        attached::check_interpreter(py).or_fetch(py)?;
        let strides = row_major_strides(py, shape, dtype).or_fetch(py)?;
        let tensor = (self.call_allocator(py, shape, &strides, dtype)).or_fetch(py)?;
        // SAFETY: the allocator gave the struct away. Its lists may be those that were lent to the allocator, which live longer than
        // the tensor if `check_own_lists` fails. Its memory may be uninitialised, and is not read before it is written, by this
        // function's contract.
        let tensor = unsafe { Managed::from_raw(tensor) }.or_fetch(py)?.shared();
        check_own_lists(py, &tensor.view(), shape, &strides).or_fetch(py)?;
        check_allocated(py, &tensor.view(), shape, dtype).or_fetch(py)?;
        Ok(tensor)
    }

    /// Calls the allocator.
    fn call_allocator(
        &self,
        py: Python<'_>,
        shape: &[i64],
        strides: &[i64],
        dtype: DataType,
    ) -> Result<NonNull<DLManagedTensorVersioned>, Raised> {
        let Some(allocate) = self.allocate else {
            bail!(py, PyBufferError: "the exchange table of the array's library has no allocator");
        };
        let mut prototype = DLTensor {
            data: ptr::null_mut(),
            device: Device::CPU.into(),
            ndim: i32::try_from(shape.len()).expect("at most 64 axes"),
            dtype: dtype.into(),
            shape: shape.as_ptr().cast_mut(),
            strides: strides.as_ptr().cast_mut(),
            byte_offset: 0,
        };
        let mut reported = ReportedError::NONE;
        let mut tensor = ptr::null_mut();
        let (context, callback) = ((&raw mut reported).cast(), Some(record_error as _));
        // SAFETY: attached, as `py` shows; a prototype whose shape and strides live for the call, a place for the tensor, and a
        // callback with its context, which is used by nothing else meanwhile.
        let status = unsafe { allocate(&raw mut prototype, &raw mut tensor, context, callback) };
        let raised = PyErr::take(py);
        let tensor = NonNull::new(tensor).filter(|_| status == 0);
        match (tensor, raised) {
            (Some(tensor), None) => Ok(tensor),
            (None, None) if status == 0 => {
                bail!(py, PyBufferError: "the allocator of the array's library returned no tensor")
            }
            (None, None) => Err(reported.raise(py)),
            (tensor, Some(error)) => {
                if let Some(tensor) = tensor {
                    // SAFETY: the allocator succeeded, so it gave the struct away, and it is used only here.
                    drop(unsafe { Managed::from_raw(tensor) });
                }
                error.restore(py);
                Err(Raised)
            }
        }
    }
}

/// The strides of the tensor to allocate. Its size is checked here: an allocator may multiply without a check.
fn row_major_strides(py: Python<'_>, shape: &[i64], dtype: DataType) -> Result<Vec<i64>, Raised> {
    let mut strides = try_collect(py, shape.iter().copied())?;
    let mut items = Some(1_i64);
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        *stride = items.unwrap_or(0);
        // An axis without elements must not hide that the others are too large.
        items = items.and_then(|items| items.checked_mul(extent.max(1)));
    }
    let bits = items.and_then(|items| items.checked_mul(dtype.itemsize_bits() as i64));
    if bits.is_none_or(|bits| isize::try_from(bits / 8).is_err()) {
        let shape = DisplayTuple(shape);
        bail!(py, PyMemoryError: "an array of {dtype} with shape {shape} exceeds the address space");
    }
    Ok(strides)
}

/// Checks that the tensor has a shape and strides of its own. An allocator that copies the prototype's struct also copies its
/// pointers, and those lists are freed after the call.
fn check_own_lists(
    py: Python<'_>,
    found: &TensorRef<'_>,
    shape: &[i64],
    strides: &[i64],
) -> Result<(), Raised> {
    let [shape, strides] = [shape, strides].map(<[i64]>::as_ptr_range);
    let is_lent = |list: &[i64]| {
        let start = list.as_ptr();
        !list.is_empty() && (shape.contains(&start) || strides.contains(&start))
    };
    if is_lent(found.shape()) || is_lent(found.strides()) {
        bail!(py, PyBufferError:
            "the allocator of the array's library returned a tensor with the shape or strides of the prototype, which are only \
             valid during the call; return a `Vec` by `Like::new` instead");
    }
    Ok(())
}

/// Checks that the allocator returned what was requested.
fn check_allocated(
    py: Python<'_>,
    found: &TensorRef<'_>,
    shape: &[i64],
    dtype: DataType,
) -> Result<(), Raised> {
    let is_same = found.shape() == shape && found.dtype() == dtype && found.device() == Device::CPU;
    if is_same && found.is_contiguous() && !found.is_read_only() {
        return Ok(());
    }
    let access = if found.is_read_only() {
        "read-only"
    } else {
        "writable"
    };
    bail!(py, PyBufferError:
        "the allocator of the array's library was asked for a writable {dtype} tensor on cpu with shape {}, row-major, and returned \
         a {access} {} tensor on {} with shape {} and strides {}; return a `Vec` by `Like::new` instead",
        DisplayTuple(shape), found.dtype(), found.device(), DisplayTuple(found.shape()), DisplayTuple(found.strides()))
}

/// The error that an allocator reports. It needs no memory, which the allocator may lack.
struct ReportedError {
    kind: ShortText<32>,
    message: ShortText<512>,
}

impl ReportedError {
    const NONE: Self = Self {
        kind: ShortText::EMPTY,
        message: ShortText::EMPTY,
    };

    /// Raises the exception that the allocator named, with its message.
    #[cold]
    fn raise(&self, py: Python<'_>) -> Raised {
        macro_rules! raise_known {
            ($($name:literal: $class:ty,)*) => {
                match self.kind.as_str() {
                    $($name => fail!(py, $class: "the allocator of the array's library failed: {}", self.message.as_str()),)*
                    "" => fail!(py, PyBufferError: "the allocator of the array's library failed, and reported no error"),
                    kind => fail!(py, PyRuntimeError: "the allocator of the array's library failed: {kind}: {}", self.message.as_str()),
                }
            };
        }
        raise_known! {
            "BufferError": PyBufferError,
            "IndexError": PyIndexError,
            "MemoryError": PyMemoryError,
            "NotImplementedError": PyNotImplementedError,
            "OverflowError": PyOverflowError,
            "RuntimeError": PyRuntimeError,
            "TypeError": PyTypeError,
            "ValueError": PyValueError,
        }
    }
}

/// A string of at most `N` bytes; longer ones are cut.
struct ShortText<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> ShortText<N> {
    const EMPTY: Self = Self {
        bytes: [0; N],
        len: 0,
    };

    /// Copies a string of C.
    ///
    /// # Safety
    ///
    /// `text` is null, or the address of a string that ends with a zero.
    unsafe fn copy_from(&mut self, text: *const c_char) {
        self.len = 0;
        while self.len < N && !text.is_null() {
            // SAFETY: a valid string by this function's contract, and no byte before this one was its end.
            let at = unsafe { text.cast::<u8>().add(self.len) };
            // SAFETY: `at` is the address of a byte of the string, or of its end.
            let byte = unsafe { at.read() };
            if byte == 0 {
                break;
            }
            self.bytes[self.len] = byte;
            self.len += 1;
        }
    }

    /// The text up to the first byte that is not UTF-8.
    fn as_str(&self) -> &str {
        let bytes = &self.bytes[..self.len];
        let valid = core::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        core::str::from_utf8(&bytes[..valid]).unwrap_or_default()
    }
}

/// The callback for allocators: stores the error in its context. If an allocator reports several, the last one counts.
unsafe extern "C" fn record_error(
    context: *mut c_void,
    kind: *const c_char,
    message: *const c_char,
) {
    let Some(mut reported) = NonNull::new(context.cast::<ReportedError>()) else {
        return;
    };
    // SAFETY: an allocator passes the context that it received, which `allocate` keeps alive and does not use meanwhile.
    let reported = unsafe { reported.as_mut() };
    // SAFETY: an allocator passes a string, or null.
    unsafe { reported.kind.copy_from(kind) };
    // SAFETY: an allocator passes a string, or null.
    unsafe { reported.message.copy_from(message) };
}
