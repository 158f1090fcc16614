//! Which Rust types are elements of a tensor, and how a struct of equal scalars proves to be one.
#![expect(unsafe_code, reason = "`Element` is a promise about memory layout")]

use core::marker::PhantomData;
use core::mem::size_of;

use crate::dtype::DataType;
use crate::facts::Facts;

/// The axes that an element adds behind those of its tensor, in items.
///
/// A `[f32; 3]` adds one axis of extent 3, a plain `f32` none.
///
/// ```
/// use dlpack_core::Element;
///
/// assert_eq!(<[[f32; 3]; 2]>::TRAILING.extents(), [2, 3]);
/// assert_eq!(f32::TRAILING.extents(), []);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axes {
    extents: [i64; Axes::MAX],
    strides: [i64; Axes::MAX],
    len: usize,
}

impl Axes {
    const MAX: usize = 8;

    /// No axes: the element is one item.
    pub const NONE: Self = Self {
        extents: [0; Self::MAX],
        strides: [0; Self::MAX],
        len: 0,
    };

    /// `inner`, `extent` times in a row.
    #[doc(hidden)]
    #[must_use]
    pub const fn of_array(extent: usize, inner: Self) -> Self {
        assert!(
            inner.len < Self::MAX,
            "an element has at most 8 axes of its own"
        );
        let mut axes = Self::NONE;
        let mut axis = 0;
        let mut items = 1;
        while axis < inner.len {
            axes.extents[axis + 1] = inner.extents[axis];
            axes.strides[axis + 1] = inner.strides[axis];
            items *= inner.extents[axis];
            axis += 1;
        }
        axes.extents[0] = to_i64(extent);
        axes.strides[0] = items;
        axes.len = inner.len + 1;
        axes
    }

    /// A matrix of `inner` that lies in memory column by column.
    #[cfg(any(feature = "glam", feature = "nalgebra", test))]
    pub(crate) const fn of_columns(rows: usize, columns: usize, inner: Self) -> Self {
        let mut axes = Self::of_array(rows, Self::of_array(columns, inner));
        axes.strides[0] = to_i64(inner.items());
        axes.strides[1] = to_i64(inner.items() * rows);
        axes
    }

    /// The axes of a struct: one more than its fields have, if they all have the same, else a single one.
    #[doc(hidden)]
    #[must_use]
    pub const fn of_fields(fields: &[Self]) -> Self {
        assert!(!fields.is_empty(), "an element has at least one field");
        let mut items = 0;
        let mut alike = true;
        let mut field = 0;
        while field < fields.len() {
            items += fields[field].items();
            alike = alike && fields[field].same(&fields[0]);
            field += 1;
        }
        if alike {
            Self::of_array(fields.len(), fields[0])
        } else {
            Self::of_array(items, Self::NONE)
        }
    }

    const fn same(&self, other: &Self) -> bool {
        let mut axis = 0;
        while axis < self.len {
            if self.extents[axis] != other.extents[axis] {
                return false;
            }
            axis += 1;
        }
        self.len == other.len
    }

    /// The items in one element.
    pub(crate) const fn items(&self) -> usize {
        let mut items = 1;
        let mut axis = 0;
        while axis < self.len {
            items *= self.extents[axis];
            axis += 1;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a product of extents that were `usize`"
        )]
        let items = items as usize;
        items
    }

    /// The extents, outermost first.
    ///
    /// ```
    /// assert_eq!(dlpack_core::Axes::NONE.extents(), []);
    /// ```
    #[must_use]
    #[inline]
    pub fn extents(&self) -> &[i64] {
        &self.extents[..self.len]
    }

    /// The strides in items, outermost first.
    ///
    /// ```
    /// use dlpack_core::Element;
    ///
    /// assert_eq!(<[[u8; 3]; 2]>::TRAILING.strides(), [3, 1]);
    /// ```
    #[must_use]
    #[inline]
    pub fn strides(&self) -> &[i64] {
        &self.strides[..self.len]
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

#[expect(
    clippy::cast_possible_wrap,
    reason = "checked by the assertion in front of it"
)]
const fn to_i64(extent: usize) -> i64 {
    assert!(
        extent as u64 <= i64::MAX as u64,
        "an extent does not fit an i64"
    );
    extent as i64
}

