//! How a struct of equal scalars proves to be an element, without a line of unsafe code in the derive.
#![expect(unsafe_code, reason = "the proof stands for the promise of `Element`")]

use core::{marker::PhantomData, mem::size_of};

use crate::DataType;
use crate::element::{Element, Plain, Source, axes::Axes, sealed};

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
    fn walk_fields<'a>(&'a self, walk: Walk<'a, Self::Scalar>) -> Walk<'a, Self::Scalar>;
    /// Shows every field to `walk`, in the order of memory.
    fn walk_fields_mut<'a>(
        &'a mut self,
        walk: WalkMut<'a, Self::Scalar>,
    ) -> WalkMut<'a, Self::Scalar>;
    /// Takes every field from `source`, in the order of memory.
    fn build_from(source: &mut Source<'_, Self::Scalar>) -> Self;
}

/// What an element `E` does with a field of type `F`.
#[doc(hidden)]
#[inline]
#[must_use]
pub const fn describe_element_field<E: Homogeneous, F: PartOf<E::Scalar>>()
-> FieldDescription<F, E::Scalar> {
    FieldDescription {
        axes: F::TRAILING,
        verify_values: F::verify_values,
        verify_values_mut: F::verify_values_mut,
        build: F::build_part,
    }
}

// SAFETY: `verify_values` returns only if the fields that the value shows are elements of the one scalar and
// cover it from its first to its last byte, each behind the one before it (`Walk`, `covers`):
// 1. every byte then belongs to an element, and is initialised by that element's promise; their
//    number agrees with `TRAILING` (`no_padding`).
// 2. a `&'a F` to those bytes exists for as long as the `&'a Self` does, so they do not change.
// 3. before anything is written, `verify_values_mut` has seen a `&'a mut F` to them.
#[diagnostic::do_not_recommend]
unsafe impl<T: Homogeneous> Element for T {
    type Scalar = T::Scalar;
    const DTYPE: DataType = T::Scalar::DTYPE;
    const TRAILING: Axes = <T as Homogeneous>::TRAILING;
    const ANY_BITS: bool = T::Scalar::ANY_BITS;

    #[inline]
    fn verify_values(values: &[Self]) {
        const { no_padding::<T>() }
        let honest = values.iter().all(|value| {
            let start = core::ptr::from_ref(value).addr();
            (value.walk_fields(Walk::from(start))).covers_until(start + size_of::<T>())
        });
        assert!(honest, "the fields that a value shows are not the value");
    }

    #[inline]
    fn verify_values_mut(values: &mut [Self]) {
        const { no_padding::<T>() }
        let honest = values.iter_mut().all(|value| {
            let start = core::ptr::from_mut(value).addr();
            (value.walk_fields_mut(WalkMut::from(start))).covers_until(start + size_of::<T>())
        });
        assert!(honest, "the fields that a value shows are not the value");
    }

    fn build_from(source: &mut Source<'_, Self::Scalar>) -> Self {
        <T as Homogeneous>::build_from(source)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Homogeneous> sealed::Element for T {}

/// That the axes of `T` account for every byte of it.
#[doc(hidden)]
pub const fn no_padding<T: Homogeneous>() {
    assert!(
        <T as Homogeneous>::TRAILING.count_items() * T::Scalar::DTYPE.itemsize_bits()
            == size_of::<T>() * 8,
        "an element must not have padding: every byte belongs to one of its scalars"
    );
}

macro_rules! walks {
    ($($(#[$doc:meta])* $walk:ident: $field:ty, $verify:ident, $one:ident, $address:ident;)*) => {$(
        $(#[$doc])*
        #[doc(hidden)]
        pub struct $walk<'a, S> {
            at: usize,
            whole: bool,
            scalar: PhantomData<&'a S>,
        }

        impl<'a, S> $walk<'a, S> {
            #[inline]
            fn from(at: usize) -> Self {
                Self { at, whole: true, scalar: PhantomData }
            }

            /// The next field: it must begin where the one before it ended.
            #[inline]
            #[must_use]
            pub fn field<F>(mut self, field: $field, field_type: FieldDescription<F, S>) -> Self {
                (field_type.$verify)(core::slice::$one(field));
                self.whole = self.whole && core::ptr::$address(field).addr() == self.at;
                self.at += size_of::<F>();
                self
            }

            /// Whether the fields lie one behind the other, up to here.
            #[inline]
            fn covers_until(&self, end: usize) -> bool {
                self.whole && self.at == end
            }
        }
    )*};
}
walks! {
    /// Follows the fields of one value; see [`Homogeneous`].
    Walk: &'a F, verify_values, from_ref, from_ref;
    /// Follows the fields of one value that may be written; see [`Homogeneous`].
    WalkMut: &'a mut F, verify_values_mut, from_mut, from_mut;
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
        T::build_from(T::Scalar::cast_source(source))
    }
}

/// Holds between a type and itself.
#[doc(hidden)]
pub trait Same<S>: Sized {
    /// What it was given.
    fn cast_source<'a, 'b>(source: &'a mut Source<'b, S>) -> &'a mut Source<'b, Self>;
}

impl<S> Same<S> for S {
    #[inline]
    fn cast_source<'a, 'b>(source: &'a mut Source<'b, S>) -> &'a mut Source<'b, S> {
        source
    }
}

/// What is done with a field of type `F`; made by [`describe_element_field`], the one place that asks for bounds, so
/// that a field that breaks them is reported once.
#[doc(hidden)]
#[derive(Debug)]
pub struct FieldDescription<F, S> {
    axes: Axes,
    verify_values: fn(&[F]),
    verify_values_mut: fn(&mut [F]),
    pub(crate) build: fn(&mut Source<'_, S>) -> F,
}

impl<F, S> FieldDescription<F, S> {
    /// The axes of the field's own.
    #[must_use]
    pub const fn axes(&self) -> Axes {
        self.axes
    }
}

impl<S> Source<'_, S> {
    /// The next value of a field.
    pub fn next<F>(&mut self, field_type: FieldDescription<F, S>) -> F {
        (field_type.build)(self)
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Liar {
        inside: f32,
        lies: bool,
    }

    impl Homogeneous for Liar {
        type Scalar = f32;
        const TRAILING: Axes = Axes::of_array(2, Axes::NONE);

        fn walk_fields<'a>(&'a self, walk: Walk<'a, f32>) -> Walk<'a, f32> {
            static OUTSIDE: f32 = 0.0;
            assert!(self.lies);
            walk.field(&self.inside, describe_element_field::<Self, f32>())
                .field(&OUTSIDE, describe_element_field::<Self, f32>())
        }

        fn walk_fields_mut<'a>(&'a mut self, walk: WalkMut<'a, f32>) -> WalkMut<'a, f32> {
            walk.field(&mut self.inside, describe_element_field::<Self, f32>())
        }

        fn build_from(source: &mut Source<'_, f32>) -> Self {
            Self {
                inside: source.next(describe_element_field::<Self, f32>()),
                lies: true,
            }
        }
    }

    #[test]
    #[should_panic = "are not the value"]
    fn a_value_cannot_lie_about_its_fields() {
        Liar::verify_values(&[Liar {
            inside: 0.0,
            lies: true,
        }]);
    }

    #[test]
    #[should_panic = "are not the value"]
    fn a_value_cannot_leave_bytes_out_before_they_are_written() {
        Liar::verify_values_mut(&mut [Liar {
            inside: 0.0,
            lies: true,
        }]);
    }
}
