//! Checks that a struct of equal scalars is an element, so that the derive needs no `unsafe`.
#![expect(unsafe_code, reason = "the check replaces the promise of `Element`")]

use core::{marker::PhantomData, mem::size_of};

use crate::DataType;
use crate::element::axes::{Axes, TOO_MANY_ITEMS};
use crate::element::{Element, Plain, Source, sealed};

/// A struct whose fields all consist of one scalar type. `#[derive(Element)]` implements it.
///
/// The trait is safe to implement, because a wrong implementation is detected: [`Walk`] accepts the references to the fields only
/// if they cover the value from its first byte to its last. A reference `&'a F` inside the value proves that an `F` is there for
/// `'a`. For a derived struct the optimiser removes the comparisons; without optimisation they take about 40 ns for each element.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a DLPack element type",
    label = "no DLPack data type describes `{Self}`",
    note = "elements are the integers, the floats, `bool`, arrays `[T; N]` of them, and with the feature of the same name the types of `half`, `num-complex`, `microfloat` and `glam`; a type parameter is one with the bound `Element`",
    note = "a `#[repr(C)]` struct of equal scalars becomes one with `#[derive(Element)]`; one of different scalars is exported by column, with `#[derive(Record)]` and `#[dlpack(columns)]`, and a list of them is returned as `dlpack_pyo3::Numpy<Records<T>>`"
)]
pub trait Homogeneous: Sized + Send + Sync + 'static {
    /// The scalar of every field.
    type Scalar: Plain<Scalar = Self::Scalar>;
    /// The axes of the struct.
    const TRAILING: Axes;

    /// Passes a reference to every field to `walk`, in memory order.
    fn walk_fields<'a>(&'a self, walk: Walk<'a, Self::Scalar>) -> Walk<'a, Self::Scalar>;
    /// Passes a mutable reference to every field to `walk`, in memory order.
    fn walk_fields_mut<'a>(
        &'a mut self,
        walk: WalkMut<'a, Self::Scalar>,
    ) -> WalkMut<'a, Self::Scalar>;
    /// Takes every field from `source`, in memory order.
    fn build_from(source: &mut Source<'_, Self::Scalar>) -> Self;
}

/// The facts and functions that an element `E` needs for a field of type `F`.
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

// SAFETY: `verify_values` returns only if the references of `walk_fields` are to elements of the one scalar, and cover the value
// from its first to its last byte, each after the one before it (`Walk::covers_until`):
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

/// Checks at compile time that the scalars of `T` take all of its bytes.
#[doc(hidden)]
pub const fn no_padding<T: Homogeneous>() {
    // Checked, since a product that overflows in a release build could be the right one by chance.
    let items = <T as Homogeneous>::TRAILING.count_items();
    let bits = items.checked_mul(T::Scalar::DTYPE.itemsize_bits());
    let needed = size_of::<T>().checked_mul(8);
    assert!(
        bits.expect(TOO_MANY_ITEMS) == needed.expect(TOO_MANY_ITEMS),
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

            /// Records the next field, which must begin at the end of the previous one.
            #[inline]
            #[must_use]
            pub fn field<F>(mut self, field: $field, field_type: FieldDescription<F, S>) -> Self {
                (field_type.$verify)(core::slice::$one(field));
                self.whole = self.whole && core::ptr::$address(field).addr() == self.at;
                self.at += size_of::<F>();
                self
            }

            /// Whether the fields are contiguous and end at `end`.
            #[inline]
            fn covers_until(&self, end: usize) -> bool {
                self.whole && self.at == end
            }
        }
    )*};
}
walks! {
    /// Checks that fields are contiguous; see [`Homogeneous`].
    Walk: &'a F, verify_values, from_ref, from_ref;
    /// Checks that mutable fields are contiguous; see [`Homogeneous`].
    WalkMut: &'a mut F, verify_values_mut, from_mut, from_mut;
}

