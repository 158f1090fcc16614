//! Views of structured arrays: how one is made of an argument, and the text where it is something else.
//!
//! Address, shape, strides and data type are read once, in one step, together with the references that keep the memory. What
//! Python code does to the array afterwards changes neither these numbers nor the data type that is compared.
#![expect(unsafe_code, reason = "keeps the memory of what was found")]

use core::any::type_name;

use dlpack_core::Error;
use dlpack_core::array::Rank;
use dlpack_core::binding::UnownedArray;
use dlpack_core::element::RecordLayout;
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::{prelude::*, types::PyMemoryView};

use crate::error::{DisplayTuple, fail};
use crate::import::numpy::{Snapshot, snapshot};
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
        let Snapshot {
            data,
            shape,
            strides,
            read_only,
            dtype,
            keeper,
        } = needs.snapshot(object)?;
        if !structured::is_record(&dtype, layout)? || layout.size() != size_of::<V::Element>() {
            return Err(needs.other_records(&dtype, &shape));
        }
        let found = UnownedArray::from_records(data, &shape, &strides, read_only, V::WRITES);
        let found = found.map_err(|error| needs.refusal(object, &error, &shape))?;
        if O::CONTIGUOUS && !found.is_contiguous() {
            let error = Error::NotContiguous {
                shape: wide(&shape),
                strides: wide(&strides),
            };
            return Err(needs.refusal(object, &error, &shape));
        }
        let apart = Self::guard_overlaps(found.span());
        let apart = apart.map_err(|error| needs.refusal(object, &error, &shape))?;
        let keeper = Keeper::Numpy {
            array: keeper,
            read_only,
        };
        // SAFETY: references to the array that keeps the memory, in which so many bytes lie at each index as its data type has
        // and a record takes. What else writes there is Python's.
        Ok(unsafe { Self::new_leased(found, keeper, apart) })
    }
}

/// What a view of records needs of its argument.
struct NeedsRecords {
    /// The path of the struct in Rust.
    name: &'static str,
    layout: &'static RecordLayout,
    rank: Option<usize>,
    promise: bool,
}

impl NeedsRecords {
    /// What lies in the array of an argument: NumPy's own, of whatever class, or what NumPy makes of a buffer.
    fn snapshot<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Snapshot<'py>> {
        let py = object.py();
        numpy::was_found(py);
        // The mask of a masked array would be lost.
        if let Some(loss) = Loss::of_object(object)? {
            return Err(self.fail(object, &format!("found {loss}")));
        }
        if let Some(snapshot) = snapshot(object) {
            return Ok(snapshot);
        }
        let Ok(buffer) = PyMemoryView::from(object) else {
            let class = object.get_type();
            let found = format!(
                "found {class}, which is no array; pass numpy.array(x, dtype) with a structured dtype, \
                 or DataFrame.to_records(index=False)"
            );
            return Err(self.fail(object, &found));
        };
        // Of the buffer: of some objects, such as scalars of NumPy's own, it would make a copy.
        let array = numpy::asarray(&buffer)?;
        snapshot(&array).ok_or_else(|| {
            let text = "this NumPy has another C API than versions 1 and 2, which are known here";
            fail!(py, PyImportError: "{text}").take_exception(py)
        })
    }

    #[cold]
    fn fail(&self, object: &Bound<'_, PyAny>, found: &str) -> PyErr {
        let py = object.py();
        fail!(py, PyTypeError: "expected {}, {found}", self.text()).take_exception(py)
    }

    /// As in "an array of records `Trade` of shape (_,)".
    fn text(&self) -> String {
        let name = self.name.rsplit("::").next().unwrap_or(self.name);
        let shape = match self.rank {
            None => "..".to_owned(),
            Some(1) => "_,".to_owned(),
            Some(rank) => vec!["_"; rank].join(", "),
        };
        format!("an array of records `{name}` of shape ({shape})")
    }

    /// What is raised for items of another type.
    #[cold]
    fn other_records(&self, dtype: &Bound<'_, PyAny>, shape: &[isize]) -> PyErr {
        let py = dtype.py();
        let (text, shape) = (self.text(), wide(shape));
        match structured::side_by_side(self.layout, dtype) {
            Ok(table) => fail!(py, PyTypeError:
                "expected {text}, found one of shape {} whose items differ:{table}", DisplayTuple(&shape))
            .take_exception(py),
            Err(error) => error,
        }
    }

    /// What is raised for an array of these records that does not fit.
    #[cold]
    fn refusal(&self, object: &Bound<'_, PyAny>, error: &Error, shape: &[isize]) -> PyErr {
        let shape = wide(shape);
        let shape = DisplayTuple(&shape);
        let found = match error {
            Error::Rank { .. } => format!("found one of shape {shape}"),
            Error::ReadOnly => {
                return self.fail(
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
                "that shares no memory with another argument or a kept view, found one of shape {shape} that does, and one of \
                 the two is written; pass a copy of it{}",
                if self.promise {
                    ""
                } else {
                    ", or allow it in Rust by `view::MayOverlap`"
                }
            ),
            _ => format!("found one of shape {shape}: {error}"),
        };
        self.fail(object, &found)
    }
}

/// The numbers of a list as core has them.
fn wide(numbers: &[isize]) -> Vec<i64> {
    numbers.iter().map(|&number| number as i64).collect()
}
