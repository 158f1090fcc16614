//! Support for `pickle` and `copy`: how a tensor is reduced and restored.
//!
//! ```text
//! dumps ──▶ __reduce_ex__ ──▶ class._restore, (bytes, data type, shape) ──▶ loads ──▶ _restore ──▶ a tensor over the bytes
//! ```
//!
//! With protocol 5 the bytes are a `PickleBuffer` over the memory itself: nothing is copied with a `buffer_callback`, and
//! without one pickle copies the bytes once. A read-only tensor is restored read-only, unless it is so by the key `readonly`. A
//! strided tensor is copied to C order first, and device memory is copied to the host.

use core::fmt;

use dlpack_core::binding::reinterpret_bytes;
use dlpack_core::{DLPack as _, DataType, Device, Error, ExportRequest, FromDLPack, Managed};
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyMemoryView, PyModule, PyString, PyTuple, PyType,
};
use pyo3::{PyTypeInfo, intern, prelude::*, sync::PyOnceLock};

use crate::class::tensor::Tensor;
use crate::error::{OrRaise, raise_class};
use crate::export::{is_same_variant, root_tensor};
use crate::import::{from_dlpack, from_dlpack_with};
use crate::library::imported_module;
use crate::{values, vtable::Exports};

/// A class with objects that can be restored from a pickle.
#[diagnostic::on_unimplemented(
    message = "objects of `{Self}` cannot be pickled: they cannot be restored from a tensor",
    label = "the class does not derive `FromDLPack`",
    note = "add `FromDLPack` to its derives",
    note = "if that cannot restore it, as with several tensors, write `fn __reduce__` instead of `pickle`: it returns the class and the arguments of its constructor, such as its tensors"
)]
pub trait Pickles: Exports + FromDLPack {}

#[diagnostic::do_not_recommend]
impl<T: Exports + FromDLPack> Pickles for T {}

/// The result of `__reduce_ex__` for an object of a class with `__dlpack_restore__`.
#[doc(hidden)]
pub fn reduce<'py, T: Pickles>(
    object: &Bound<'py, T>,
    protocol: i32,
) -> PyResult<Bound<'py, PyAny>> {
    let class = T::type_object(object.py());
    let restore = intern!(object.py(), "__dlpack_restore__");
    let take = || match root_tensor(object)? {
        Some(found) => Ok(found),
        None => Ok((from_dlpack(object.as_any())?, false)),
    };
    if is_variant(&object.as_any().get_type(), &class)? {
        let again = || Ok(take()?.0);
        if !is_same_variant(object, &restore_value::<T>(object.py(), again)?)? {
            let words = format_args!(
                "this variant of `{}` would be restored as another one, which takes the same arrays: give the class a `__reduce__` of its own",
                class.qualname()?
            );
            return Err(pickling_error(object.py(), words));
        }
    }
    reduce_object(object.as_any(), take, &class, restore, protocol)
}

/// Restores an object from its bytes, data type and shape.
pub(crate) type Restore<T> = fn(&Bound<'_, PyAny>, Numbers, &Bound<'_, PyAny>) -> PyResult<T>;

pub(super) fn restore_object<T: Pickles>(
    bytes: &Bound<'_, PyAny>,
    dtype: Numbers,
    shape: &Bound<'_, PyAny>,
) -> PyResult<T> {
    restore_value(bytes.py(), || tensor_of(bytes, dtype, shape))
}

/// Converts the tensor that `take` returns.
fn restore_value<T: Pickles>(py: Python<'_>, take: impl Fn() -> PyResult<Managed>) -> PyResult<T> {
    let tensor = take()?;
    let rank = tensor.view().shape().len();
    let mut restored = T::from_dlpack(tensor);
    // A class with `order = "F"` adopts memory in that order only. The last axes may be those of its elements, which are in C order.
    for leading in (2..=rank).rev() {
        if !matches!(restored, Err(Error::NotContiguous { .. })) {
            break;
        }
        restored = copy_to_column_major(take()?, leading).and_then(T::from_dlpack);
    }
    restored.or_fetch(py)
}

/// A copy with the first `leading` axes in Fortran order.
fn copy_to_column_major(tensor: Managed, leading: usize) -> Result<Managed, Error> {
    let rank = tensor.view().shape().len();
    let axes: Vec<_> = (0..leading).rev().chain(leading..rank).collect();
    let mut request = ExportRequest::versioned();
    request.copy = Some(true);
    let copy = tensor.permute(&axes)?.into_dlpack_with(&request)?;
    copy.permute(&axes)
}

