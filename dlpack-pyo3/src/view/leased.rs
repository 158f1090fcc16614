//! Creates each of the views from an argument, and keeps overlapping views apart.
//!
//! A NumPy array is read in place, without a tensor. All other objects, and NumPy arrays that do not fit, are imported as a
//! tensor; the view is created from the tensor, or the error says why it cannot be.
#![expect(unsafe_code, reason = "creates views from the user's promise")]

use core::marker::PhantomData;

use dlpack_core::array::{ArrayElement, Rank, View, ViewMut};
use dlpack_core::binding::{ElementAccess, ElementTask, Span, Strided, UnownedArray, keep_strided};
use dlpack_core::element::{Plain, RecordLayout};
use dlpack_core::{DataType, Error, FromDLPack, Managed, TensorRef};
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::import::numpy;
use crate::keepalive::ArrayKeepalive;
use crate::view::options::Options;
use crate::view::{lease::Lease, live::Registration, needs::Needs};

/// Keeps the memory of a view alive.
pub(super) enum Keeper {
    Tensor(Managed),
    Numpy {
        array: ArrayKeepalive,
        read_only: bool,
    },
}

// SAFETY: the references to an array, and the buffer of its base, can only be released, which takes the value.
unsafe impl Sync for Keeper {}

impl Keeper {
    /// The tensor, or a tensor over the NumPy array. `array` is the array's description; it is `None` if items share bytes.
    fn into_tensor(self, array: Option<Strided<'_>>) -> Result<Managed, Error> {
        match self {
            Self::Tensor(tensor) => Ok(tensor),
            Self::Numpy {
                array: owner,
                read_only,
            } => {
                let array = Strided {
                    read_only,
                    ..array.expect("NumPy has no items that share bytes")
                };
                // SAFETY: the memory is that of the view, and the references in `owner` keep it alive.
                unsafe { keep_strided(owner, |_| Ok(array), |error| error) }
            }
        }
    }
}

/// A view of the core, with the locks that its options require.
pub(super) struct Leased<V, O> {
    // Both are dropped before the view releases the memory. Otherwise another thread could allocate at the same address, and
    // its view would be refused; in a child that was forked in between, for ever.
    #[expect(dead_code, reason = "held for its `Drop`")]
    lease: Option<Lease>,
    #[expect(dead_code, reason = "held for its `Drop`")]
    registration: Registration,
    pub(super) view: V,
    options: PhantomData<fn() -> O>,
}

/// The registration and the lease that keep a view apart from others.
type OverlapGuards = (Registration, Option<Lease>);

/// The description of the array that a view is created from.
type FoundArray<V> = UnownedArray<<V as HostView>::Element, <V as HostView>::List>;

/// How its elements are read.
type AccessOf<V> = <<V as HostView>::Element as ArrayElement>::Access;

/// One of the core's two views.
pub(super) trait HostView: Sized {
    type Element: ArrayElement;
    type List: Rank;
    const WRITES: bool;

    /// Creates the view over the described array, which `keeper` keeps alive.
    ///
    /// # Safety
    ///
    /// Same contract as that of [`UnownedArray::into_view_mut`].
    unsafe fn from_found(found: UnownedArray<Self::Element, Self::List>, keeper: Keeper) -> Self;

    /// Allows slices of the elements.
    ///
    /// # Safety
    ///
    /// Same contract as that of the core's method of this name.
    unsafe fn assume_unshared(self) -> Self;
}

/// A view of elements that a tensor can hold, so not of records.
pub(super) trait IntoManaged {
    fn into_managed(self) -> Result<Managed, Error>;
}

macro_rules! kinds {
    ($($view:ident $writes:literal $keep:ident)*) => {$(
        impl<T: Plain, L: Rank> IntoManaged for $view<T, L, Keeper> {
            fn into_managed(self) -> Result<Managed, Error> {
                self.into_tensor(Keeper::into_tensor)
            }
        }

        impl<T: ArrayElement, L: Rank> HostView for $view<T, L, Keeper> {
            type Element = T;
            type List = L;
            const WRITES: bool = $writes;

            #[inline(always)]
            unsafe fn from_found(found: UnownedArray<T, L>, keeper: Keeper) -> Self {
                // SAFETY: the contract of `from_found` is that of the core's function.
                unsafe { found.$keep(keeper) }
            }

            #[inline]
            unsafe fn assume_unshared(self) -> Self {
                // SAFETY: the contract of this method is that of the core's.
                unsafe { self.assume_unshared() }
            }
        }
    )*};
}
kinds! {
    View false into_view
    ViewMut true into_view_mut
}