/// A type whose values lie in memory as one or more equal DLPack items.
///
/// Implemented for the integers, the floats, `bool`, arrays of elements and groups of packed small
/// floats such as [`F4E2M1FNx2`](crate::F4E2M1FNx2); with a feature of the same name for the numbers
/// of `half`, `num-complex` and `microfloat`, and for the vectors and matrices of `glam` and `nalgebra`.
/// `#[derive(Element)]` adds `#[repr(C)]` structs of equal scalars.
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
/// Where [`Element::verify`] returns for a slice (it does for every slice of a type that is one by
/// itself, and looks at the fields of a derived one):
///
/// 1. Every byte of every value is initialised, and holds `size_of::<Self>() * 8 /
///    DTYPE.itemsize_bits()` items of `DTYPE`, placed as `TRAILING` says.
/// 2. None of those bytes changes while a shared reference to the value exists.
/// 3. Any items of `DTYPE` may be written over them; a `bool` item is 0 or 1.
/// 4. With `PLAIN`, this holds for any memory that holds such items, not just for values.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a DLPack element type",
    label = "no DLPack data type describes `{Self}`",
    note = "elements are the integers, the floats, `bool`, arrays `[T; N]` of them, and with the feature of the same name the types of `half`, `num-complex`, `microfloat` and `glam`; a type parameter is one with the bound `Element`",
    note = "a `#[repr(C)]` struct of equal scalars becomes one with `#[derive(Element)]`; one of different scalars is exported by column, with `#[derive(Record)]` and `#[dlpack(columns)]`"
)]
pub unsafe trait Element: Sized + Send + Sync + 'static {
    /// The type that the innermost items are.
    type Scalar: Plain<Scalar = Self::Scalar>;

    /// The data type of the items.
    const DTYPE: DataType;

    /// The axes that this element adds behind those of the tensor.
    const TRAILING: Axes = Axes::NONE;

    /// Whether every bit pattern is a value: what decides that the memory may be written as another type.
    #[doc(hidden)]
    const ANY_BITS: bool = true;

    /// Whether a value may be made by copying bytes: any items are one, but for what `ANY_BITS` says.
    #[doc(hidden)]
    const PLAIN: bool = false;

    /// That these values are what the type says; panics if not.
    #[doc(hidden)]
    #[inline]
    fn verify(_: &[Self]) {}

    /// The same before they may be written.
    #[doc(hidden)]
    #[inline]
    fn verify_mut(_: &mut [Self]) {}

    /// One value, taken from the scalars of a tensor.
    #[doc(hidden)]
    fn build(source: &mut Source<'_, Self::Scalar>) -> Self;
}

/// An [`Element`] that a slice over foreign memory may hold: a number, or an array of numbers.
///
/// Structs that derive `Element` are read with [`TensorRef::to_vec`](crate::TensorRef::to_vec),
/// which builds each of them.
///
/// ```
/// fn may_be_a_slice<T: dlpack_core::Plain>() {}
///
/// may_be_a_slice::<[f32; 3]>();
/// ```
#[diagnostic::on_unimplemented(
    message = "a slice over a tensor cannot hold `{Self}`",
    label = "expected a number or an array of numbers",
    note = "read other elements with `to_vec`, which builds each of them"
)]
pub trait Plain: Element + sealed::Sealed {}

pub(crate) mod sealed {
    /// Closes `Plain`: for which types any bytes are a value is not for others to say.
    pub trait Sealed {}
}

impl<T: Plain, const N: usize> sealed::Sealed for [T; N] {}
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

    /// The next value of a field.
    pub fn next<F>(&mut self, part: Part<F, S>) -> F {
        (part.build)(self)
    }

    pub(crate) fn scalar(&mut self) -> S {
        (self.next)()
    }
}

