//! Memory lent to a tensor: its address, its type, and which code may write it. Safe from a slice; otherwise by unsafe
//! constructors.
//!
//! `access` says which code may write the memory. `describe::check` adds the rules of the annotation and the layout, and
//! `request::plan` sets the flags for the consumer.
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
//! | this file | `Loan` and `LoanMut`, and all their constructors |
//! | `access` | which code may write: none, the holder of the loan, or any; of `bool`, only memory of a `SharedBuffer` |
//! | `buffer` | the trait `Buffer`, why it is safe to implement, and the expressions that can be lent |
//! | `shared` | `SharedBuffer`: memory that Rust and every consumer may write at the same time |
//! | `from_vec` | a `SharedBuffer` over the memory of a `Vec`, and the `Vec` of a `SharedBuffer` |
//! | `slices` | slices of a `SharedBuffer`: of one that no other code has, and of a new one that safe code fills |
//! | `owned_slice` | `OwnedSlice`: elements that no code writes, with the owner of their memory, for containers of other crates |
//! | `raw` | loans from an address, which the user guarantees |
//! | `facts` | properties of a tensor that its types determine at compile time |
#![expect(unsafe_code, reason = "has constructors of loans over raw memory")]

pub(crate) mod access;
pub(crate) mod buffer;
pub(crate) mod facts;
mod from_vec;
pub(crate) mod owned_slice;
pub(crate) mod raw;
pub(crate) mod shared;
mod slices;

pub use buffer::{Buffer, Writable};
pub use owned_slice::OwnedSlice;
pub use shared::SharedBuffer;

use core::mem::{size_of, size_of_val};
use core::{marker::PhantomData, ptr, ptr::NonNull};

use crate::loan::shared::SharedAllocation;
use crate::{DataType, Device, Element, StreamRef};
use crate::{element::Axes, layout::Dims, loan::access::Access, stream::Queue};

/// The layout of data that has its own shape and strides, in elements.
#[derive(Clone, Debug)]
pub(crate) struct OwnLayout {
    pub(crate) shape: Dims,
    pub(crate) strides: Dims,
    pub(crate) first: usize,
}

/// The fields of both kinds of loan. It has no lifetime, so it never leaves the crate.
#[derive(Clone, Debug)]
pub(crate) struct LentMemory {
    pub(crate) data: *mut u8,
    pub(crate) bytes: usize,
    pub(crate) dtype: DataType,
    pub(crate) axes: &'static Axes,
    /// The size in bytes of one element with all its items.
    pub(crate) element: usize,
    pub(crate) any_bits: bool,
    pub(crate) device: Device,
    /// Whether the annotation may name another device, since a raw pointer does not tell its device.
    pub(crate) any_device: bool,
    pub(crate) access: Access,
    pub(crate) layout: Option<OwnLayout>,
    pub(crate) stream: Option<Queue>,
    /// The handle to the shared allocation that contains the memory, if there is one. It lives for as long as the loan.
    pub(crate) allocation: Option<NonNull<SharedAllocation>>,
}

struct Trailing<T>(PhantomData<T>);

impl<T: Element> Trailing<T> {
    const AXES: &'static Axes = &T::TRAILING;
}

/// The axes of an element type, as a `'static` reference.
pub(crate) const fn axes_of<T: Element>() -> &'static Axes {
    Trailing::<T>::AXES
}

impl LentMemory {
    /// Memory of `len` elements.
    #[inline]
    fn new<T: Element>(data: *const T, len: usize, device: Device, access: Access) -> Self {
        Self {
            data: data.cast_mut().cast(),
            bytes: len.saturating_mul(size_of::<T>()),
            dtype: T::DTYPE,
            axes: axes_of::<T>(),
            element: size_of::<T>(),
            any_bits: T::ANY_BITS,
            device: device.normalized(),
            any_device: false,
            access: access.for_elements::<T>(),
            layout: None,
            stream: None,
            allocation: None,
        }
    }
}

/// Memory lent for reading: its address, its type and its device.
///
/// Safe code makes it from a slice:
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
    pub(crate) memory: LentMemory,
    lifetime: PhantomData<&'a [u8]>,
}