/// An element whose scalar is `S`. The compiler shows its message at a field of a struct with `#[derive(Element)]`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of an element of `{S}`",
    label = "`{Self}` is not made of `{S}`",
    note = "an element is made of one scalar: of numbers, arrays of them and other elements; a struct of different ones is exported by column, with `#[derive(Record)]` and `#[dlpack(columns)]`"
)]
pub trait PartOf<S>: Element {
    /// Makes a field from the next scalars.
    fn build_part(source: &mut Source<'_, S>) -> Self;
}

// This is a trait of its own because for the bound `Element<Scalar = S>` rustc would report a type mismatch instead of the message
// above.
#[diagnostic::do_not_recommend]
impl<T: Element<Scalar: Same<S>>, S> PartOf<S> for T {
    #[inline]
    fn build_part(source: &mut Source<'_, S>) -> Self {
        T::build_from(T::Scalar::cast_source(source))
    }
}

/// Implemented only if `Self` and `S` are the same type.
#[doc(hidden)]
pub trait Same<S>: Sized {
    /// Returns its argument.
    fn cast_source<'a, 'b>(source: &'a mut Source<'b, S>) -> &'a mut Source<'b, Self>;
}

impl<S> Same<S> for S {
    #[inline]
    fn cast_source<'a, 'b>(source: &'a mut Source<'b, S>) -> &'a mut Source<'b, S> {
        source
    }
}

/// The facts and functions for a field of type `F`. Only [`describe_element_field`] has bounds on `F`, so the compiler reports a
/// field that violates them once.
#[doc(hidden)]
#[derive(Debug)]
pub struct FieldDescription<F, S> {
    axes: Axes,
    verify_values: fn(&[F]),
    verify_values_mut: fn(&mut [F]),
    pub(crate) build: fn(&mut Source<'_, S>) -> F,
}

impl<F, S> FieldDescription<F, S> {
    /// The axes that the field adds.
    #[must_use]
    pub const fn axes(&self) -> Axes {
        self.axes
    }
}

impl<S> Source<'_, S> {
    /// Makes the next field.
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

    /// Has a field that is not what it says.
    struct AroundLiar(Liar);

    impl Homogeneous for AroundLiar {
        type Scalar = f32;
        const TRAILING: Axes = Axes::of_array(2, Axes::NONE);

        fn walk_fields<'a>(&'a self, walk: Walk<'a, f32>) -> Walk<'a, f32> {
            walk.field(&self.0, describe_element_field::<Self, Liar>())
        }

        fn walk_fields_mut<'a>(&'a mut self, walk: WalkMut<'a, f32>) -> WalkMut<'a, f32> {
            walk.field(&mut self.0, describe_element_field::<Self, Liar>())
        }

        fn build_from(source: &mut Source<'_, f32>) -> Self {
            Self(source.next(describe_element_field::<Self, Liar>()))
        }
    }

    #[test]
    #[should_panic = "are not the value"]
    fn a_field_cannot_lie_about_its_own_fields() {
        AroundLiar::verify_values(&[AroundLiar(Liar {
            inside: 0.0,
            lies: true,
        })]);
    }

    #[test]
    #[should_panic = "are not the value"]
    fn a_field_cannot_leave_bytes_out_before_they_are_written() {
        AroundLiar::verify_values_mut(&mut [AroundLiar(Liar {
            inside: 0.0,
            lies: true,
        })]);
    }

    /// Shows one field twice, and the other, which is not made of its scalar, not at all.
    struct Twice {
        shown: f32,
        hidden: u32,
    }

    impl Homogeneous for Twice {
        type Scalar = f32;
        const TRAILING: Axes = Axes::of_array(2, Axes::NONE);

        fn walk_fields<'a>(&'a self, walk: Walk<'a, f32>) -> Walk<'a, f32> {
            walk.field(&self.shown, describe_element_field::<Self, f32>())
                .field(&self.shown, describe_element_field::<Self, f32>())
        }

        fn walk_fields_mut<'a>(&'a mut self, walk: WalkMut<'a, f32>) -> WalkMut<'a, f32> {
            walk.field(&mut self.shown, describe_element_field::<Self, f32>())
        }

        fn build_from(source: &mut Source<'_, f32>) -> Self {
            Self {
                shown: source.next(describe_element_field::<Self, f32>()),
                hidden: 0,
            }
        }
    }

    /// Claims as many scalars as make a product of bits that wraps to that of one.
    struct Wraps(u8);

    impl Homogeneous for Wraps {
        type Scalar = u8;
        const TRAILING: Axes = Axes::of_array((1 << 61) + 1, Axes::NONE);

        fn walk_fields<'a>(&'a self, walk: Walk<'a, u8>) -> Walk<'a, u8> {
            walk.field(&self.0, describe_element_field::<Self, u8>())
        }

        fn walk_fields_mut<'a>(&'a mut self, walk: WalkMut<'a, u8>) -> WalkMut<'a, u8> {
            walk.field(&mut self.0, describe_element_field::<Self, u8>())
        }

        fn build_from(source: &mut Source<'_, u8>) -> Self {
            Self(source.next(describe_element_field::<Self, u8>()))
        }
    }

    /// The message is ours: without overflow checks, as in a release build, `*` would wrap.
    #[test]
    #[should_panic = "the number of items in an element overflows"]
    fn the_number_of_bits_does_not_wrap() {
        no_padding::<Wraps>();
    }

    #[test]
    #[should_panic = "are not the value"]
    fn a_field_that_is_shown_twice_does_not_stand_for_another() {
        let value = Twice {
            shown: 0.0,
            hidden: 7,
        };
        assert_eq!(value.hidden, 7);
        Twice::verify_values(&[value]);
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
