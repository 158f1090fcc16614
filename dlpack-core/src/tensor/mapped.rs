//! Collects items, or what a function makes of them, by batches.
//!
//! `Vec` and other collections of the standard library ask an iterator for one item after another, unless they know that its
//! length is right; then they take all items in one loop, which the compiler vectorizes. They know that of iterators of the
//! standard library only. So `collect` here hands them such an iterator: over arrays, each of which was loaded at once.
#![expect(unsafe_code, reason = "reads elements of a checked tensor")]

use core::fmt;
use core::iter::FusedIterator;
use core::mem::MaybeUninit;

use crate::element::{Plain, make_values};
use crate::memory::atomic::{self, LINE};
use crate::tensor::items::Items;

/// Items after a function, as [`Iterator::map`] makes it, with a faster [`collect`](Self::collect).
///
/// ```
/// use dlpack_core::DLPack;
///
/// let managed = vec![1_u8, 2, 3].into_dlpack()?;
/// let doubled: Vec<u8> = managed.view().iter::<u8>()?.map(|x| 2 * x).collect();
/// assert_eq!(doubled, [2, 4, 6]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Mapped<'a, S, F> {
    items: Items<'a, S>,
    function: F,
}

impl<S, F> fmt::Debug for Mapped<'_, S, F>
where
    S: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped")
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}

impl<'a, S: Plain> Items<'a, S> {
    /// Applies a function to each item. As [`Iterator::map`], but collecting the results in a `Vec` is much faster.
    #[inline]
    pub fn map<B, F: FnMut(S) -> B>(self, function: F) -> Mapped<'a, S, F> {
        Mapped {
            items: self,
            function,
        }
    }

    /// Collects the items. As [`Iterator::collect`], but a `Vec` is filled much faster.
    #[inline]
    pub fn collect<C: FromIterator<S>>(self) -> C {
        match size_of::<S>() {
            1 => self.into_batches::<BYTES>().collect(),
            2..=LARGEST => self.into_batches::<OTHERS>().collect(),
            _ => Iterator::collect(self),
        }
    }

    /// The items by an iterator of the standard library that knows its length.
    #[inline]
    fn into_batches<const BATCH: usize>(mut self) -> impl Iterator<Item = S> + use<'a, S, BATCH> {
        let lines = self.find_lines();
        let front = lines.map_or(0, |(front, _)| front.min(self.len()));
        let head = self.load_batch::<BATCH>(front);
        let (batches, rest) = (self.len() / BATCH, self.len() % BATCH);
        let mut last = self.clone();
        last.skip_items(batches * BATCH);
        let tail = last.load_batch::<BATCH>(rest);
        let body = (0..batches).flat_map(move |index| match lines {
            // SAFETY: as many batches are left as there are indices, and the first of them begins at `first`.
            Some((_, first)) => unsafe { load_lines::<S, BATCH>(first, index) },
            None => self.load_batch(BATCH),
        });
        let items = head.into_iter().take(front).chain(body);
        let items = items.chain(tail.into_iter().take(rest));
        // SAFETY: `take` leaves what `load_batch` has filled, which are values.
        items.map(|item| unsafe { item.assume_init() })
    }
}

/// Loads a batch of contiguous items, where they are values.
///
/// # Safety
///
/// Batches of items of a viewed tensor, which the processor can read, begin at `first`, a multiple of [`LINE_ALIGNMENT`](atomic::LINE_ALIGNMENT);
/// there are more than `index` of them. A batch is a number of lines.
#[inline(always)]
unsafe fn load_lines<S: Plain, const BATCH: usize>(
    first: *const u8,
    index: usize,
) -> [MaybeUninit<S>; BATCH] {
    let mut batch = [const { MaybeUninit::<S>::uninit() }; BATCH];
    let bytes = BATCH * size_of::<S>();
    let place = first.wrapping_add(index * bytes);
    for line in (0..bytes).step_by(LINE) {
        let to = batch.as_mut_ptr().cast::<u8>().wrapping_add(line);
        // SAFETY: a line of the batch; there is room for it.
        unsafe { atomic::load_line(place.wrapping_add(line), to) };
    }
    // SAFETY: all were written right above.
    unsafe { make_values(batch.as_mut_ptr().cast::<S>(), BATCH) };
    batch
}

/// The items that are loaded at a time: of one byte, and of others. A batch is a few cache lines, which stay in registers.
const BYTES: usize = 128;
const OTHERS: usize = 64;

/// Items larger than this are collected one by one.
const LARGEST: usize = 16;

impl<S: Plain, B, F: FnMut(S) -> B> Mapped<'_, S, F> {
    /// Collects the results. As [`Iterator::collect`], but a `Vec` is filled much faster.
    #[inline]
    pub fn collect<C: FromIterator<B>>(self) -> C {
        let Self { items, function } = self;
        match size_of::<S>() {
            1 => items.into_batches::<BYTES>().map(function).collect(),
            2..=LARGEST => items.into_batches::<OTHERS>().map(function).collect(),
            _ => Iterator::collect(Self { items, function }),
        }
    }
}

impl<S: Plain, B, F: FnMut(S) -> B> Iterator for Mapped<'_, S, F> {
    type Item = B;

    #[inline]
    fn next(&mut self) -> Option<B> {
        self.items.next().map(&mut self.function)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }

    #[inline]
    fn fold<A, G: FnMut(A, B) -> A>(self, init: A, mut g: G) -> A {
        let mut function = self.function;
        (self.items).fold(init, move |result, item| g(result, function(item)))
    }
}

impl<S: Plain, B, F: FnMut(S) -> B> ExactSizeIterator for Mapped<'_, S, F> {}
impl<S: Plain, B, F: FnMut(S) -> B> FusedIterator for Mapped<'_, S, F> {}
