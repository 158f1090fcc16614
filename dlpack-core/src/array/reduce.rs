//! Sums, extremes and dot products of arrays, with several accumulators.
//!
//! `iter().sum()` adds one element after another, so each addition waits for the previous one. Here each position in a cache line
//! has its own accumulator, which the compiler keeps in a register, and elements are visited in memory order. So the order of the
//! operations differs from that of `iter()`, and may change in a later version.
#![expect(unsafe_code, reason = "reads elements of a checked tensor")]

use core::cmp::min;
use core::mem::MaybeUninit;
use core::slice;

use crate::Error;
use crate::array::{Array, ArrayElement, Number, Rank};
use crate::element::Plain;
use crate::layout::memory_order::MemoryOrder;
use crate::memory::atomic::{self, LINE, LINE_ALIGNMENT};
use crate::tensor::item_offsets::ItemOffsets;
use crate::tensor::items::ItemBuffer;
use crate::tensor::view::check_axis_size;

impl<T: Number, L: Rank> Array<T, L> {
    /// The sum of all elements.
    ///
    /// Integers are added as `u64` or `i64` (`u128` and `i128` as themselves), and wrap around, as in NumPy. Floats are added in an
    /// order that is not specified; the error is usually smaller than that of `iter().sum()`.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[200_u8, 100], [3, 4]].into_dlpack()?)?;
    /// assert_eq!(image.sum(), 307);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn sum(&self) -> T::Sum {
        T::sum_of(self)
    }

    /// The smallest element, or `None` if the array is empty. As in NumPy, the result is NaN if an element is NaN. If -0.0 and 0.0
    /// are both smallest, it is one of them.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let samples = View::<f32, [i64; 1]>::new(vec![2.0_f32, -1.0, 0.5].into_dlpack()?)?;
    /// assert_eq!(samples.min(), Some(-1.0));
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn min(&self) -> Option<T> {
        (!self.is_empty()).then(|| T::min_of(self))
    }

    /// The largest element, or `None` if the array is empty. As in NumPy, the result is NaN if an element is NaN. If -0.0 and 0.0
    /// are both largest, it is one of them.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let samples = View::<f32, [i64; 1]>::new(vec![2.0_f32, f32::NAN].into_dlpack()?)?;
    /// assert!(samples.max().unwrap().is_nan());
    /// // Ignores NaN:
    /// assert_eq!(samples.iter().fold(f32::NEG_INFINITY, f32::max), 2.0);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[must_use]
    pub fn max(&self) -> Option<T> {
        (!self.is_empty()).then(|| T::max_of(self))
    }

    /// The sum of the products of the elements of two arrays of the same shape, in the type of [`Array::sum`].
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::View};
    ///
    /// let a = View::<f32, [i64; 1]>::new(vec![1.0_f32, 2.0].into_dlpack()?)?;
    /// let b = View::<f32, [i64; 1]>::new(vec![10.0_f32, 0.5].into_dlpack()?)?;
    /// assert_eq!(a.dot(&b)?, 11.0);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Rank`], [`Error::Extent`] if the shapes differ.
    pub fn dot<M: Rank>(&self, other: &Array<T, M>) -> Result<T::Sum, Error> {
        self.check_same_shape(other)?;
        Ok(T::dot_of(self, other))
    }
}

impl<T: ArrayElement, L: Rank> Array<T, L> {
    /// Checks that another array has the same shape.
    pub(super) fn check_same_shape<U: ArrayElement, M: Rank>(
        &self,
        other: &Array<U, M>,
    ) -> Result<(), Error> {
        let (shape, others) = (self.shape.as_ref(), other.shape.as_ref());
        if shape.len() != others.len() {
            let (found, needed) = (others.len(), shape.len());
            return Err(Error::Rank { found, needed });
        }
        for (axis, (&needed, &found)) in shape.iter().zip(others).enumerate() {
            check_axis_size(axis, found, needed)?;
        }
        Ok(())
    }
}

/// The number of lines after which sums are added up. The sum of this many bytes fits into 16 bits.
pub(super) const LINES: usize = 64;

