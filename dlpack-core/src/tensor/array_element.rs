//! What typed arrays hold: numbers, arrays of numbers, and records, which are read and written field by field.
//!
//! ```text
//! ArrayElement ──Access──┬── PlainAccess   every byte belongs to a number: bytes are copied
//!                        └── FieldAccess   a record: each field is copied, padding never
//! ```
//!
//! The derive writes the two functions of [`RecordValue`], which are safe: [`FieldReader`] and [`FieldWriter`] check that a
//! field lies inside the record, and that all its bytes are initialised.
#![expect(unsafe_code, reason = "reads and writes elements by their address")]

use core::marker::PhantomData;
use core::mem::{MaybeUninit, align_of, size_of};
use core::slice;

use crate::element::{Axes, Plain, RecordLayout, Source, make_values};
use crate::memory::atomic;
use crate::tensor::items;
use crate::{DataType, Element};

/// An element of a typed array: a number, an array of numbers, or a struct with `#[derive(Record)]`.
///
/// Every [`Plain`] type is one. A record is one if none of its fields is marked `#[dlpack(skip)]`; it comes from structured
/// arrays of NumPy's, and arrays of it want the record to be `Copy`.
///
/// ```
/// use dlpack_core::{Record, array::ArrayElement};
///
/// #[derive(Record, Clone, Copy)]
/// #[repr(C)]
/// struct Trade { price: f64, size: u32, bid: bool }
///
/// fn may_be_in_an_array<T: ArrayElement>() {}
///
/// may_be_in_an_array::<[f32; 3]>();
/// may_be_in_an_array::<Trade>();
/// ```
#[diagnostic::on_unimplemented(
    message = "slices and typed arrays over a tensor cannot hold `{Self}`",
    label = "expected a number, such as `f32`, an array of numbers, such as `[u8; 3]`, or a record",
    note = "a `#[repr(C)]` struct of numbers is a record with `#[derive(Record, Clone, Copy)]`, if none of its fields is marked `#[dlpack(skip)]`",
    note = "read other elements with `TensorRef::to_vec`, which builds each of them"
)]
pub trait ArrayElement: Sized + Send + Sync + 'static {
    /// How elements are read and written.
    #[doc(hidden)]
    type Access: ElementAccess<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: Plain> ArrayElement for T {
    type Access = PlainAccess;
}

mod sealed {
    pub trait Sealed {}
}

/// How elements of type `T` are read and written.
#[doc(hidden)]
pub trait ElementAccess<T>: sealed::Sealed {
    /// The bytes that strides are counted in: those of a scalar, and single bytes for a record.
    const UNIT: usize;

    /// The data type of the scalars; of no meaning for a record.
    const DTYPE: DataType;

    /// The axes of an element.
    const TRAILING: Axes;

    /// The layout, if the elements are records.
    const RECORD: Option<&'static RecordLayout>;

    /// Does a task in the way of these elements. Nothing is compiled of the other way.
    fn run_task<F: ElementTask<T>>(task: F) -> F::Output;

    /// Reads one element, atomically if others may be writing it.
    ///
    /// # Safety
    ///
    /// At `at` are the bytes of an element of an array, which Rust code only writes atomically if it is `shared`, and else
    /// nobody writes.
    unsafe fn read_element(at: *const T, shared: bool) -> T;

    /// Reads elements that lie one after another.
    ///
    /// # Safety
    ///
    /// As for [`ElementAccess::read_element`], of `count` shared elements; there is space for as many at `to`.
    unsafe fn load_elements(from: *const u8, to: *mut T, count: usize);

    /// Makes elements of copied bytes.
    ///
    /// # Safety
    ///
    /// The elements are [`Plain`], and at `elements` are the bytes of `count` of them, which are the caller's alone.
    unsafe fn make_values(elements: *mut T, count: usize);

    /// Writes elements that lie one after another.
    ///
    /// # Safety
    ///
    /// The memory of so many elements may be written at `to`, atomically.
    unsafe fn store_elements(to: *mut u8, elements: &[T]);
}

/// A task that is one thing for elements that are [`Plain`], and another for records.
#[doc(hidden)]
pub trait ElementTask<T> {
    /// What it gives.
    type Output;

    /// Does it for numbers.
    fn run_for_plain(self) -> Self::Output
    where
        T: Plain;

    /// Does it for records of this layout.
    fn run_for_records(self, layout: &'static RecordLayout) -> Self::Output;
}

/// Elements whose bytes are copied.
#[doc(hidden)]
#[derive(Debug)]
pub struct PlainAccess;

impl sealed::Sealed for PlainAccess {}

impl<T: Plain> ElementAccess<T> for PlainAccess {
    const UNIT: usize = size_of::<T::Scalar>();
    const DTYPE: DataType = T::DTYPE;
    const TRAILING: Axes = T::TRAILING;
    const RECORD: Option<&'static RecordLayout> = None;

    #[inline(always)]
    fn run_task<F: ElementTask<T>>(task: F) -> F::Output {
        task.run_for_plain()
    }

