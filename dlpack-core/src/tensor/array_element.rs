//! The element types of typed arrays: numbers, arrays of numbers, and records. Records are read and written field by field.
//!
//! ```text
//! ArrayElement ──Access──┬── PlainAccess   every byte belongs to a number: bytes are copied
//!                        └── FieldAccess   a record: each field is copied, padding never
//! ```
//!
//! The derive implements [`RecordValue`] without `unsafe`: [`FieldReader`] and [`FieldWriter`] check that each field lies inside
//! the record, and that all its bytes are initialised.
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
/// Implemented for every [`Plain`] type, and by `#[derive(Record)]` for records without a field marked `#[dlpack(skip)]`.
/// Records are the items of NumPy's structured arrays. Methods that write them require `Copy`.
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
    /// The unit of strides in bytes: the size of a scalar, or 1 for records.
    const UNIT: usize;

    /// The data type of the scalars. Not used for records.
    const DTYPE: DataType;

    /// The axes of an element. A record has none.
    const TRAILING: Axes;

    /// The layout, if the elements are records.
    const RECORD: Option<&'static RecordLayout>;

    /// Runs the method of `task` for this kind of element. The other method is not compiled.
    fn run_task<F: ElementTask<T>>(task: F) -> F::Output;

    /// Reads one element, by `memory/atomic.rs` if other code may write it.
    ///
    /// # Safety
    ///
    /// `at` is the address of an element of an array. If the element is `shared`, Rust code writes it only by `memory/atomic.rs`;
    /// otherwise no code writes it.
    unsafe fn read_element(at: *const T, shared: bool) -> T;

    /// Copies contiguous elements from shared memory to `to`.
    ///
    /// # Safety
    ///
    /// The contract of [`read_element`](Self::read_element) for each of `count` shared elements at `from`. `to` is valid for
    /// writes of as many, and no other code accesses it.
    unsafe fn load_elements(from: *const u8, to: *mut T, count: usize);

    /// Converts copied bytes to valid elements, in place.
    ///
    /// # Safety
    ///
    /// The elements are [`Plain`]. `elements` has the initialised bytes of `count` of them, and no other code accesses them.
    unsafe fn make_values(elements: *mut T, count: usize);

    /// Writes contiguous elements to shared memory.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of as many elements. Other Rust code accesses them only by `memory/atomic.rs`.
    unsafe fn store_elements(to: *mut u8, elements: &[T]);

    /// Writes one element to shared memory.
    ///
    /// # Safety
    ///
    /// The contract of [`store_elements`](Self::store_elements) for one element.
    #[inline(always)]
    unsafe fn store_element(to: *mut u8, element: &T) {
        // SAFETY: same contract as this function's, for a slice of one element.
        unsafe { Self::store_elements(to, slice::from_ref(element)) }
    }
}

/// A task with one method for [`Plain`] elements and another for records.
#[doc(hidden)]
pub trait ElementTask<T> {
    /// The result of the task.
    type Output;

    /// Runs the task for `Plain` elements.
    fn run_for_plain(self) -> Self::Output
    where
        T: Plain;

    /// Runs the task for records with this layout.
    fn run_for_records(self, layout: &'static RecordLayout) -> Self::Output;
}

/// Access to elements by copying their bytes.
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
        // SAFETY: by this function's contract `from` has `count` elements, which Rust code writes only by `memory/atomic.rs`,
        // and `to` has space for as many.
        unsafe { atomic::load_bytes(from, to.cast(), bytes, align_of::<T>()) };
        // SAFETY: the load above has written the bytes of `count` elements to `to`, which no other code accesses.
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
        // SAFETY: by this function's contract `to` is writable for the size of `elements`.
        unsafe { atomic::store_bytes(from, to, bytes, align_of::<T>()) };
    }
    #[inline(always)]
    unsafe fn store_element(to: *mut u8, element: &T) {
        // SAFETY: by this function's contract `to` is the address of an element that may be written.
        unsafe { items::store_item(to, element) };
    }
}

/// Access to records field by field. Padding is neither read nor written.
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
            // SAFETY: `at` is one of `count` shared elements, by this function's contract.
            let value = unsafe { <Self as ElementAccess<T>>::read_element(at.cast(), true) };
            // SAFETY: `to` has space for `count` elements, by this function's contract.
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

