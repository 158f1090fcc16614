//! Fields and elements that are not what they say, and bytes that are no `bool`.
#![expect(unsafe_code, reason = "reads and writes records by their address")]

use super::*;
use crate::element::fields::{FieldLayout, FieldType};
use crate::element::homogeneous::{Homogeneous, Walk, WalkMut};

/// A record that reads and writes a field beyond its end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Liar(u32);

impl RecordValue for Liar {
    const FIELDS: &'static RecordLayout =
        &RecordLayout::of::<Self>(&[FieldLayout::new::<u32>("0", 0, FieldType::UNKNOWN)]);

    fn read_fields(from: &FieldReader<'_>) -> Self {
        Self(from.read_element(2))
    }

    fn write_fields(&self, to: &mut FieldWriter<'_>) {
        to.write_element(2, &self.0);
    }
}

#[test]
#[should_panic = "reaches outside"]
fn no_field_is_read_outside_of_its_record() {
    let memory = 7_u32;
    // SAFETY: `memory` has four bytes, which no code writes.
    unsafe {
        <FieldAccess as ElementAccess<Liar>>::read_element((&raw const memory).cast(), false)
    };
}

#[test]
#[should_panic = "reaches outside"]
fn no_field_is_written_outside_of_its_record() {
    let mut memory = 7_u32;
    // SAFETY: `memory` has four writable bytes, which no other code accesses.
    unsafe { FieldAccess::store_elements((&raw mut memory).cast(), &[Liar(1)]) };
}

/// An element that is made of the next scalars of a tensor, and not by a copy of their bytes.
struct Built {
    first: f32,
    /// Whether the second scalar was taken.
    made: u32,
}

impl Homogeneous for Built {
    type Scalar = f32;
    const TRAILING: Axes = Axes::of_array(2, Axes::NONE);

    fn walk_fields<'a>(&'a self, _: Walk<'a, f32>) -> Walk<'a, f32> {
        unreachable!("the element is only read")
    }

    fn walk_fields_mut<'a>(&'a mut self, _: WalkMut<'a, f32>) -> WalkMut<'a, f32> {
        unreachable!("the element is only read")
    }

    fn build_from(source: &mut Source<'_, f32>) -> Self {
        let first = source.scalar();
        let made = u32::from(source.scalar() == 2.0);
        // A negative number makes it take more than it has.
        if first < 0.0 {
            source.scalar();
        }
        Self { first, made }
    }
}

/// Reads the element of two numbers at the start of a record of four.
fn build(numbers: [f32; 4]) -> Built {
    let reader = FieldReader {
        data: numbers.as_ptr().cast(),
        len: size_of_val(&numbers),
        shared: true,
        lifetime: PhantomData,
    };
    reader.read_element(0)
}

#[test]
fn elements_that_are_not_plain_are_built_of_their_scalars() {
    let built = build([1.0, 2.0, 3.0, 4.0]);
    assert_eq!((built.first, built.made), (1.0, 1));
}

#[test]
#[should_panic = "more scalars than it has"]
fn an_element_is_built_of_no_other_scalars() {
    build([-1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn any_byte_is_a_bool() {
    let reader = FieldReader {
        data: [0_u8, 1, 2, 255].as_ptr(),
        len: 4,
        shared: true,
        lifetime: PhantomData,
    };
    assert_eq!(
        reader.read_element::<[bool; 4]>(0),
        [false, true, true, true]
    );
}
