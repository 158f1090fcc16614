//! Reads, writes and describes the fields of a record, for the code that `#[derive(Record)]` generates.
//!
//! For each field the derive generates one call whose bound the field's type must satisfy; rustc reports an unsupported type
//! there. All other generated code uses the functions of this file. They also compile for an unsupported type, by the defaults of
//! [`UnsaidField`], so that one mistake is reported once.

use core::marker::PhantomData;

use crate::element::Element;
use crate::element::fields::FieldType;
use crate::tensor::array_element::{FieldReader, FieldWriter, NestedValue};

/// A field of type `F`, which is an element.
#[derive(Debug)]
pub struct ElementField<F>(PhantomData<F>);

impl<F: Element> ElementField<F> {
    /// The type of the field in the layout of the record.
    pub const TYPE: FieldType = FieldType::of_element::<F>();

    /// Reads the field at this offset in the record.
    #[must_use]
    #[inline(always)]
    pub fn read(from: &FieldReader<'_>, offset: usize) -> F {
        from.read_element(offset)
    }

    /// Writes the field at this offset in the record.
    #[inline(always)]
    pub fn write(to: &mut FieldWriter<'_>, offset: usize, value: &F) {
        to.write_element(offset, value);
    }
}

/// A field of type `F`, which is a record or an array of records.
#[derive(Debug)]
pub struct NestedField<F>(PhantomData<F>);

impl<F: NestedValue> NestedField<F> {
    /// The type of the field in the layout of the record.
    pub const TYPE: FieldType = FieldType::of_record(F::NESTED);

    /// Writes the field at this offset in the record.
    #[inline(always)]
    pub fn write(to: &mut FieldWriter<'_>, offset: usize, value: &F) {
        to.write_record(offset, value);
    }
}

/// Defaults for a field type that is neither an element nor a record. Generated code has this trait in scope. An inherent item of
/// [`ElementField`] or [`NestedField`] takes precedence if the type has one.
pub trait UnsaidField<F> {
    /// The default of `TYPE`.
    const TYPE: FieldType = FieldType::UNKNOWN;

    /// The default of `read`. Never called: code with such a type does not compile.
    #[must_use]
    fn read(_: &FieldReader<'_>, _: usize) -> F {
        unreachable!("another call does not compile")
    }

    /// The default of `write`. Never called: code with such a type does not compile.
    fn write(_: &mut FieldWriter<'_>, _: usize, _: &F) {
        unreachable!("another call does not compile")
    }
}

impl<F> UnsaidField<F> for ElementField<F> {}
impl<F> UnsaidField<F> for NestedField<F> {}