/// The sum of the accumulators. The results of up to [`LINES`] steps are added to a small sum first, and that to the large sum,
/// because adding a small number to a large one loses digits.
struct Total<S> {
    zero: S,
    large: S,
    small: S,
    count: usize,
    add: fn(S, S) -> S,
}

impl<S: Copy> Total<S> {
    fn new(zero: S, add: fn(S, S) -> S) -> Self {
        Self {
            zero,
            large: zero,
            small: zero,
            count: 0,
            add,
        }
    }

    #[inline(always)]
    fn push(&mut self, result: S) {
        self.small = (self.add)(self.small, result);
        self.count += 1;
        if self.count == LINES {
            self.large = self.add_up();
            (self.small, self.count) = (self.zero, 0);
        }
    }

    fn add_up(&self) -> S {
        (self.add)(self.large, self.small)
    }
}

/// The elements of an array that are not reduced yet, in memory order if there are not too many axes.
struct RemainingElements<'a> {
    data: *mut u8,
    offsets: ItemOffsets<'a>,
}

impl<'a> RemainingElements<'a> {
    fn in_memory_order<T: Plain, L: Rank, const K: usize>(
        array: &Array<T, L>,
        order: &'a MemoryOrder<K>,
        index: usize,
    ) -> Self {
        let (shape, strides) = (order.shape(), order.strides(index));
        Self {
            data: (array.data).wrapping_offset(order.first(index) * Array::<T, L>::UNIT),
            offsets: ItemOffsets::new(shape, strides, size_of::<T::Scalar>()),
        }
    }

    fn in_row_major_order<T: Plain, L: Rank>(array: &'a Array<T, L>) -> Self {
        let (data, offsets) = (array.data, array.item_offsets());
        Self { data, offsets }
    }

    /// The number of elements before the next aligned line, and the number of lines that follow. `None` if no line follows.
    #[inline]
    fn next_lines<T: Plain>(&mut self) -> Option<[usize; 2]> {
        let (next, count) = self.offsets.next_contiguous::<T>()?;
        let front = self.data.wrapping_offset(next).addr().wrapping_neg() % LINE_ALIGNMENT;
        let (front, cut) = (front / size_of::<T>(), front % size_of::<T>());
        let lines = count.checked_sub(front)? / (LINE / size_of::<T>());
        (cut == 0 && lines > 0).then_some([front, lines])
    }

    /// Skips lines, and returns the address of the first.
    #[inline]
    fn skip_lines<T: Plain>(&mut self, lines: usize) -> *const u8 {
        let next = self
            .offsets
            .next_contiguous::<T>()
            .map_or(0, |(next, _)| next);
        self.offsets.skip_items(lines * (LINE / size_of::<T>()));
        self.data.wrapping_offset(next)
    }

    /// Loads the next `count` elements to a block. At least as many are left.
    fn load_exactly<'b, T: Plain>(
        &mut self,
        block: &'b mut MaybeUninit<ItemBuffer<T>>,
        count: usize,
    ) -> &'b [T] {
        let mut done = 0;
        let values = block.as_mut_ptr().cast::<T>();
        assert!(
            count <= ItemBuffer::<T>::CAPACITY,
            "a block has room for the elements"
        );
        while done < count {
            let to = values.wrapping_add(done);
            // SAFETY: the offsets are those of elements of a viewed array; the block has capacity for the rest of `count`.
            let more = unsafe { self.offsets.load_next(self.data, to, count - done) };
            assert!(more > 0, "both arrays have as many elements");
            done += more;
        }
        // SAFETY: the loop has written `count` elements; any bytes are a value, because `T` is a `Number` here.
        unsafe { slice::from_raw_parts(values, count) }
    }

    /// Loads the next elements to a block: at most `most`, and as many as the block has capacity for.
    #[inline]
    fn load_some<'b, T: Plain>(
        &mut self,
        block: &'b mut MaybeUninit<ItemBuffer<T>>,
        most: usize,
    ) -> &'b [T] {
        let values = block.as_mut_ptr().cast::<T>();
        let most = min(most, ItemBuffer::<T>::CAPACITY);
        // SAFETY: the offsets are those of elements of a viewed array; the block has capacity for `most`.
        let count = unsafe { self.offsets.load_next(self.data, values, most) };
        // SAFETY: `load_next` has written `count` elements; any bytes are a value, because `T` is a `Number` here.
        unsafe { slice::from_raw_parts(values, count) }
    }
}

