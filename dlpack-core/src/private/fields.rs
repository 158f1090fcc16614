//! What a record does with a field of its own.
//!
//! For each field one call of the derive has the bound that the type must meet, and complains if it does not. All else asks here,
//! where a type that meets no bound has an answer too, so that one mistake is reported once.

use core::marker::PhantomData;

use crate::element::Element;
use crate::element::fields::FieldType;
use crate::tensor::array_element::{FieldReader, FieldWriter, NestedValue};

/// A field of type `F`, which is an element.
#[derive(Debug)]
pub struct ElementField<F>(PhantomData<F>);

impl<F: Element> ElementField<F> {
    /// What the layout says of it.
    pub const TYPE: FieldType = FieldType::of_element::<F>();

    /// Reads it.
    #[must_use]
    #[inline(always)]
    pub fn read(from: &FieldReader<'_>, offset: usize) -> F {
        from.read_element(offset)
    }

    /// Writes it.
    #[inline(always)]
    pub fn write(to: &mut FieldWriter<'_>, offset: usize, value: &F) {
        to.write_element(offset, value);
    }
}

/// A field of type `F`, which is a record or an array of records.
#[derive(Debug)]
pub struct NestedField<F>(PhantomData<F>);

impl<F: NestedValue> NestedField<F> {
    /// What the layout says of it.
    pub const TYPE: FieldType = FieldType::of_record(F::NESTED);

    /// Writes it.
    #[inline(always)]
    pub fn write(to: &mut FieldWriter<'_>, offset: usize, value: &F) {
        to.write_record(offset, value);
    }
}

/// In scope where a field is asked: the answers for a type that cannot be that field.
pub trait UnsaidField<F> {
    /// What the layout says of it.
    const TYPE: FieldType = FieldType::UNKNOWN;

    /// Reads it.
    #[must_use]
    fn read(_: &FieldReader<'_>, _: usize) -> F {
        unreachable!("another call does not compile")
    }

    /// Writes it.
    fn write(_: &mut FieldWriter<'_>, _: usize, _: &F) {
        unreachable!("another call does not compile")
    }
}

impl<F> UnsaidField<F> for ElementField<F> {}
impl<F> UnsaidField<F> for NestedField<F> {}
