//! Iterates over two arrays of the same shape at once.
//!
//! `a.iter().zip(b.iter())` checks twice for each pair, once in each array, whether a run (elements at equal distances) ends. Here
//! both arrays are walked in common runs, with one check for both.
#![expect(unsafe_code, reason = "reads elements of checked tensors")]

use core::cmp::min;
use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;

use crate::Error;
use crate::array::{Array, ArrayElement, Rank};
use crate::tensor::array_element::ElementAccess;
use crate::tensor::item_offsets::ItemOffsets;

/// An iterator over the pairs of elements of two arrays, in row-major order.
///
/// ```
/// use dlpack_core::{DLPack, array::View};
///
/// let a = View::<f32, [i64; 1]>::new(vec![1.0_f32, 2.0].into_dlpack()?)?;
/// let b = View::<u8, [i64; 1]>::new(vec![10_u8, 20].into_dlpack()?)?;
/// let mut sum = 0.0;
/// for (x, y) in a.zip(&b)? {
///     sum += x * f32::from(y);
/// }
/// assert_eq!(sum, 50.0);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub struct Pairs<'a, T, U> {
    first: Cursor<'a, T>,
    second: Cursor<'a, U>,
    /// The number of pairs left in the current runs of both arrays.
    left_in_run: usize,
}

/// A position in an array: the address of the next element, and the runs after the current one.
struct Cursor<'a, T> {
    data: *mut u8,
    next: *mut u8,
    /// The distance between two elements of the current run, in bytes.
    step: isize,
    shared: bool,
    offsets: ItemOffsets<'a>,
    elements: PhantomData<&'a [T]>,
}

impl<'a, T: ArrayElement> Cursor<'a, T> {
    fn new<L: Rank>(array: &'a Array<T, L>) -> Self {
        let offsets = array.item_offsets();
        Self {
            data: array.data,
            next: array.data,
            step: offsets.step(),
            shared: array.shared,
            offsets,
            elements: PhantomData,
        }
    }

    /// Reads the next element and steps to the one after it in the current run.
    ///
    /// # Safety
    ///
    /// The current run has another element.
    #[inline(always)]
    unsafe fn read_next(&mut self) -> T {
        // SAFETY: by this function's contract `next` is the address of an element of the array.
        let element = unsafe { T::Access::read_element(self.next.cast(), self.shared) };
        self.next = self.next.wrapping_offset(self.step);
        element
    }
}

// SAFETY: a cursor only reads elements of an array that is borrowed for `'a`, and `Array` is `Sync`.
unsafe impl<T: ArrayElement> Send for Cursor<'_, T> {}
// SAFETY: a shared reference to a cursor reads no memory.
unsafe impl<T: ArrayElement> Sync for Cursor<'_, T> {}

impl<T: ArrayElement, L: Rank> Array<T, L> {
    /// An iterator over the pairs of elements of two arrays of the same shape, in row-major order. It is faster than zipping their
    /// iterators.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let a = View::<i32, [i64; 2]>::new(vec![[1_i32, 2], [3, 4]].into_dlpack()?)?;
    /// let asymmetry: i32 = a.zip(&a.transpose())?.map(|(x, y)| (x - y).abs()).sum();
    /// assert_eq!(asymmetry, 2);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] or [`Error::Extent`] if the shapes differ.
    #[inline]
    pub fn zip<'a, U: ArrayElement, M: Rank>(
        &'a self,
        other: &'a Array<U, M>,
    ) -> Result<Pairs<'a, T, U>, Error> {
        self.check_same_shape(other)?;
        Ok(Pairs {
            first: Cursor::new(self),
            second: Cursor::new(other),
            left_in_run: 0,
        })
    }
}

impl<T: ArrayElement, U: ArrayElement> Pairs<'_, T, U> {
    /// Starts the next common run of both arrays. Returns false if no pair is left.
    #[inline(always)]
    fn advance_runs(&mut self) -> bool {
        // Copies of the offsets let the compiler keep the other fields in registers.
        let (mut first, mut second) = (self.first.offsets.clone(), self.second.offsets.clone());
        let run = next_common_run(&mut first, &mut second);
        (self.first.offsets, self.second.offsets) = (first, second);
        let Some((first, second, left_in_run)) = run else {
            return false;
        };
        self.first.next = self.first.data.wrapping_offset(first);
        self.second.next = self.second.data.wrapping_offset(second);
        self.left_in_run = left_in_run;
        true
    }
}

/// The offsets at which the next runs of both arrays begin, and the length of the part that they have in common.
#[cold]
fn next_common_run(
    first: &mut ItemOffsets<'_>,
    second: &mut ItemOffsets<'_>,
) -> Option<(isize, isize, usize)> {
    let ((start, count), (other_start, other_count)) = (first.peek_run()?, second.peek_run()?);
    let count = min(count, other_count);
    first.skip_items(count);
    second.skip_items(count);
    Some((start, other_start, count))
}

impl<T: ArrayElement, U: ArrayElement> Iterator for Pairs<'_, T, U> {
    type Item = (T, U);

    #[inline]
    fn next(&mut self) -> Option<(T, U)> {
        if self.left_in_run == 0 && !self.advance_runs() {
            return None;
        }
        self.left_in_run -= 1;
        // SAFETY: `left_in_run` counts the elements that are left in the runs of both arrays.
        let first = unsafe { self.first.read_next() };
        // SAFETY: `left_in_run` counts the elements that are left in the runs of both arrays.
        let second = unsafe { self.second.read_next() };
        Some((first, second))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.left_in_run + self.first.offsets.remaining_items();
        (len, Some(len))
    }

    #[inline]
    fn fold<B, F: FnMut(B, (T, U)) -> B>(mut self, init: B, mut f: F) -> B {
        let mut result = init;
        while self.left_in_run > 0 || self.advance_runs() {
            // Local copies of the addresses, which the compiler keeps in registers.
            let (mut first, mut second) = (self.first.next, self.second.next);
            for _ in 0..self.left_in_run {
                // SAFETY: `left_in_run` counts the elements that are left in the runs of both arrays.
                let a = unsafe { T::Access::read_element(first.cast(), self.first.shared) };
                // SAFETY: `left_in_run` counts the elements that are left in the runs of both arrays.
                let b = unsafe { U::Access::read_element(second.cast(), self.second.shared) };
                result = f(result, (a, b));
                first = first.wrapping_offset(self.first.step);
                second = second.wrapping_offset(self.second.step);
            }
            self.left_in_run = 0;
        }
        result
    }
}

impl<T: ArrayElement, U: ArrayElement> ExactSizeIterator for Pairs<'_, T, U> {}
impl<T: ArrayElement, U: ArrayElement> FusedIterator for Pairs<'_, T, U> {}

impl<T, U> fmt::Debug for Pairs<'_, T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.left_in_run + self.first.offsets.remaining_items();
        f.debug_struct("Pairs")
            .field("left", &left)
            .finish_non_exhaustive()
    }
}