/// Makes elements of types that are a number, or that their own file shows to be laid out like one.
macro_rules! scalars {
    ($($rust:ty => $dtype:expr, $any_bits:literal $(, $trailing:expr)?;)*) => {$(
        // SAFETY: a primitive number is its bytes, all of them initialised, without interior
        // mutability (Rust reference, "Type layout"). Any bytes are a number; a `bool` is 0 or 1 as
        // the items of its data type are. What holds for other types is said where they are listed.
        unsafe impl $crate::element::Element for $rust {
            type Scalar = Self;
            const DTYPE: $crate::dtype::DataType = $dtype;
            $(const TRAILING: $crate::element::Axes = $trailing;)?
            const ANY_BITS: bool = $any_bits;
            const PLAIN: bool = true;

            #[inline]
            fn build(source: &mut $crate::element::Source<'_, Self>) -> Self {
                source.scalar()
            }
        }

        impl $crate::element::sealed::Sealed for $rust {}
        impl $crate::element::Plain for $rust {}
    )*};
}
pub(crate) use scalars;

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
    fn verify(values: &[Self]) {
        T::verify(values.as_flattened());
    }

    #[inline]
    fn verify_mut(values: &mut [Self]) {
        T::verify_mut(values.as_flattened_mut());
    }

    fn build(source: &mut Source<'_, Self::Scalar>) -> Self {
        core::array::from_fn(|_| T::build(source))
    }
}

/// A struct whose fields are all made of one scalar; what `#[derive(Element)]` implements.
///
/// It is safe to implement, and cannot be used to lie: [`Walk`] follows the references that it
/// hands out, and only takes them if they cover the value from its first byte to its last. A
/// reference `&'a F` inside the value is itself the proof that an `F` lies there for `'a`. For a
/// derived struct the compiler sees that every comparison holds and removes the walk; without
/// optimisation it costs some 40 ns an element.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a DLPack element type",
    label = "no DLPack data type describes `{Self}`",
    note = "elements are the integers, the floats, `bool`, arrays `[T; N]` of them, and with the feature of the same name the types of `half`, `num-complex`, `microfloat` and `glam`; a type parameter is one with the bound `Element`",
    note = "a `#[repr(C)]` struct of equal scalars becomes one with `#[derive(Element)]`; one of different scalars is exported by column, with `#[derive(Record)]` and `#[dlpack(columns)]`"
)]
pub trait Homogeneous: Sized + Send + Sync + 'static {
    /// The scalar of every field.
    type Scalar: Plain<Scalar = Self::Scalar>;
    /// The axes that the fields make.
    const TRAILING: Axes;

    /// Shows every field to `walk`, in the order of memory.
    fn walk<'a>(&'a self, walk: Walk<'a, Self::Scalar>) -> Walk<'a, Self::Scalar>;
    /// Shows every field to `walk`, in the order of memory.
    fn walk_mut<'a>(&'a mut self, walk: WalkMut<'a, Self::Scalar>) -> WalkMut<'a, Self::Scalar>;
    /// Takes every field from `source`, in the order of memory.
    fn build(source: &mut Source<'_, Self::Scalar>) -> Self;
}

/// What an element `E` does with a field of type `F`.
#[doc(hidden)]
#[inline]
#[must_use]
pub const fn part<E: Homogeneous, F: PartOf<E::Scalar>>() -> Part<F, E::Scalar> {
    Part {
        axes: F::TRAILING,
        verify: F::verify,
        verify_mut: F::verify_mut,
        build: F::build_part,
    }
}

// SAFETY: `verify` returns only if the fields that the value shows are elements of the one scalar and
// cover it from its first to its last byte, each behind the one before it (`Walk`, `covers`):
// 1. every byte then belongs to an element, and is initialised by that element's promise; their
//    number agrees with `TRAILING` (`no_padding`).
// 2. a `&'a F` to those bytes exists for as long as the `&'a Self` does, so they do not change.
// 3. before anything is written, `verify_mut` has seen a `&'a mut F` to them.
#[diagnostic::do_not_recommend]
unsafe impl<T: Homogeneous> Element for T {
    type Scalar = T::Scalar;
    const DTYPE: DataType = T::Scalar::DTYPE;
    const TRAILING: Axes = <T as Homogeneous>::TRAILING;
    const ANY_BITS: bool = T::Scalar::ANY_BITS;