/// A record that can be read and written field by field. `#[derive(Record)]` implements it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a record that is read from an array",
    label = "expected a struct with `#[derive(Record)]`, or an array of such structs",
    note = "a record with a field that is marked `#[dlpack(skip)]` is only exported, and cannot be nested"
)]
pub trait RecordValue: Sized + Send + Sync + 'static {
    /// The fields.
    const FIELDS: &'static RecordLayout;

    /// Reads each field and returns the record.
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
    /// The layout of the record, and the axes of an array of it.
    const NESTED: (&'static RecordLayout, Axes);

    /// Reads each field and returns the value.
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

/// The memory from which one record is read.
#[doc(hidden)]
#[derive(Debug)]
pub struct FieldReader<'a> {
    /// Readable for `len` bytes. If they are `shared`, other code may write them.
    data: *const u8,
    len: usize,
    shared: bool,
    lifetime: PhantomData<&'a [u8]>,
}

impl FieldReader<'_> {
    /// Reads the field at an offset.
    ///
    /// # Panics
    ///
    /// If the field reaches outside the record.
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
            // SAFETY: `check_inside` found the field inside the record, which Rust code writes only by `memory/atomic.rs`.
            unsafe { atomic::load_bytes(at, to.cast(), bytes, align_of::<F>()) };
        } else {
            // SAFETY: `check_inside` found the field inside the record, which no code writes, because it is not `shared`.
            unsafe { at.copy_to_nonoverlapping(to.cast(), bytes) };
        }
        // SAFETY: all bytes of `value` were just written.
        unsafe { make_values(to, 1) };
        // SAFETY: any bytes are a value of a `PLAIN` type, except those of a `bool`, which `make_values` has converted.
        unsafe { value.assume_init() }
    }

    /// Reads an element scalar by scalar.
    fn build_element<F: Element>(&self, at: *const u8) -> F {
        let mut scalars = size_of::<F>() / size_of::<F::Scalar>().max(1);
        let mut next = at.cast::<F::Scalar>();
        F::build_from(&mut Source::new(&mut || {
            assert!(scalars > 0, "an element takes more scalars than it has");
            scalars -= 1;
            // SAFETY: `next` is one of the scalars of the field, as the assertion checks, and the field lies inside the record.
            let scalar =
                unsafe { <PlainAccess as ElementAccess<F::Scalar>>::read_element(next, true) };
            next = next.wrapping_add(1);
            scalar
        }))
    }

    /// Reads the record, or the array of records, at an offset.
    ///
    /// # Panics
    ///
    /// If the nested record reaches outside this record.
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

/// The memory to which one record is written.
#[doc(hidden)]
#[derive(Debug)]
pub struct FieldWriter<'a> {
    /// Writable for `len` bytes, by `memory/atomic.rs`.
    data: *mut u8,
    len: usize,
    lifetime: PhantomData<&'a mut [u8]>,
}

impl FieldWriter<'_> {
    /// Writes a field at an offset.
    ///
    /// # Panics
    ///
    /// If the field reaches outside the record.
    #[inline(always)]
    pub fn write_element<F: Element>(&mut self, offset: usize, value: &F) {
        check_inside::<F>(offset, self.len);
        // Panics unless every byte of the value is initialised.
        F::verify_values(slice::from_ref(value));
        let (from, at) = ((&raw const *value).cast(), self.data.wrapping_add(offset));
        // SAFETY: `from` has the initialised bytes of a value, and `check_inside` found the field inside the writable record.
        unsafe { atomic::store_bytes(from, at, size_of::<F>(), align_of::<F>()) };
    }

    /// Writes a record, or an array of records, at an offset.
    ///
    /// # Panics
    ///
    /// If the nested record reaches outside this record.
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

/// Checks that a field of this type at an offset lies inside a record of `len` bytes.
#[inline(always)]
fn check_inside<F>(offset: usize, len: usize) {
    assert!(
        offset <= len && size_of::<F>() <= len - offset,
        "a field reaches outside its record"
    );
}

#[cfg(test)]
mod tests;