    #[inline(always)]
    unsafe fn read_element(at: *const T, shared: bool) -> T {
        // SAFETY: same contract as this function's: `at` is the address of an element.
        unsafe { items::read_item(at, shared) }
    }

    #[inline(always)]
    unsafe fn load_elements(from: *const u8, to: *mut T, count: usize) {
        let bytes = count * size_of::<T>();
        // SAFETY: so many elements, which Rust code writes atomically, and space for as many.
        unsafe { atomic::load(from, to.cast(), bytes, align_of::<T>()) };
        // SAFETY: their bytes were just written.
        unsafe { make_values(to, count) };
    }

    #[inline(always)]
    unsafe fn make_values(elements: *mut T, count: usize) {
        // SAFETY: same contract as this function's: the bytes of `count` elements.
        unsafe { make_values(elements, count) }
    }

    #[inline(always)]
    unsafe fn store_elements(to: *mut u8, elements: &[T]) {
        let (from, bytes) = (elements.as_ptr().cast(), size_of_val(elements));
        // SAFETY: the caller's promise, for as many bytes as there are to be read.
        unsafe { atomic::store(from, to, bytes, align_of::<T>()) };
    }
}

/// Records, whose fields are read and written one by one.
#[doc(hidden)]
#[derive(Debug)]
pub struct FieldAccess;

impl sealed::Sealed for FieldAccess {}

impl<T: RecordValue> ElementAccess<T> for FieldAccess {
    const UNIT: usize = 1;
    const DTYPE: DataType = DataType::U8;
    const TRAILING: Axes = Axes::NONE;
    const RECORD: Option<&'static RecordLayout> = Some(T::FIELDS);

    #[inline(always)]
    fn run_task<F: ElementTask<T>>(task: F) -> F::Output {
        task.run_for_records(T::FIELDS)
    }

    #[inline]
    unsafe fn read_element(at: *const T, shared: bool) -> T {
        T::read_fields(&FieldReader {
            data: at.cast(),
            len: size_of::<T>(),
            shared,
            lifetime: PhantomData,
        })
    }

    #[inline]
    unsafe fn load_elements(from: *const u8, to: *mut T, count: usize) {
        for index in 0..count {
            let at = from.wrapping_add(index * size_of::<T>());
            // SAFETY: the bytes of a shared element, by the caller's promise.
            let value = unsafe { <Self as ElementAccess<T>>::read_element(at.cast(), true) };
            // SAFETY: there is space for `count` elements, by the caller's promise.
            unsafe { to.wrapping_add(index).write(value) };
        }
    }

    unsafe fn make_values(_: *mut T, _: usize) {
        unreachable!("the bytes of a record are not copied as a whole")
    }

