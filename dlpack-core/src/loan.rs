//! Memory that is lent to a tensor: where it is, what it holds, who may write. Safe from a slice, by unsafe constructors else.
//!
//! What may be written begins with the memory, in `access`; `describe::check` adds what the annotation and the layout say; and
//! `request::plan` decides what a consumer is told.
//!
//! ```text
//! Vec<f32> ──────────────┐
//! ndarray, image, .. ────┼──[ Buffer ]──┐
//! SharedBuffer ──────────┘              ├── Loan, LoanMut ── describe
//! unsafe(data = .., len = ..) ──[ raw ]─┘
//! ```
//!
//! | file | job |
//! |---|---|
//! | this one | `Loan` and `LoanMut`, and all their constructors |
//! | `access` | who may write: nobody, one, all; and what nobody may, such as memory of `bool` |
//! | `buffer` | what a type vouches for that lends its elements, and where that memory may lie; what an expression may give that lends |
//! | `shared` | `SharedBuffer`: memory that Rust and every consumer may write at the same time |
//! | `raw` | the door for an address, on the user's word |
//! | `facts` | what the types say of a tensor before any value exists |
#![expect(unsafe_code, reason = "has constructors of loans over raw memory")]

pub(crate) mod access;
pub(crate) mod buffer;
pub(crate) mod facts;
pub(crate) mod raw;
pub(crate) mod shared;

pub use buffer::{Buffer, Writable};
pub use shared::SharedBuffer;

use core::mem::{size_of, size_of_val};
use core::{marker::PhantomData, ptr, ptr::NonNull};

use crate::loan::shared::Home;
use crate::{DataType, Device, Element, StreamRef};
use crate::{element::Axes, layout::Dims, loan::access::Access, stream::Queue};

/// Shape, strides and first element of data that knows its own layout, in elements.
#[derive(Clone, Debug)]
pub(crate) struct OwnLayout {
    pub(crate) shape: Dims,
    pub(crate) strides: Dims,
    pub(crate) first: usize,
}

/// What both kinds of loan know; without a lifetime, so it never leaves the crate.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) data: *mut u8,
    pub(crate) bytes: usize,
    pub(crate) dtype: DataType,
    pub(crate) axes: &'static Axes,
    /// Bytes of one element, all its items together.
    pub(crate) element: usize,
    pub(crate) any_bits: bool,
    pub(crate) device: Device,
    /// Whether the annotation may name another device: a pointer does not say where it leads.
    pub(crate) any_device: bool,
    pub(crate) access: Access,
    pub(crate) layout: Option<OwnLayout>,
    pub(crate) stream: Option<Queue>,
    /// The buffer that keeps the memory, where that keeps itself; it is there for as long as the memory is lent.
    pub(crate) home: Option<NonNull<Home>>,
}

struct Trailing<T>(PhantomData<T>);

impl<T: Element> Trailing<T> {
    const AXES: &'static Axes = &T::TRAILING;
}

/// The axes of an element, at an address that lives for ever.
pub(crate) const fn axes_of<T: Element>() -> &'static Axes {
    Trailing::<T>::AXES
}

impl Memory {
    /// So many elements.
    #[inline]
    fn new<T: Element>(data: *const T, len: usize, device: Device, access: Access) -> Self {
        Self {
            data: data.cast_mut().cast(),
            bytes: len.saturating_mul(size_of::<T>()),
            dtype: T::DTYPE,
            axes: axes_of::<T>(),
            element: size_of::<T>(),
            any_bits: T::ANY_BITS,
            device,
            any_device: false,
            access: access.over::<T>(),
            layout: None,
            stream: None,
            home: None,
        }
    }
}

/// Memory lent for reading: where it is, what it holds, on which device.
///
/// Made from a slice in safe code:
///
/// ```
/// use dlpack_core::{Buffer, Loan};
///
/// struct Samples { left: Vec<f32> }
///
/// impl Buffer for Samples {
///     fn lend(&self) -> Loan<'_> {
///         Loan::from(&self.left[..])
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Loan<'a> {
    pub(crate) memory: Memory,
    lifetime: PhantomData<&'a [u8]>,
}