/// Extracts a view from an argument: of numbers from any array, of records from a structured array of NumPy.
struct Extract<'a, 'py, V, O>(&'a Bound<'py, PyAny>, PhantomData<(V, O)>);

impl<V: HostView, O: Options> ElementTask<V::Element> for Extract<'_, '_, V, O> {
    type Output = PyResult<Leased<V, O>>;

    #[inline(always)]
    fn run_for_plain(self) -> Self::Output
    where
        V::Element: Plain,
    {
        let Self(object, _) = self;
        if !O::AS_BYTES {
            if let Some((array, keepalive)) = numpy::read_array(object).or_fetch(object.py())? {
                if let Some(view) = Leased::from_numpy_array(&array, keepalive) {
                    return Ok(view);
                }
            }
        }
        Leased::from_any_object(object)
    }

    #[inline(always)]
    fn run_for_records(self, layout: &'static RecordLayout) -> Self::Output {
        Leased::from_records(self.0, layout)
    }
}

impl<V: HostView, O: Options> Leased<V, O> {
    const NEEDS: Needs = Needs {
        dtype: AccessOf::<V>::DTYPE,
        rank: V::List::RANK,
        element: AccessOf::<V>::TRAILING,
        contiguous: O::CONTIGUOUS,
        as_bytes: O::AS_BYTES,
        convert: if O::CONVERT {
            Some(Needs::convert_by_numpy)
        } else {
            None
        },
        promise: O::PROMISE,
        writes: V::WRITES,
        cuda: false,
    };

    /// Checks the element type, the rank and the options of a view of bytes.
    const CHECK_BYTES: () = if O::AS_BYTES {
        assert!(
            matches!(AccessOf::<V>::DTYPE, DataType::U8) && matches!(V::List::RANK, Some(1)),
            "`AsBytes` is an option of a view of bytes: write `View<u8, 1, AsBytes>`"
        );
        assert!(
            size_of::<V::Element>() == 1,
            "`AsBytes` is an option of a view of bytes: write `View<u8, 1, AsBytes>`"
        );
        assert!(
            !O::CONVERT,
            "`Convert` converts values to bytes, and `AsBytes` views the bytes of values: keep one"
        );
    };

    /// Extracts the view from an argument.
    #[inline]
    pub(super) fn extract(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        const { Self::CHECK_BYTES };
        AccessOf::<V>::run_task(Extract(object, PhantomData))
    }

    /// The view of a NumPy array, if nothing but its struct needs to be read.
    #[inline(always)]
    fn from_numpy_array(array: &Strided<'_>, keepalive: ArrayKeepalive) -> Option<Self> {
        let found = UnownedArray::from_strided(array, V::WRITES)?;
        if O::CONTIGUOUS && !found.is_contiguous() {
            return None;
        }
        let apart = Self::guard_overlaps(found.span()).ok()?;
        let keeper = Keeper::Numpy {
            read_only: array.read_only,
            array: keepalive,
        };
        // SAFETY: the keeper keeps the memory of the array alive, which is found and guarded above.
        Some(unsafe { Self::new_leased(found, keeper, apart) })
    }

    /// The view of an argument's tensor.
    #[inline(never)]
    fn from_any_object(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let needs = &const { Self::NEEDS };
        let tensor = needs.import_or_convert(object)?;
        needs.refuse_copy(object, &tensor)?;
        let tensor = if O::AS_BYTES {
            needs.cast_to_bytes(object.py(), tensor)?
        } else {
            tensor
        };
        match Self::find_array(&tensor) {
            Ok((found, apart)) => {
                // SAFETY: `find_array` found and guarded the array of the tensor that the keeper owns.
                Ok(unsafe { Self::new_leased(found, Keeper::Tensor(tensor), apart) })
            }
            Err(error) => Self::from_converted(object, &error, tensor),
        }
    }

