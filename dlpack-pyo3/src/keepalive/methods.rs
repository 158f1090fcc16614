//! A re-export of PyO3 for the code that `#[pymethods]` generates inside `#[dlpack_pymethods]`. The functions by which a method
//! borrows its object are replaced: their errors name an array over the object as the likely reason.
//!
//! PyO3 raises "Already borrowed" inside of the function that CPython calls, before any code of the class runs, and knows
//! nothing of arrays. The paths in the code that its macro generates start with `#[pyo3(crate = "..")]`, so that attribute can
//! redirect them to the functions here, which call PyO3's and add no instruction to the path that succeeds. Wrapping each
//! method in Python would cost a call, and another receiver type would show in stubs and break macros inside of the block.
//!
//! `PyRef<Self>` and `PyRefMut<Self>` as receivers, arguments of the class, and `#[pyo3(get, set)]` do not use these functions.
#![expect(
    unsafe_code,
    reason = "PyO3 calls its functions for slots in unsafe blocks"
)]

pub use pyo3::*;

/// PyO3's `impl_`, with our `extract_argument`.
pub mod impl_ {
    pub use pyo3::impl_::*;

    /// PyO3's `extract_argument`, with our functions for receivers.
    pub mod extract_argument {
        pub use pyo3::impl_::extract_argument::*;

        use core::marker::PhantomData;

        use pyo3::exceptions::PyRuntimeError;
        use pyo3::impl_::extract_argument as theirs;
        use pyo3::pyclass::boolean_struct::False;
        use pyo3::{Borrowed, PyAny, PyClass, PyClassGuard, PyClassGuardMut, PyErr, PyResult};

        /// Borrows the receiver of a `&self` method.
        #[inline]
        pub fn extract_pyclass_ref<'a, 'holder, T: PyClass>(
            object: Borrowed<'a, '_, PyAny>,
            holder: &'holder mut Option<PyClassGuard<'a, T>>,
        ) -> PyResult<&'holder T> {
            let explain = |error| {
                explain_borrow_error(error, object, <T as PyClass>::NAME, ["read", "writes to"])
            };
            theirs::extract_pyclass_ref(object, holder).map_err(explain)
        }

        /// The borrow for `&mut self` methods of a class `T`. Implemented for the marker of a class that is not frozen.
        #[diagnostic::on_unimplemented(
            message = "`{T}` is frozen, so none of its methods can take `&mut self`",
            label = "a method of this block takes `&mut self`",
            note = "remove `frozen` from `#[pyclass(frozen)]`: an array over the object then keeps it borrowed, and the method raises while that array lives",
            note = "or take `&self`, and keep the data that changes in a `SharedBuffer`, which `&self` methods can write"
        )]
        pub trait MutBorrow<'a, T> {
            /// Keeps the object borrowed.
            type Guard;

            /// Borrows the object, with the guard in `holder`.
            ///
            /// # Errors
            ///
            /// PyO3's error if the object is borrowed already.
            fn borrow_receiver<'holder>(
                object: Borrowed<'a, '_, PyAny>,
                holder: &'holder mut Option<Self::Guard>,
            ) -> PyResult<&'holder mut T>;
        }

        #[diagnostic::do_not_recommend]
        impl<'a, T: PyClass<Frozen = False>> MutBorrow<'a, T> for PhantomData<False> {
            type Guard = PyClassGuardMut<'a, T>;

            #[inline]
            fn borrow_receiver<'holder>(
                object: Borrowed<'a, '_, PyAny>,
                holder: &'holder mut Option<Self::Guard>,
            ) -> PyResult<&'holder mut T> {
                theirs::extract_pyclass_ref_mut(object, holder)
            }
        }

        /// The guard of a `&mut self` method of a class.
        type GuardOf<'a, T> = <PhantomData<<T as PyClass>::Frozen> as MutBorrow<'a, T>>::Guard;

        /// Borrows the receiver of a `&mut self` method.
        #[inline]
        pub fn extract_pyclass_ref_mut<'a, 'holder, T: PyClass>(
            object: Borrowed<'a, '_, PyAny>,
            holder: &'holder mut Option<GuardOf<'a, T>>,
        ) -> PyResult<&'holder mut T>
        where
            PhantomData<T::Frozen>: MutBorrow<'a, T>,
        {
            let explain = |error| {
                explain_borrow_error(error, object, <T as PyClass>::NAME, ["changed", "shares"])
            };
            PhantomData::<T::Frozen>::borrow_receiver(object, holder).map_err(explain)
        }

        /// Borrows the receiver of a slot function with `&self`. CPython has checked its type; [`extract_pyclass_ref`] checks
        /// it again.
        ///
        /// # Safety
        ///
        /// No requirement; `unsafe` only because PyO3's function of this name is.
        #[inline]
        pub unsafe fn extract_pyclass_ref_trusted<'a, 'holder, T: PyClass>(
            object: Borrowed<'a, '_, PyAny>,
            holder: &'holder mut Option<PyClassGuard<'a, T>>,
        ) -> PyResult<&'holder T> {
            extract_pyclass_ref(object, holder)
        }

        /// Borrows the receiver of a slot function with `&mut self`. CPython has checked its type; [`extract_pyclass_ref_mut`]
        /// checks it again.
        ///
        /// # Safety
        ///
        /// No requirement; `unsafe` only because PyO3's function of this name is.
        #[inline]
        pub unsafe fn extract_pyclass_ref_mut_trusted<'a, 'holder, T: PyClass>(
            object: Borrowed<'a, '_, PyAny>,
            holder: &'holder mut Option<GuardOf<'a, T>>,
        ) -> PyResult<&'holder mut T>
        where
            PhantomData<T::Frozen>: MutBorrow<'a, T>,
        {
            extract_pyclass_ref_mut(object, holder)
        }

        /// Replaces the message of PyO3's borrow error (the exception's class stays) by one with the reason and what to do.
        #[cold]
        #[inline(never)]
        fn explain_borrow_error(
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
            .take_exception(py)
        }
    }
}