/// Memory lent for writing as well, unless it was made from a [`Loan`] for reading.
///
/// ```
/// use dlpack_core::{LoanMut, Parts};
///
/// let mut samples = [1.0_f32, 2.0];
/// let loan = LoanMut::from(&mut samples[..]);
/// assert!(!Parts::new().describe_mut(loan)?.is_read_only());
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Debug)]
pub struct LoanMut<'a> {
    pub(crate) memory: Memory,
    lifetime: PhantomData<&'a mut [u8]>,
}

impl<'a, T: Element> From<&'a [T]> for Loan<'a> {
    #[inline]
    fn from(elements: &'a [T]) -> Self {
        T::verify(elements);
        let (start, len) = (elements.as_ptr(), elements.len());
        Self::over(Memory::new(start, len, Device::CPU, Access::Read))
    }
}

impl<'a, T: Element> From<&'a mut [T]> for LoanMut<'a> {
    #[inline]
    fn from(elements: &'a mut [T]) -> Self {
        T::verify_mut(elements);
        let (start, len) = (elements.as_mut_ptr(), elements.len());
        Self::over(Memory::new(start, len, Device::CPU, Access::Exclusive))
    }
}

impl<'a> From<Loan<'a>> for LoanMut<'a> {
    /// The same memory with the same access: reading, unless it may be written through a shared reference.
    #[inline]
    fn from(loan: Loan<'a>) -> Self {
        Self::over(loan.memory)
    }
}

/// What is the same for both kinds.
macro_rules! loans {
    ($($loan:ident: $mut:literal, $describe:literal;)*) => {$(
        impl $loan<'_> {
            /// Only for memory that somebody vouches for.
            #[inline]
            fn over(memory: Memory) -> Self {
                Self {
                    memory,
                    lifetime: PhantomData,
                }
            }

            /// The same memory, in a layout that the data knows: shape and strides in elements, and which
            /// element is the first. It is checked against the memory like any other.
            ///
            /// ```
            #[doc = concat!("use dlpack_core::{", stringify!($loan), ", Parts};")]
            /// use dlpack_core::layout::Dims;
            ///
            #[doc = concat!("let ", $mut, "column_major = [1, 2, 3, 4, 5, 6];")]
            #[doc = concat!("let loan = ", stringify!($loan), "::from(&", $mut, "column_major[..])")]
            ///     .with_layout(Dims::from([2, 3]), Dims::from([1, 2]), 0);
            #[doc = concat!("assert_eq!(Parts::new().", $describe, "(loan)?.strides(), [1, 2]);")]
            /// # Ok::<(), dlpack_core::Error>(())
            /// ```
            #[must_use]
            #[inline]
            pub fn with_layout(mut self, shape: Dims, strides: Dims, first: usize) -> Self {
                self.memory.layout = Some(OwnLayout { shape, strides, first });
                self
            }
        }
    )*};
}
loans! {
    Loan: "", "describe";
    LoanMut: "mut ", "describe_mut";
}

impl<'a> Loan<'a> {
    /// Memory at an address, on any device.
    ///
    /// ```
    /// use dlpack_core::{Device, Loan, Parts};
    ///
    /// let samples = [1.0_f32, 2.0];
    /// // SAFETY: the array outlives the loan, and nothing writes to it meanwhile.
    /// let loan = unsafe { Loan::from_raw_parts(samples.as_ptr(), 2, Device::CPU) };
    /// assert_eq!(Parts::new().describe(loan)?.shape(), [2]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// For all of `'a`:
    ///
    /// - `data` is the address (on a device of handles: the handle) of `len` initialised values of
    ///   `T` on `device`, and stays so;
    /// - if the processor can read the memory, it changes only where consumers on other threads may see
    ///   it change (not at all, for plain memory).
    #[must_use]
    #[inline]
    pub unsafe fn from_raw_parts<T: Element>(data: *const T, len: usize, device: Device) -> Self {
        Self::over(Memory::new(data, len, device, Access::Read))
    }

