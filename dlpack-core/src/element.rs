//! The Rust types that are elements of a tensor, and their data types and axes.
//!
//! ```text
//! u8, f32, bool ─── item ────────────────────┐
//! [f32; 3] ──────── items, one axis ─────────┼── DTYPE, TRAILING
//! struct of f32 ─── its fields, one axis ────┤
//! F4E2M1FNx2 ────── two items in a byte ─────┘
//! ```
//!
//! | file | job |
//! |---|---|
//! | this file | `Element` and `Plain`, the numbers and their arrays |
//! | `axes` | the axes that an element adds to the shape |
//! | `homogeneous` | checks that a struct of equal scalars is an element |
//! | `groups` | small floats that share bytes |
//! | `fields` | the layout of a struct of different scalars |
#![expect(unsafe_code, reason = "`Element` is a promise about memory layout")]

pub(crate) mod axes;
pub(crate) mod fields;
pub(crate) mod groups;
pub(crate) mod homogeneous;

pub use axes::Axes;
pub use fields::{FieldKind, FieldLayout, RecordLayout};
pub use groups::{F4E2M1FNx2, F6E2M3FNx4, F6E3M2FNx4};

use core::slice;

use crate::DataType;

/// A type whose values consist of one or more DLPack items of one data type.
///
/// Implemented for the integers, the floats, `bool`, arrays of elements and groups of small floats
/// that share bytes, such as [`F4E2M1FNx2`]; with a feature of the same name for the numbers
/// of `half`, `num-complex` and `microfloat`, and for the vectors and matrices of `glam` and `nalgebra`.
/// `#[derive(Element)]` implements it for `#[repr(C)]` structs of equal scalars. It cannot be implemented by hand.
///
/// ```
/// use dlpack_core::{DLPack, Element};
///
/// #[derive(Element)]
/// #[repr(C)]
/// struct Point { x: f32, y: f32, z: f32 }
///
/// let cloud = vec![Point { x: 0.0, y: 1.0, z: 2.0 }];
/// assert_eq!(cloud.describe()?.shape(), [1, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Safety
///
/// If [`Element::verify_values`] returns for a slice (always, except for structs with the derive, whose fields it checks):
///
/// 1. Every byte of every value is initialised, and holds `size_of::<Self>() * 8 /
///    DTYPE.itemsize_bits()` items of `DTYPE`, placed as `TRAILING` says.
/// 2. None of those bytes changes while a shared reference to the value exists.
/// 3. Any items of `DTYPE` may be written over them; a `bool` item is 0 or 1.
/// 4. With `PLAIN`, this holds for any memory that holds such items, not just for values.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a DLPack element type",
    label = "no DLPack data type describes `{Self}`",
    note = "elements are the integers, the floats, `bool`, arrays `[T; N]` of them, and with the feature of the same name the types of `half`, `num-complex`, `microfloat` and `glam`, of the version that is re-exported, such as `dlpack_core::half`; a type parameter is one with the bound `Element`",
    note = "a `#[repr(C)]` struct of equal scalars becomes one with `#[derive(Element)]`; one of different scalars is exported by column, with `#[derive(Record)]` and `#[dlpack(columns)]`, and a list of them is returned as `dlpack_pyo3::Numpy<Records<T>>`",
    note = "each row of a `Vec<Vec<T>>` is a separate allocation: store all elements in one `Vec<T>`, and declare the shape in a struct with `#[derive(DLPack)]`"
)]
pub unsafe trait Element: Sized + Send + Sync + 'static + sealed::Element {
    /// The type of a single item.
    type Scalar: Plain<Scalar = Self::Scalar>;

    /// The data type of the items.
    const DTYPE: DataType;

    /// The axes that this element adds behind those of the tensor.
    const TRAILING: Axes = Axes::NONE;

    /// Whether every bit pattern is a value. If so, consumers may write any bytes to the memory.
    #[doc(hidden)]
    const ANY_BITS: bool = true;

    /// Whether a value can be made by copying the bytes of any items, except invalid bytes according to `ANY_BITS`.
    #[doc(hidden)]
    const PLAIN: bool = false;

    /// Checks that the values consist of items as the type declares, and panics otherwise.
    #[doc(hidden)]
    #[inline]
    fn verify_values(_: &[Self]) {}

    /// Checks values as [`verify_values`](Self::verify_values) does, before code writes to them.
    #[doc(hidden)]
    #[inline]
    fn verify_values_mut(_: &mut [Self]) {}

    /// Makes a value from the next scalars of a tensor.
    #[doc(hidden)]
    fn build_from(source: &mut Source<'_, Self::Scalar>) -> Self;
}

/// An [`Element`] that slices over imported memory may have: a number, or an array of numbers.
///
/// Structs that derive `Element` are read with [`TensorRef::to_vec`](crate::TensorRef::to_vec),
/// which builds each of them.
///
/// ```
/// fn may_be_a_slice<T: dlpack_core::element::Plain>() {}
///
/// may_be_a_slice::<[f32; 3]>();
/// ```
#[diagnostic::on_unimplemented(
    message = "slices and typed arrays over a tensor cannot hold `{Self}`",
    label = "expected a number, such as `f32`, or an array of numbers, such as `[u8; 3]`",
    note = "read other elements with `TensorRef::to_vec`, which builds each of them"
)]
pub trait Plain: Element + Copy + sealed::Plain {}