/// The result of `__reduce_ex__` for a [`Tensor`].
pub(super) fn reduce_tensor<'py>(
    tensor: &Bound<'py, Tensor>,
    protocol: i32,
) -> PyResult<Bound<'py, PyAny>> {
    let restore = intern!(tensor.py(), "_restore");
    let take = || Ok((from_dlpack(tensor.as_any())?, false));
    reduce_object(tensor.as_any(), take, &tensor.get_type(), restore, protocol)
}

/// The code, bits and lanes of a data type, and whether sub-byte values are padded to a byte each.
pub(crate) type Numbers = (u8, u8, u16, bool);

/// `take` returns the tensor, and whether Rust code may write to its memory.
fn reduce_object<'py>(
    object: &Bound<'py, PyAny>,
    take: impl FnOnce() -> PyResult<(Managed, bool)>,
    class: &Bound<'py, PyType>,
    restore: &Bound<'py, PyString>,
    protocol: i32,
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if !object.get_type().is(class) && !is_variant(&object.get_type(), class)? {
        let (derived, base) = (object.get_type().qualname()?, class.qualname()?);
        return Err(pickling_error(
            py,
            format_args!(
                "`{derived}` derives from `{base}`, whose `__reduce_ex__` knows nothing of it: give it one of its own"
            ),
        ));
    }
    set_module(class)?;
    let (tensor, rust_writes) = take()?;
    let tensor = Tensor::new(tensor);
    let read_only = tensor.is_read_only()?;
    let packed = copy_to_c_order(py, tensor)?;
    let view = packed.view();
    let dtype = view.dtype();
    let shape = values::new_int_tuple(py, view.shape().iter().copied())?;
    let numbers = [dtype.code().into(), dtype.bits().into(), dtype.lanes()].map(u64::from);
    let [code, bits, lanes] = numbers.map(|number| values::new_unsigned_int(py, number));
    let is_padded = values::new_bool(py, dtype.is_padded());
    let numbers = values::new_tuple(py, [code, bits, lanes, Ok(is_padded)])?;
    let bytes = bytes_of(py, packed)?;
    // The copy to C order is writable, even if the tensor is read-only.
    let bytes = match read_only {
        true => bytes.call_method0(intern!(py, "toreadonly"))?,
        false => bytes.into_any(),
    };
    let bytes = match (protocol, read_only) {
        // With the key `readonly`, only Python must not write to the memory. Its bytes are copied, so that Rust code can write to
        // those of the restored object.
        (_, true) if rust_writes => values::call_one(&py.get_type::<PyByteArray>(), bytes)?,
        (5.., _) => pickle_buffer_of(&bytes)?,
        (_, true) => values::call_one(&py.get_type::<PyBytes>(), bytes)?,
        (_, false) => values::call_one(&py.get_type::<PyByteArray>(), bytes)?,
    };
    let values = [bytes, numbers.into_any(), shape.into_any()].map(Ok);
    let values = values::new_tuple(py, values)?;
    let made = values::new_tuple(py, [class.getattr(restore), Ok(values.into_any())])?;
    Ok(made.into_any())
}

/// Whether a class is that of a variant of an enum: PyO3 derives it from the class of the enum, stores it there as an attribute, and
/// does not let Python derive from it.
fn is_variant(found: &Bound<'_, PyType>, class: &Bound<'_, PyType>) -> PyResult<bool> {
    /// `Py_TPFLAGS_BASETYPE`
    const IS_BASE: u64 = 1 << 10;

    let py = class.py();
    let flags: u64 = found.getattr(intern!(py, "__flags__"))?.extract()?;
    if found.is(class) || flags & IS_BASE != 0 {
        return Ok(false);
    }
    let attributes = class.getattr(intern!(py, "__dict__"))?;
    for value in attributes.call_method0(intern!(py, "values"))?.try_iter()? {
        if value?.is(found) {
            return found.is_subclass(class);
        }
    }
    Ok(false)
}

/// The tensor in host memory and in C order; a copy if it is not.
fn copy_to_c_order(py: Python<'_>, tensor: Tensor) -> PyResult<Tensor> {
    let view = tensor.view();
    if view.device() == Device::CPU && view.is_contiguous() {
        return Ok(tensor);
    }
    let tensor = Bound::new(py, tensor)?;
    from_dlpack_with(tensor.as_any(), Some(Device::CPU), Some(true)).map(Tensor::new)
}