/// A line of the given elements, filled up with `pad`, which does not change the result.
#[inline(always)]
fn pad_line<T: Number, const N: usize>(values: &[T], pad: T) -> [T; N] {
    let mut line = [pad; N];
    line.iter_mut()
        .zip(values)
        .for_each(|(place, &value)| *place = value);
    line
}

/// How the elements of an array are reduced: `A` are the accumulators, and `S` is the result.
pub(super) struct Reduction<T, A, S, Step, StepPair, Collect> {
    /// The accumulators before the first step.
    pub(super) start: A,
    /// Adds a line of elements to the accumulators.
    pub(super) step: Step,
    /// Adds the lines of a pair to the accumulators.
    pub(super) step_pair: StepPair,
    /// The number of lines after which the accumulators are collected.
    pub(super) most_lines: usize,
    /// Reduces the accumulators to a result.
    pub(super) collect: Collect,
    /// The result for no elements.
    pub(super) zero: S,
    /// Adds two results.
    pub(super) add: fn(S, S) -> S,
    /// An element that changes no result.
    pub(super) pad: T,
}

/// Reduces the elements of an array.
///
/// # Safety
///
/// With `AVX`, the processor has AVX.
#[inline(always)]
pub(super) unsafe fn reduce_elements<
    T: Number,
    L: Rank,
    A: Copy,
    S: Copy,
    const N: usize,
    const AVX: bool,
>(
    array: &Array<T, L>,
    how: &Reduction<
        T,
        A,
        S,
        impl Fn(&mut A, &[T; N]),
        impl Fn(&mut A, &[T; N], &[T; N]),
        impl Fn(A) -> S,
    >,
) -> S {
    let Reduction {
        step,
        step_pair,
        collect,
        ..
    } = how;
    const { assert!(N * size_of::<T>() == LINE) };
    let (shape, strides) = (array.shape.as_ref(), array.strides.as_ref());
    let order = MemoryOrder::new(shape, [strides]).filter(|_| !array.is_empty());
    let mut rest = match &order {
        Some(order) => RemainingElements::in_memory_order(array, order, 0),
        None => RemainingElements::in_row_major_order(array),
    };
    let mut total = Total::new(how.zero, how.add);
    let mut block = MaybeUninit::<ItemBuffer<T>>::uninit();
    while rest.offsets.remaining_items() > 0 {
        let lines = rest.next_lines::<T>();
        if let Some([0, lines]) = lines {
            let first = rest.skip_lines::<T>(lines);
            for done in (0..lines).step_by(how.most_lines) {
                let (mut accumulators, end) =
                    (how.start, lines.min(done.saturating_add(how.most_lines)));
                let load = |line| {
                    // SAFETY: `next_lines` found this aligned line of elements. With `AVX` the processor has AVX, by contract.
                    unsafe { load_numbers::<T, N, AVX>(first.wrapping_add(line * LINE)) }
                };
                for line in (done + 1..end).step_by(2) {
                    step_pair(&mut accumulators, &load(line - 1), &load(line));
                }
                if (end - done) % 2 == 1 {
                    step(&mut accumulators, &load(end - 1));
                }
                total.push(collect(accumulators));
            }
            continue;
        }
        let most = lines.map_or(usize::MAX, |[front, _]| front);
        let mut accumulators = how.start;
        let (lines, few) = split_lines::<T, N>(rest.load_some(&mut block, most));
        for line in lines {
            step(&mut accumulators, line);
        }
        if !few.is_empty() {
            step(&mut accumulators, &pad_line(few, how.pad));
        }
        total.push(collect(accumulators));
    }
    total.add_up()
}

/// Reduces the pairs of elements of two arrays of the same shape.
///
/// # Safety
///
/// With `AVX`, the processor has AVX.
#[inline(always)]
pub(super) unsafe fn reduce_pairs<
    T: Number,
    L: Rank,
    M: Rank,
    A: Copy,
    S: Copy,
    const N: usize,
    const AVX: bool,