/// An [`Element`] for which every bit pattern is a value: all elements without a `bool`.
///
/// Consumers in other languages may write to memory of such elements. A generic struct whose data is `writable` needs this bound
/// instead of `Element`.
///
/// ```
/// fn may_be_written<T: dlpack_core::element::AnyBits>() {}
///
/// may_be_written::<[f32; 3]>();
/// ```
#[diagnostic::on_unimplemented(
    message = "memory of `{Self}` cannot be exported as writable",
    label = "a consumer could write bytes that are not a valid `{Self}`",
    note = "drop `writable`, or use memory that may hold any bytes: `SharedBuffer<bool>` reads every byte except 0 as `true`, `Vec<u8>` can have `elem = bool`",
    note = "where the element is a type parameter, bound it by `dlpack_core::element::AnyBits`"
)]
pub trait AnyBits: Element {}

#[diagnostic::do_not_recommend]
impl<T: Element<Scalar: sealed::AnyBits>> AnyBits for T {}

pub(crate) mod sealed {
    /// Prevents implementations of `Element` outside this crate, whose SAFETY comments prove the contract for each type.
    pub trait Element {}

    /// Prevents implementations of `Plain` outside this crate.
    pub trait Plain {}

    /// Prevents implementations of `AnyBits` outside this crate. The scalar determines whether an element has it.
    pub trait AnyBits {}
}

impl<T: Element, const N: usize> sealed::Element for [T; N] {}
impl<T: Plain, const N: usize> sealed::Plain for [T; N] {}
impl<T: Plain, const N: usize> Plain for [T; N] {}

/// The scalars of an imported tensor, in order.
#[doc(hidden)]
pub struct Source<'a, S> {
    next: &'a mut dyn FnMut() -> S,
}

impl<'a, S> Source<'a, S> {
    pub(crate) fn new(next: &'a mut dyn FnMut() -> S) -> Self {
        Self { next }
    }

    pub(crate) fn scalar(&mut self) -> S {
        (self.next)()
    }
}

/// Implements `Element` for numbers, and for types that have the layout of a number, as a comment at each use shows.
macro_rules! scalars {
    ($($rust:ty => $dtype:expr, $any_bits:tt $(, $trailing:expr)?;)*) => {$(
        // SAFETY: a primitive number is its bytes, all of them initialised, without interior
        // mutability (Rust reference, "Type layout"). Any bytes are a number; a `bool` is 0 or 1 as
        // the items of its data type are. For other types the comment at the use of this macro shows it.
        unsafe impl $crate::element::Element for $rust {
            type Scalar = Self;
            const DTYPE: $crate::dtype::DataType = $dtype;
            $(const TRAILING: $crate::element::axes::Axes = $trailing;)?
            const ANY_BITS: bool = $any_bits;
            const PLAIN: bool = true;

            #[inline]
            fn build_from(source: &mut $crate::element::Source<'_, Self>) -> Self {
                source.scalar()
            }
        }

        impl $crate::element::sealed::Element for $rust {}
        impl $crate::element::sealed::Plain for $rust {}
        impl $crate::element::Plain for $rust {}
        $crate::element::any_bits!($any_bits, $rust);
    )*};
}
pub(crate) use scalars;

/// Converts copied bytes to valid elements, in place. Other code may have written any byte where a `bool` is expected.
///
/// # Safety
///
/// `elements` has the initialised bytes of `count` elements, and no other code accesses them.
#[inline(always)]
pub(crate) unsafe fn make_values<T: Element>(elements: *mut T, count: usize) {
    if !T::ANY_BITS {
        let (bytes, len) = (elements.cast::<u8>(), count * size_of::<T>());
        // SAFETY: by this function's contract these bytes are initialised and unshared. Without `ANY_BITS` all scalars are `bool`,
        // of one byte each.
        let bytes = unsafe { slice::from_raw_parts_mut(bytes, len) };
        bytes
            .iter_mut()
            .for_each(|byte| *byte = u8::from(*byte != 0));
    }
}

/// Implements `AnyBits` for a scalar of which every bit pattern is a value.
macro_rules! any_bits {
    (true, $rust:ty) => {
        impl $crate::element::sealed::AnyBits for $rust {}
    };
    (false, $rust:ty) => {};
}
pub(crate) use any_bits;

scalars! {
    u8 => DataType::U8, true;
    u16 => DataType::U16, true;
    u32 => DataType::U32, true;
    u64 => DataType::U64, true;
    u128 => DataType::U128, true;
    i8 => DataType::I8, true;
    i16 => DataType::I16, true;
    i32 => DataType::I32, true;
    i64 => DataType::I64, true;
    i128 => DataType::I128, true;
    f32 => DataType::F32, true;
    f64 => DataType::F64, true;
    bool => DataType::BOOL, false;
}

#[cfg(target_pointer_width = "64")]
scalars! {
    usize => DataType::U64, true;
    isize => DataType::I64, true;
}
#[cfg(target_pointer_width = "32")]
scalars! {
    usize => DataType::U32, true;
    isize => DataType::I32, true;
}

// SAFETY: an array is its elements one after another, without padding (Rust reference, "Array layout"),
// so each promise of the element holds for all of it.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    type Scalar = T::Scalar;
    const DTYPE: DataType = T::DTYPE;
    const TRAILING: Axes = Axes::of_array(N, T::TRAILING);
    const ANY_BITS: bool = T::ANY_BITS;
    const PLAIN: bool = T::PLAIN;

    #[inline]
    fn verify_values(values: &[Self]) {
        T::verify_values(values.as_flattened());
    }

    #[inline]
    fn verify_values_mut(values: &mut [Self]) {
        T::verify_values_mut(values.as_flattened_mut());
    }

    fn build_from(source: &mut Source<'_, Self::Scalar>) -> Self {
        core::array::from_fn(|_| T::build_from(source))
    }
}