    /// The view of the array that an argument is converted to, after its own tensor was refused. Without a conversion, the error.
    #[cold]
    fn from_converted(object: &Bound<'_, PyAny>, error: &Error, tensor: Managed) -> PyResult<Self> {
        let (py, needs) = (object.py(), &const { Self::NEEDS });
        if !O::CONVERT {
            return Err(needs.unsuitable_tensor(py, error, &tensor.view()));
        }
        let tensor = needs.retry_converted(object, error, tensor)?;
        Self::from_tensor(tensor)
            .map_err(|(error, tensor)| needs.unsuitable_tensor(py, &error, &tensor.view()))
    }

    /// Registers a view, to detect overlaps with those of this thread, and with a promise takes a lease, to exclude those of
    /// all threads and modules. If one of the two fails, neither is kept.
    #[inline(always)]
    pub(super) fn guard_overlaps(span: &Span) -> Result<OverlapGuards, Error> {
        let registration = if O::MAY_OVERLAP {
            Registration::NONE
        } else {
            Registration::register(span, V::WRITES)?
        };
        let lease = if O::PROMISE {
            Some(Lease::new(span, V::WRITES)?)
        } else {
            None
        };
        Ok((registration, lease))
    }

    /// Describes a tensor's array, and keeps it apart from others.
    #[inline(always)]
    fn find_array(tensor: &Managed) -> Result<(FoundArray<V>, OverlapGuards), Error> {
        let found = UnownedArray::from_tensor(tensor, V::WRITES)?;
        if O::CONTIGUOUS && !found.is_contiguous() {
            return Err(tensor.view().not_contiguous());
        }
        let apart = Self::guard_overlaps(found.span())?;
        Ok((found, apart))
    }

    /// The view of a tensor; or the tensor, and why it has no such view.
    fn from_tensor(tensor: Managed) -> Result<Self, (Error, Managed)> {
        match Self::find_array(&tensor) {
            Ok((found, apart)) => {
                // SAFETY: `find_array` found and guarded the array of the tensor that the keeper owns.
                Ok(unsafe { Self::new_leased(found, Keeper::Tensor(tensor), apart) })
            }
            Err(error) => Err((error, tensor)),
        }
    }

    /// The view of a tensor that is no argument.
    pub(super) fn import(tensor: Managed) -> Result<Self, Error> {
        const { Self::CHECK_BYTES };
        const {
            assert!(
                !O::CONVERT,
                "`Convert` converts an argument of a function; from a tensor, as in an `Imported` enum, nothing is converted: \
                 remove `Convert`"
            );
        };
        let tensor = if O::AS_BYTES {
            let bytes = tensor.view().len_bytes();
            tensor.cast(DataType::U8, &[bytes])?
        } else {
            tensor
        };
        Self::from_tensor(tensor).map_err(|(error, _)| error)
    }

    /// Whether data type and rank of a tensor are those of the view, which are any for a view of bytes.
    pub(super) fn fits(tensor: &TensorRef<'_>) -> bool
    where
        V::Element: Plain,
    {
        if O::AS_BYTES {
            return tensor.is_contiguous() && tensor.device().device_type.is_host_readable();
        }
        View::<V::Element, V::List>::fits(tensor)
    }

    /// Creates the view.
    ///
    /// # Safety
    ///
    /// `found` was made with `V::WRITES`, and the keeper keeps its memory alive. The guards are those of
    /// [`guard_overlaps`](Self::guard_overlaps) for the span of `found`.
    #[inline(always)]
    pub(super) unsafe fn new_leased(
        found: FoundArray<V>,
        keeper: Keeper,
        (registration, lease): OverlapGuards,
    ) -> Self {
        // SAFETY: by this function's contract the keeper keeps the memory alive, and `found` may be written if this kind writes.
        let mut view = unsafe { V::from_found(found, keeper) };
        if O::PROMISE {
            // SAFETY: the user's `Promise` excludes other code. The lease, which `guard_overlaps` took, excludes other views with a
            // promise for as long as this view lives.
            view = unsafe { view.assume_unshared() };
        }
        Self {
            view,
            lease,
            registration,
            options: PhantomData,
        }
    }

    /// The tensor. Other code may write to it again, whatever was promised for the view.
    pub(super) fn into_managed(self) -> Result<Managed, Error>
    where
        V: IntoManaged,
    {
        self.view.into_managed()
    }
}