>(
    array: &Array<T, L>,
    other: &Array<T, M>,
    start: A,
    pad: T,
    step: impl Fn(&mut A, &[T; N], &[T; N]),
    collect: impl Fn(A) -> S,
    add: fn(S, S) -> S,
) -> S {
    const { assert!(N * size_of::<T>() == LINE) };
    let (shape, strides) = (array.shape.as_ref(), array.strides.as_ref());
    let order = MemoryOrder::new(shape, [strides, other.strides.as_ref()]);
    let order = order.filter(|_| !array.is_empty());
    let (mut rest, mut others) = match &order {
        Some(order) => (
            RemainingElements::in_memory_order(array, order, 0),
            RemainingElements::in_memory_order(other, order, 1),
        ),
        None => (
            RemainingElements::in_row_major_order(array),
            RemainingElements::in_row_major_order(other),
        ),
    };
    let mut total = Total::new(collect(start), add);
    let (mut block, mut second) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    while rest.offsets.remaining_items() > 0 {
        if let (Some([0, lines]), Some([0, more])) =
            (rest.next_lines::<T>(), others.next_lines::<T>())
        {
            let lines = min(lines, more);
            let (first, second) = (rest.skip_lines::<T>(lines), others.skip_lines::<T>(lines));
            for done in (0..lines).step_by(LINES) {
                let mut accumulators = start;
                for line in done..min(done + LINES, lines) {
                    // SAFETY: `next_lines` found this aligned line of elements. With `AVX` the processor has AVX, by contract.
                    let a: [T; N] =
                        unsafe { load_numbers::<T, N, AVX>(first.wrapping_add(line * LINE)) };
                    // SAFETY: `next_lines` found this aligned line of elements. With `AVX` the processor has AVX, by contract.
                    let b: [T; N] =
                        unsafe { load_numbers::<T, N, AVX>(second.wrapping_add(line * LINE)) };
                    step(&mut accumulators, &a, &b);
                }
                total.push(collect(accumulators));
            }
            continue;
        }
        // If both arrays have lines after the same number of elements, only these are loaded, so that lines follow.
        let most = match (rest.next_lines::<T>(), others.next_lines::<T>()) {
            (Some([front, _]), Some([same, _])) if front == same => front,
            _ => usize::MAX,
        };
        let a = rest.load_some(&mut block, most);
        let b = others.load_exactly(&mut second, a.len());
        let mut accumulators = start;
        let ((lines, few), (others, few_others)) = (split_lines::<T, N>(a), split_lines::<T, N>(b));
        for (a, b) in lines.zip(others) {
            step(&mut accumulators, a, b);
        }
        if !few.is_empty() {
            step(
                &mut accumulators,
                &pad_line(few, pad),
                &pad_line(few_others, pad),
            );
        }
        total.push(collect(accumulators));
    }
    total.add_up()
}

/// Splits elements into lines of `N`, and fewer than `N` that are left. (`slice::as_chunks` needs Rust 1.88.)
#[inline(always)]
fn split_lines<T, const N: usize>(elements: &[T]) -> (impl Iterator<Item = &[T; N]>, &[T]) {
    let lines = elements.chunks_exact(N);
    let few = lines.remainder();
    (lines.filter_map(<[T]>::first_chunk), few)
}

/// Loads the elements of a line.
///
/// # Safety
///
/// `from` is a multiple of [`LINE_ALIGNMENT`], and the address of a line of `N` numbers of a viewed tensor. With `AVX`, the
/// processor has AVX.
#[inline(always)]
unsafe fn load_numbers<T: Number, const N: usize, const AVX: bool>(from: *const u8) -> [T; N] {
    let mut line = MaybeUninit::<[T; N]>::uninit();
    // SAFETY: same contract as this function's: an aligned line, and AVX if required; `line` has its size.
    unsafe { atomic::load_line_by::<AVX>(from, line.as_mut_ptr().cast()) };
    // SAFETY: `load_line_by` has written all bytes of `line`, and any bytes are a `Number`.
    unsafe { line.assume_init() }
}