    /// Memory at an address that may be written through a shared reference: device memory, memory
    /// of another library, cells.
    ///
    /// ```
    /// use dlpack_core::{Device, Loan, Parts};
    ///
    /// let mut samples = [1.0_f32, 2.0];
    /// // SAFETY: the array outlives the loan, and nothing else touches it meanwhile.
    /// let loan = unsafe { Loan::from_raw_parts_mut(samples.as_mut_ptr(), 2, Device::CPU) };
    /// assert!(!Parts::new().describe(loan)?.is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// As [`Loan::from_raw_parts`], but consumers may write any `T` there at any time in `'a` (only read, where `T` is made of
    /// `bool`s, since what they write need not be one); Rust
    /// code that reads or writes memory of the processor meanwhile does so in relaxed atomic words, of any size.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw_parts_mut<T: Element>(data: *mut T, len: usize, device: Device) -> Self {
        Self::over(Memory::new(data, len, device, Access::Shared))
    }

    /// The bytes from the field that `field` picks out of the first row to the end of the rows.
    ///
    /// `field` is trusted with nothing: the distance from a row to the reference that it returns has
    /// to be the same for every row. A `&'a F` at that place is itself the proof that an `F` lies
    /// there. For a derived record the compiler sees that the comparison holds and removes the loop.
    pub(crate) fn of_field<R, F: Element>(rows: &'a [R], field: impl Fn(&'a R) -> &'a F) -> Self {
        let distance = |row: &'a R| {
            let field = field(row);
            F::verify(core::slice::from_ref(field));
            let (field, row) = (ptr::from_ref(field), ptr::from_ref(row));
            field.addr().wrapping_sub(row.addr())
        };
        let offset = rows.first().map_or(0, distance);
        assert!(
            offset
                .checked_add(size_of::<F>())
                .is_some_and(|end| end <= size_of::<R>())
                && rows.iter().all(|row| distance(row) == offset),
            "a column is not made of one field of every row"
        );
        let data = rows.as_ptr().cast::<F>().wrapping_byte_add(offset);
        let mut memory = Memory::new(data, 0, Device::CPU, Access::Read);
        memory.bytes = size_of_val(rows).saturating_sub(offset);
        Self::over(memory)
    }

    /// The same memory, written by work that is queued on `stream`.
    ///
    /// ```
    /// use dlpack_core::{Loan, Parts, StreamHandle};
    ///
    /// let loan = Loan::from(&[0_u8; 4][..]).with_stream(StreamHandle::DEFAULT);
    /// assert_eq!(Parts::new().describe(loan)?.stream(), Some(StreamHandle::DEFAULT.into()));
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn with_stream(mut self, stream: impl Into<StreamRef<'a>>) -> Self {
        self.memory.stream = Some(stream.into().queue);
        self
    }
}

impl LoanMut<'_> {
    /// Memory at an address that is lent exclusively.
    ///
    /// ```
    /// use dlpack_core::{Device, LoanMut, Parts};
    ///
    /// let mut samples = [1.0_f32, 2.0];
    /// // SAFETY: the array outlives the loan, and nothing else touches it meanwhile.
    /// let loan = unsafe { LoanMut::from_raw_parts(samples.as_mut_ptr(), 2, Device::CPU) };
    /// assert!(!Parts::new().describe_mut(loan)?.is_read_only());
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// As [`Loan::from_raw_parts`], and nothing else reads or writes the memory in `'a`.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw_parts<T: Element>(data: *mut T, len: usize, device: Device) -> Self {
        Self::over(Memory::new(data, len, device, Access::Exclusive))
    }
}
