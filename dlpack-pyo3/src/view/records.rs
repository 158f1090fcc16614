//! Views of structured arrays: converts an argument, and raises the error if it does not fit.
//!
//! Address, shape, strides and data type are read in one step, together with the references that keep the memory alive. If Python
//! code changes the array afterwards, it changes neither these numbers nor the data type that is compared.
#![expect(unsafe_code, reason = "promises that the memory is kept alive")]

use core::any::type_name;

use dlpack_core::Error;
use dlpack_core::array::Rank;
use dlpack_core::binding::UnownedArray;
use dlpack_core::element::RecordLayout;
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::{prelude::*, types::PyMemoryView};

use crate::error::{DisplayTuple, OrRaise, fail};
use crate::import::numpy::{ArraySnapshot, take_snapshot};
use crate::keepalive::attached;
use crate::library::{lossy::Loss, numpy, structured};
use crate::view::leased::{HostView, Keeper, Leased};
use crate::view::options::Options;

impl<V: HostView, O: Options> Leased<V, O> {
    /// The view of a structured array.
    #[inline(never)]
    pub(super) fn from_records(
        object: &Bound<'_, PyAny>,
        layout: &'static RecordLayout,
    ) -> PyResult<Self> {
        const {
            assert!(
                !O::CONVERT,
                "records are not converted: take a `View` of them without `Convert`"
            );
        }
        let needs = NeedsRecords {
            name: type_name::<V::Element>(),
            layout,
            rank: V::List::RANK,
            promise: O::PROMISE,
        };
        let ArraySnapshot {
            data,
            shape,
            strides,
            read_only,
            dtype,
            keepalive,
        } = needs.read_array(object)?;
        if !structured::is_record(&dtype, layout)? || layout.size() != size_of::<V::Element>() {
            return Err(needs.different_fields(&dtype, &shape));
        }
        let found = UnownedArray::from_records(data, &shape, &strides, read_only, V::WRITES);
        let found = found.map_err(|error| needs.unsuitable_array(object, &error, &shape))?;
        if O::CONTIGUOUS && !found.is_contiguous() {
            let error = Error::NotContiguous {
                shape: to_i64_list(&shape),
                strides: to_i64_list(&strides),
            };
            return Err(needs.unsuitable_array(object, &error, &shape));
        }
        let apart = Self::guard_overlaps(found.span());
        let apart = apart.map_err(|error| needs.unsuitable_array(object, &error, &shape))?;
        let keeper = Keeper::Numpy {
            array: keepalive,
            read_only,
        };
        // SAFETY: the keeper has references to the array that keeps the memory. Each item has the size of the array's data type,
        // which is that of a record. All other writes there come from Python.
        Ok(unsafe { Self::new_leased(found, keeper, apart) })
    }
}

/// The requirements of a view of records on its argument.
struct NeedsRecords {
    /// The path of the struct in Rust.
    name: &'static str,
    layout: &'static RecordLayout,
    rank: Option<usize>,
    promise: bool,
}

impl NeedsRecords {
    /// Reads the array of an argument: a NumPy array, or the one that NumPy makes of the argument's buffer.
    fn read_array<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<ArraySnapshot<'py>> {
        let py = object.py();
        attached::check_interpreter(py).or_fetch(py)?;
        numpy::find_if_imported(py);
        // A view would lose the mask of a masked array.
        if let Some(loss) = Loss::of_object(object)? {
            return Err(self.type_error(object, &format!("found {loss}")));
        }
        if let Some(snapshot) = take_snapshot(object).or_fetch(py)? {
            return Ok(snapshot);
        }
        let buffer = match PyMemoryView::from(object) {
            Ok(buffer) => buffer,
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                let class = object.get_type();
                let found = format!(
                    "found {class}, which is no array; pass numpy.array(x, dtype) with a structured dtype, \
                     or DataFrame.to_records(index=False)"
                );
                return Err(self.type_error(object, &found));
            }
            Err(error) => return Err(error),
        };
        // NumPy gets the buffer, because it would copy some objects, such as its own scalars.
        let array = numpy::asarray_of(&buffer)?;
        let snapshot = take_snapshot(&array).or_fetch(py)?;
        snapshot.ok_or_else(|| {
            let text = "this NumPy has another C API than versions 1 and 2, which are known here";
            fail!(py, PyImportError: "{text}").take_exception(py)
        })
    }

    #[cold]
    fn type_error(&self, object: &Bound<'_, PyAny>, found: &str) -> PyErr {
        let py = object.py();
        fail!(py, PyTypeError: "expected {}, {found}", self.expected_array()).take_exception(py)
    }

    /// What is expected, such as "an array of records `Trade` of shape (_,)".
    fn expected_array(&self) -> String {
        let name = self.name.rsplit("::").next().unwrap_or(self.name);
        let shape = match self.rank {
            None => "..".to_owned(),
            Some(1) => "_,".to_owned(),
            Some(rank) => vec!["_"; rank].join(", "),
        };
        format!("an array of records `{name}` of shape ({shape})")
    }

    /// The error for an array whose data type has other fields.
    #[cold]
    fn different_fields(&self, dtype: &Bound<'_, PyAny>, shape: &[isize]) -> PyErr {
        let py = dtype.py();
        let (text, shape) = (self.expected_array(), to_i64_list(shape));
        match structured::side_by_side(self.layout, dtype) {
            Ok(table) => fail!(py, PyTypeError:
                "expected {text}, found one of shape {} whose items differ:{table}", DisplayTuple(&shape))
            .take_exception(py),
            Err(error) => error,
        }
    }

    /// The error for an array of these records that does not fit otherwise.
    #[cold]
    fn unsuitable_array(&self, object: &Bound<'_, PyAny>, error: &Error, shape: &[isize]) -> PyErr {
        let shape = to_i64_list(shape);
        let shape = DisplayTuple(&shape);
        let found = match error {
            Error::Rank { .. } => format!("found one of shape {shape}"),
            Error::ReadOnly => {
                return self.type_error(
                    object,
                    "to write to, found a read-only one; pass a copy of it",
                );
            }
            Error::NotContiguous { strides, .. } => format!(
                "contiguous in row-major order, found one of shape {shape} with byte strides {}; pass \
                 numpy.ascontiguousarray(x)",
                DisplayTuple(strides)
            ),
            Error::Borrowed => format!(
                "that shares no memory with another argument or a kept view, found one of shape {shape} that may share memory, \
                 and one of the two is written; pass a copy of it{}",
                if self.promise {
                    ""
                } else {
                    ", or allow it in Rust by `view::MayOverlap`"
                }
            ),
            _ => format!("found one of shape {shape}: {error}"),
        };
        self.type_error(object, &found)
    }
}

/// Converts shape or strides to the integers of core.
fn to_i64_list(numbers: &[isize]) -> Vec<i64> {
    numbers.iter().map(|&number| number as i64).collect()
}