/// Memory lent for writing too, unless it was made from a [`Loan`] for reading.
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
    pub(crate) memory: LentMemory,
    lifetime: PhantomData<&'a mut [u8]>,
}

impl<'a, T: Element> From<&'a [T]> for Loan<'a> {
    #[inline]
    fn from(elements: &'a [T]) -> Self {
        T::verify_values(elements);
        let (start, len) = (elements.as_ptr(), elements.len());
        Self::of_memory(LentMemory::new(start, len, Device::CPU, Access::Read))
    }
}

impl<'a, T: Element> From<&'a mut [T]> for LoanMut<'a> {
    #[inline]
    fn from(elements: &'a mut [T]) -> Self {
        T::verify_values_mut(elements);
        let (start, len) = (elements.as_mut_ptr(), elements.len());
        Self::of_memory(LentMemory::new(start, len, Device::CPU, Access::Exclusive))
    }
}

impl<'a> From<Loan<'a>> for LoanMut<'a> {
    /// Keeps the access of the loan: for reading, unless the memory may be written through a shared reference.
    #[inline]
    fn from(loan: Loan<'a>) -> Self {
        Self::of_memory(loan.memory)
    }
}

/// Implements the methods that both kinds of loan have.
macro_rules! loans {
    ($($loan:ident: $mut:literal, $describe:literal;)*) => {$(
        impl $loan<'_> {
            /// The loan of this memory. Each caller has established that the memory is valid for the lifetime.
            #[inline]
            fn of_memory(memory: LentMemory) -> Self {
                Self {
                    memory,
                    lifetime: PhantomData,
                }
            }

            /// Gives the loan a layout of its own: shape and strides in elements, and the index of the first element. It is
            /// checked against the memory like any other layout.
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
    /// Lends memory at an address, on any device.
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
    /// - `data` is the address (or, on a device with opaque handles, the handle) of `len` initialised values of `T` on
    ///   `device`, and stays so;
    /// - if the host can read the memory, it changes only in ways that consumers on other threads may observe (for plain
    ///   memory: not at all).
    #[must_use]
    #[inline]
    pub unsafe fn from_raw_parts<T: Element>(data: *const T, len: usize, device: Device) -> Self {
        Self::of_memory(LentMemory::new(data, len, device, Access::Read))
    }

    /// Lends memory at an address that may be written through a shared reference: device memory, memory of another library,
    /// cells.
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
    /// The contract of [`Loan::from_raw_parts`], with these differences. Consumers may write any `T` at any time in `'a`; they
    /// only read if `T` consists of `bool`s, since a consumer might write other bytes. Rust code that accesses host memory in
    /// `'a` does so with relaxed atomic accesses, of any size.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw_parts_mut<T: Element>(data: *mut T, len: usize, device: Device) -> Self {
        Self::of_memory(LentMemory::new(data, len, device, Access::Shared))
    }

    /// Lends the bytes from the field that `field` borrows from the first row, up to the end of the rows.
    ///
    /// `field` need not be trusted: the distance from a row to the returned reference must be the same for every row, and a
    /// `&'a F` at that address proves that there is an `F`. For a derived record the compiler proves the comparison and removes
    /// the loop.
    pub(crate) fn of_field<R, F: Element>(rows: &'a [R], field: impl Fn(&'a R) -> &'a F) -> Self {
        let distance = |row: &'a R| {
            let field = field(row);
            F::verify_values(core::slice::from_ref(field));
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
        let mut memory = LentMemory::new(data, 0, Device::CPU, Access::Read);
        memory.bytes = size_of_val(rows).saturating_sub(offset);
        Self::of_memory(memory)
    }

    /// Declares that work queued on `stream` writes the memory.
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
    /// Lends memory at an address exclusively.
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
    /// The contract of [`Loan::from_raw_parts`], and no other code reads or writes the memory in `'a`.
    #[must_use]
    #[inline]
    pub unsafe fn from_raw_parts<T: Element>(data: *mut T, len: usize, device: Device) -> Self {
        Self::of_memory(LentMemory::new(data, len, device, Access::Exclusive))
    }
}