    #[inline]
    fn verify(values: &[Self]) {
        const { no_padding::<T>() }
        let honest = values.iter().all(|value| {
            let start = core::ptr::from_ref(value).addr();
            let walk = value.walk(Walk {
                at: start,
                whole: true,
                scalar: PhantomData,
            });
            walk.whole && walk.at == start + size_of::<T>()
        });
        assert!(honest, "the fields that a value shows are not the value");
    }

    #[inline]
    fn verify_mut(values: &mut [Self]) {
        const { no_padding::<T>() }
        let honest = values.iter_mut().all(|value| {
            let start = core::ptr::from_mut(value).addr();
            let walk = value.walk_mut(WalkMut {
                at: start,
                whole: true,
                scalar: PhantomData,
            });
            walk.whole && walk.at == start + size_of::<T>()
        });
        assert!(honest, "the fields that a value shows are not the value");
    }

    fn build(source: &mut Source<'_, Self::Scalar>) -> Self {
        <T as Homogeneous>::build(source)
    }
}

/// That the axes of `T` account for every byte of it.
#[doc(hidden)]
pub const fn no_padding<T: Homogeneous>() {
    assert!(
        <T as Homogeneous>::TRAILING.items() * T::Scalar::DTYPE.itemsize_bits()
            == size_of::<T>() * 8,
        "an element must not have padding: every byte belongs to one of its scalars"
    );
}

/// Follows the fields of one value; see [`Homogeneous`].
#[doc(hidden)]
pub struct Walk<'a, S> {
    at: usize,
    whole: bool,
    scalar: PhantomData<&'a S>,
}

impl<'a, S> Walk<'a, S> {
    /// The next field: it must begin where the one before it ended.
    #[inline]
    #[must_use]
    pub fn field<F>(mut self, field: &'a F, part: Part<F, S>) -> Self {
        (part.verify)(core::slice::from_ref(field));
        self.whole = self.whole && core::ptr::from_ref(field).addr() == self.at;
        self.at += size_of::<F>();
        self
    }
}

/// Follows the fields of one value that may be written; see [`Homogeneous`].
#[doc(hidden)]
pub struct WalkMut<'a, S> {
    at: usize,
    whole: bool,
    scalar: PhantomData<&'a mut S>,
}

impl<'a, S> WalkMut<'a, S> {
    /// The next field: it must begin where the one before it ended.
    #[inline]
    #[must_use]
    pub fn field<F>(mut self, field: &'a mut F, part: Part<F, S>) -> Self {
        (part.verify_mut)(core::slice::from_mut(field));
        self.whole = self.whole && core::ptr::from_mut(field).addr() == self.at;
        self.at += size_of::<F>();
        self
    }
}

