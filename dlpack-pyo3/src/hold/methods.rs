//! PyO3 as `#[pymethods]` of a class below `#[dlpack_pymethods]` sees it: all of it, but for the functions by which a
//! method borrows its object. Where an array over the object is alive they fail, and say so.
//!
//! PyO3 raises "Already borrowed" inside the function that Python calls, before any code of the class runs, and knows
//! nothing of arrays. Its macro names these functions by a path that `#[pyo3(crate = "..")]` begins, so they can be
//! others, which call PyO3's own: a method that succeeds takes not one instruction more. Wrapping each method in Python
//! would cost a call, and a signature with another receiver would show in stubs and break macros within the block.
//!
//! `PyRef<Self>` and `PyRefMut<Self>` as receivers, arguments of the class, and `#[pyo3(get, set)]` do not go this way.
#![expect(
    unsafe_code,
    reason = "PyO3 calls its functions for slots in unsafe blocks"
)]

pub use pyo3::*;

/// With the functions that are ours.
pub mod impl_ {
    pub use pyo3::impl_::*;

    /// With the functions that are ours.
    pub mod extract_argument {
        pub use pyo3::impl_::extract_argument::*;

        use pyo3::exceptions::PyRuntimeError;
        use pyo3::impl_::extract_argument as theirs;
        use pyo3::pyclass::boolean_struct::False;
        use pyo3::{Borrowed, PyAny, PyClass, PyClassGuard, PyClassGuardMut, PyErr, PyResult};

        /// Borrows the object of a `&self` method.
        #[inline]
        pub fn extract_pyclass_ref<'a, 'holder, T: PyClass>(
            object: Borrowed<'a, '_, PyAny>,
            holder: &'holder mut Option<PyClassGuard<'a, T>>,
        ) -> PyResult<&'holder T> {
            let explain =
                |error| explain(error, object, <T as PyClass>::NAME, ["read", "writes to"]);
            theirs::extract_pyclass_ref(object, holder).map_err(explain)
        }

        /// Borrows the object of a `&mut self` method.
        #[inline]
        pub fn extract_pyclass_ref_mut<'a, 'holder, T: PyClass<Frozen = False>>(
            object: Borrowed<'a, '_, PyAny>,
            holder: &'holder mut Option<PyClassGuardMut<'a, T>>,
        ) -> PyResult<&'holder mut T> {
            let explain =
                |error| explain(error, object, <T as PyClass>::NAME, ["changed", "shares"]);
            theirs::extract_pyclass_ref_mut(object, holder).map_err(explain)
        }

        /// The same in a slot, whose object need not be looked at; it is all the same.
        ///
        /// # Safety
        ///
        /// None is asked for.
        #[inline]
        pub unsafe fn extract_pyclass_ref_trusted<'a, 'holder, T: PyClass>(
            object: Borrowed<'a, '_, PyAny>,
            holder: &'holder mut Option<PyClassGuard<'a, T>>,
        ) -> PyResult<&'holder T> {
            extract_pyclass_ref(object, holder)
        }

        /// As above.
        ///
        /// # Safety
        ///
        /// None is asked for.
        #[inline]
        pub unsafe fn extract_pyclass_ref_mut_trusted<'a, 'holder, T: PyClass<Frozen = False>>(
            object: Borrowed<'a, '_, PyAny>,
            holder: &'holder mut Option<PyClassGuardMut<'a, T>>,
        ) -> PyResult<&'holder mut T> {
            extract_pyclass_ref_mut(object, holder)
        }

        /// PyO3's exception, of the same class, with the reason and what to do.
        #[cold]
        #[inline(never)]
        fn explain(
            error: PyErr,
            object: Borrowed<'_, '_, PyAny>,
            class: &str,
            [done, how]: [&str; 2],
        ) -> PyErr {
            let py = object.py();
            if !error.is_instance_of::<PyRuntimeError>(py) {
                return error;
            }
            let theirs = error.value(py);
            crate::error::fail!(py, PyRuntimeError:
                "{theirs}: this `{class}` cannot be {done} while an array that {how} its data is alive; drop that array first \
                 (`del array`), or make it a copy (`numpy.array(obj)`). If there is none, another method of the object is running")
            .fetch(py)
        }
    }
}