    #[inline]
    unsafe fn store_elements(to: *mut u8, elements: &[T]) {
        for (index, element) in elements.iter().enumerate() {
            element.write_fields(&mut FieldWriter {
                data: to.wrapping_add(index * size_of::<T>()),
                len: size_of::<T>(),
                lifetime: PhantomData,
            });
        }
    }
}

/// A record that is read from memory and written to memory field by field; derived with `Record`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a record that is read from an array",
    label = "expected a struct with `#[derive(Record)]`, or an array of such structs",
    note = "a record with a field that is marked `#[dlpack(skip)]` is only exported, and cannot be nested"
)]
pub trait RecordValue: Sized + Send + Sync + 'static {
    /// The fields.
    const FIELDS: &'static RecordLayout;

    /// Makes a record of its fields.
    fn read_fields(from: &FieldReader<'_>) -> Self;

    /// Writes each field.
    fn write_fields(&self, to: &mut FieldWriter<'_>);
}

/// A record, or an array of records, inside another record.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a record that is read from an array",
    label = "expected a struct with `#[derive(Record)]`, or an array of such structs",
    note = "a record with a field that is marked `#[dlpack(skip)]` is only exported, and cannot be nested"
)]
pub trait NestedValue: Sized {
    /// The record, and the axes of an array of it.
    const NESTED: (&'static RecordLayout, Axes);

    /// Makes a value of its fields.
    fn read_nested(from: &FieldReader<'_>) -> Self;

    /// Writes each field.
    fn write_nested(&self, to: &mut FieldWriter<'_>);
}

#[diagnostic::do_not_recommend]
impl<R: RecordValue> NestedValue for R {
    const NESTED: (&'static RecordLayout, Axes) = (R::FIELDS, Axes::NONE);

    #[inline]
    fn read_nested(from: &FieldReader<'_>) -> Self {
        R::read_fields(from)
    }

    #[inline]
    fn write_nested(&self, to: &mut FieldWriter<'_>) {
        self.write_fields(to);
    }
}

impl<R: NestedValue, const N: usize> NestedValue for [R; N] {
    const NESTED: (&'static RecordLayout, Axes) = (R::NESTED.0, Axes::of_array(N, R::NESTED.1));

    #[inline]
    fn read_nested(from: &FieldReader<'_>) -> Self {
        core::array::from_fn(|index| from.read_record(index * size_of::<R>()))
    }

    #[inline]
    fn write_nested(&self, to: &mut FieldWriter<'_>) {
        for (index, record) in self.iter().enumerate() {
            to.write_record(index * size_of::<R>(), record);
        }
    }
}

/// The memory of one record that is read.
#[doc(hidden)]
#[derive(Debug)]
pub struct FieldReader<'a> {
    /// `len` bytes that may be read, by others' leave in atomic words if they are `shared`.
    data: *const u8,
    len: usize,
    shared: bool,
    lifetime: PhantomData<&'a [u8]>,
}

impl FieldReader<'_> {
    /// The field of this type at an offset.
    ///
    /// # Panics
    ///
    /// If it reaches outside of the record.
    #[must_use]
    #[inline(always)]
    pub fn read_element<F: Element>(&self, offset: usize) -> F {
        check_inside::<F>(offset, self.len);
        let at = self.data.wrapping_add(offset);
        if !F::PLAIN {
            return self.build_element(at);
        }
        let mut value = MaybeUninit::<F>::uninit();
        let (to, bytes) = (value.as_mut_ptr(), size_of::<F>());
        if self.shared {
            // SAFETY: the bytes of a field, which lies inside of the record; Rust code writes them atomically.
            unsafe { atomic::load(at, to.cast(), bytes, align_of::<F>()) };
        } else {
            // SAFETY: as above, and nobody writes them.
            unsafe { at.copy_to_nonoverlapping(to.cast(), bytes) };
        }
        // SAFETY: its bytes were just written.
        unsafe { make_values(to, 1) };
        // SAFETY: any bytes are a value of it (`PLAIN`), but for those of a `bool`, which were made one.
        unsafe { value.assume_init() }
    }

    /// An element that is built of its scalars.
    fn build_element<F: Element>(&self, at: *const u8) -> F {
        let mut scalars = size_of::<F>() / size_of::<F::Scalar>().max(1);
        let mut next = at.cast::<F::Scalar>();
        F::build_from(&mut Source::new(&mut || {
            assert!(scalars > 0, "an element takes more scalars than it has");
            scalars -= 1;
            // SAFETY: so many scalars lie in the field, which lies inside of the record.
            let scalar =
                unsafe { <PlainAccess as ElementAccess<F::Scalar>>::read_element(next, true) };
            next = next.wrapping_add(1);
            scalar
        }))
    }

    /// The record, or the array of records, at an offset.
    ///
    /// # Panics
    ///
    /// If it reaches outside of this record.
    #[must_use]
    #[inline(always)]
    pub fn read_record<F: NestedValue>(&self, offset: usize) -> F {
        check_inside::<F>(offset, self.len);
        F::read_nested(&Self {
            data: self.data.wrapping_add(offset),
            len: size_of::<F>(),
            shared: self.shared,
            lifetime: PhantomData,
        })
    }
}

/// The memory of one record that is written.
#[doc(hidden)]
#[derive(Debug)]
pub struct FieldWriter<'a> {
    /// `len` bytes that may be written, in atomic words.
    data: *mut u8,
    len: usize,
    lifetime: PhantomData<&'a mut [u8]>,
}

impl FieldWriter<'_> {
    /// Writes a field at an offset.
    ///
    /// # Panics
    ///
    /// If it reaches outside of the record.
    #[inline(always)]
    pub fn write_element<F: Element>(&mut self, offset: usize, value: &F) {
        check_inside::<F>(offset, self.len);
        // From here on every byte of it is known to be initialised.
        F::verify_values(slice::from_ref(value));
        let (from, at) = ((&raw const *value).cast(), self.data.wrapping_add(offset));
        // SAFETY: so many bytes of a value, and of the record, which may be written.
        unsafe { atomic::store(from, at, size_of::<F>(), align_of::<F>()) };
    }

    /// Writes a record, or an array of records, at an offset.
    ///
    /// # Panics
    ///
    /// If it reaches outside of this record.
    #[inline(always)]
    pub fn write_record<F: NestedValue>(&mut self, offset: usize, value: &F) {
        check_inside::<F>(offset, self.len);
        value.write_nested(&mut FieldWriter {
            data: self.data.wrapping_add(offset),
            len: size_of::<F>(),
            lifetime: PhantomData,
        });
    }
}

/// That a field of this type at an offset lies inside of a record of `len` bytes.
#[inline(always)]
fn check_inside<F>(offset: usize, len: usize) {
    assert!(
        offset <= len && size_of::<F>() <= len - offset,
        "a field reaches outside its record"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::fields::{FieldLayout, FieldType};

    /// Says that it has a field behind its end.
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
        // SAFETY: four bytes that nobody writes.
        unsafe {
            <FieldAccess as ElementAccess<Liar>>::read_element((&raw const memory).cast(), false)
        };
    }

    #[test]
    #[should_panic = "reaches outside"]
    fn no_field_is_written_outside_of_its_record() {
        let mut memory = 7_u32;
        // SAFETY: four bytes that nobody else has.
        unsafe { FieldAccess::store_elements((&raw mut memory).cast(), &[Liar(1)]) };
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
}