/// Holds where an element is made of the scalar `S`; its message speaks to who derives `Element`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an element of `{S}`",
    label = "`{Self}` is not made of `{S}`",
    note = "an element is made of one scalar: of numbers, arrays of them and other elements; a struct of different ones is exported by column, with `#[derive(Record)]` and `#[dlpack(columns)]`"
)]
pub trait PartOf<S>: Element {
    /// A field from the next scalars.
    fn build_part(source: &mut Source<'_, S>) -> Self;
}

// The one scalar is asked for by a trait of its own: as `Element<Scalar = S>`, rustc would report two
// types that differ instead of what is written above.
#[diagnostic::do_not_recommend]
impl<T: Element<Scalar: Same<S>>, S> PartOf<S> for T {
    #[inline]
    fn build_part(source: &mut Source<'_, S>) -> Self {
        T::build(T::Scalar::same(source))
    }
}

/// Holds between a type and itself.
#[doc(hidden)]
pub trait Same<S>: Sized {
    /// What it was given.
    fn same<'a, 'b>(source: &'a mut Source<'b, S>) -> &'a mut Source<'b, Self>;
}

impl<S> Same<S> for S {
    #[inline]
    fn same<'a, 'b>(source: &'a mut Source<'b, S>) -> &'a mut Source<'b, S> {
        source
    }
}

/// What is done with a field of type `F`; made by [`part`], the one place that asks for bounds, so
/// that a field that breaks them is reported once.
#[doc(hidden)]
#[derive(Debug)]
pub struct Part<F, S> {
    axes: Axes,
    verify: fn(&[F]),
    verify_mut: fn(&mut [F]),
    build: fn(&mut Source<'_, S>) -> F,
}

impl<F, S> Part<F, S> {
    /// The axes of the field's own.
    #[must_use]
    pub const fn axes(&self) -> Axes {
        self.axes
    }
}

/// The [`Walk`] over an `E`.
#[doc(hidden)]
pub type WalkOf<'a, E> = Walk<'a, <E as Homogeneous>::Scalar>;
/// The [`WalkMut`] over an `E`.
#[doc(hidden)]
pub type WalkMutOf<'a, E> = WalkMut<'a, <E as Homogeneous>::Scalar>;
/// The [`Source`] of an `E`.
#[doc(hidden)]
pub type SourceOf<'a, E> = Source<'a, <E as Homogeneous>::Scalar>;

/// What is known of a type if it is an element; read where another call already complains that it is not.
#[doc(hidden)]
pub struct Elem<E>(PhantomData<E>);

impl<E: Element> Elem<E> {
    /// What a list of them exports.
    pub const FACTS: Facts = Facts::list::<E>();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_row_major() {
        let axes = <[[[u8; 4]; 3]; 2]>::TRAILING;
        assert_eq!(axes.extents(), [2, 3, 4]);
        assert_eq!(axes.strides(), [12, 4, 1]);
        assert_eq!(axes.items(), 24);
    }

    #[test]
    fn matrices_by_column() {
        let axes = Axes::of_columns(3, 2, Axes::of_array(5, Axes::NONE));
        assert_eq!(axes.extents(), [3, 2, 5]);
        assert_eq!(axes.strides(), [5, 15, 1]);
        assert_eq!(axes.items(), 30);
    }

    #[test]
    fn fields_of_different_rank_become_one_axis() {
        let mixed = Axes::of_fields(&[<[f32; 3]>::TRAILING, f32::TRAILING]);
        assert_eq!(mixed.extents(), [4]);
        let alike = Axes::of_fields(&[<[f32; 3]>::TRAILING, <[f32; 3]>::TRAILING]);
        assert_eq!(alike.extents(), [2, 3]);
    }

    struct Liar {
        inside: f32,
        lies: bool,
    }

    impl Homogeneous for Liar {
        type Scalar = f32;
        const TRAILING: Axes = Axes::of_array(2, Axes::NONE);

        fn walk<'a>(&'a self, walk: Walk<'a, f32>) -> Walk<'a, f32> {
            static OUTSIDE: f32 = 0.0;
            assert!(self.lies);
            walk.field(&self.inside, part::<Self, f32>())
                .field(&OUTSIDE, part::<Self, f32>())
        }

        fn walk_mut<'a>(&'a mut self, walk: WalkMut<'a, f32>) -> WalkMut<'a, f32> {
            walk.field(&mut self.inside, part::<Self, f32>())
        }

        fn build(source: &mut Source<'_, f32>) -> Self {
            Self {
                inside: source.next(part::<Self, f32>()),
                lies: true,
            }
        }
    }

    #[test]
    #[should_panic = "are not the value"]
    fn a_value_cannot_lie_about_its_fields() {
        Liar::verify(&[Liar {
            inside: 0.0,
            lies: true,
        }]);
    }

    #[test]
    #[should_panic = "are not the value"]
    fn a_value_cannot_leave_bytes_out_before_they_are_written() {
        Liar::verify_mut(&mut [Liar {
            inside: 0.0,
            lies: true,
        }]);
    }
}