/// A view of the bytes of a packed tensor, which keeps them alive. The tensor's own buffer would have a format, which the
/// buffer protocol lacks for types like bfloat16.
fn bytes_of(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyMemoryView>> {
    let len = i64::try_from(tensor.view().len_bytes()).expect("no more than memory has");
    let bytes = reinterpret_bytes(tensor.into_managed(), DataType::U8, &[len]).or_fetch(py)?;
    PyMemoryView::from(Bound::new(py, Tensor::new(bytes))?.as_any())
}

/// A `PickleBuffer` over the memory of an object.
fn pickle_buffer_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

    let py = object.py();
    let find = || {
        let class = py.import("pickle")?.getattr("PickleBuffer")?;
        Ok(class.cast_into::<PyType>()?.unbind())
    };
    let class = values::get_or_make(&CLASS, py, find)?.bind(py);
    values::call_one(class, object.clone())
}

/// A tensor over pickled bytes. Copies them only if they are not aligned for the data type.
///
/// Python code can call this with any arguments, so the result is validated like a tensor of another library.
pub(super) fn tensor_of(
    bytes: &Bound<'_, PyAny>,
    (code, bits, lanes, is_padded): Numbers,
    shape: &Bound<'_, PyAny>,
) -> PyResult<Managed> {
    let py = bytes.py();
    let dtype = DataType::new(code, bits, lanes);
    let dtype = if is_padded { dtype.padded() } else { dtype };
    let shape = shape.cast::<PyTuple>()?;
    let (found, most) = (shape.len(), 64);
    let mut extents = [0; 64];
    let extents = extents.get_mut(..found);
    let extents = extents
        .ok_or(Error::TooManyAxes { found, most })
        .or_fetch(py)?;
    for (place, extent) in extents.iter_mut().zip(shape.iter()) {
        *place = extent.extract()?;
    }
    // `raw` raises an error for a buffer that is not contiguous.
    let flat = pickle_buffer_of(bytes)?.call_method0(intern!(py, "raw"))?;
    match reinterpret_bytes(from_dlpack(&flat)?, dtype, extents) {
        Err(Error::Misaligned { .. }) => {
            let copy = if flat.getattr(intern!(py, "readonly"))?.is_truthy()? {
                from_dlpack(&py.get_type::<PyBytes>().call1((&flat,))?)?
            } else {
                from_dlpack_with(&flat, None, Some(true))?
            };
            reinterpret_bytes(copy, dtype, extents).or_fetch(py)
        }
        tensor => tensor.or_fetch(py),
    }
}

/// Sets the class's `__module__` to a module that exports it, where pickle can find it. For [`Tensor`] that is the module of
/// the crate that exports the class.
fn set_module(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    let (name, attribute) = (class.qualname()?, intern!(py, "__module__"));
    let has_it = |module: &Bound<'_, PyAny>| {
        let found = module
            .cast::<PyModule>()
            .ok()?
            .dict()
            .get_item(&name)
            .ok()??;
        found.is(class).then_some(())
    };
    let said = class.getattr(attribute)?.cast_into::<PyString>().ok();
    let said = said.and_then(|said| imported_module(py, &said));
    if said.is_some_and(|module| has_it(&module).is_some()) {
        return Ok(());
    }
    let modules = py
        .import(intern!(py, "sys"))?
        .getattr(intern!(py, "modules"))?;
    let modules = modules.cast_into::<PyDict>()?;
    let mut found = None;
    for (key, module) in modules.copy()?.iter() {
        let is_script = key.eq(intern!(py, "__main__"))? || key.eq(intern!(py, "__mp_main__"))?;
        if is_script || has_it(&module).is_none() {
            continue;
        }
        // Other modules may have imported the class. A Python module has `__builtins__`; the Rust module that defines the class
        // does not.
        let own = module.cast::<PyModule>()?.dict();
        let is_home = !own.contains(intern!(py, "__builtins__"))?;
        if is_home || found.is_none() {
            found = Some(key);
        }
        if is_home {
            break;
        }
    }
    let Some(found) = found else {
        let how = if class.is(Tensor::type_object(py)) {
            "write `#[pymodule_export] use dlpack_pyo3::Tensor;` in your `#[pymodule]`"
        } else {
            "write `#[pyclass(module = \"your_module\")]`, and export it from that `#[pymodule]`"
        };
        return Err(pickling_error(
            py,
            format_args!("no module that was imported has the class `{name}`: {how}"),
        ));
    };
    class.setattr(attribute, found)
}

fn pickling_error(py: Python<'_>, words: fmt::Arguments<'_>) -> PyErr {
    let class = || {
        let pickle = py.import(intern!(py, "pickle"))?;
        let class = pickle.getattr(intern!(py, "PicklingError"))?;
        Ok::<_, PyErr>(class.cast_into::<PyType>()?)
    };
    class().map_or_else(
        |error| error,
        |class| raise_class(&class, words).take_exception(py),
    )
}
