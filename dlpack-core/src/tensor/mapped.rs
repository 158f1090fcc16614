//! Collects items, or the results of a function of them, by batches.
//!
//! `Vec` takes items one by one from an iterator, and checks its capacity for each, unless the standard library trusts the
//! iterator's length. It trusts only its own iterators. Then it takes all items in one loop, which the compiler vectorizes. So
//! `collect` passes an iterator of the standard library over arrays, each of which was loaded at once.
#![expect(unsafe_code, reason = "reads elements of a checked tensor")]

use core::fmt;
use core::iter::FusedIterator;
use core::mem::MaybeUninit;

use crate::element::{Plain, make_values};
use crate::memory::atomic::{self, LINE};
use crate::tensor::items::Items;

/// An iterator over the results of a function of each item, with a faster [`collect`](Self::collect) than that of
/// [`Iterator::map`].
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
    /// Applies a function to each item. The result collects into a `Vec` by batches, which is much faster than [`Iterator::map`].
    #[inline]
    pub fn map<B, F: FnMut(S) -> B>(self, function: F) -> Mapped<'a, S, F> {
        Mapped {
            items: self,
            function,
        }
    }

    /// Collects the items. Unlike [`Iterator::collect`], it fills a `Vec` by batches, which is much faster.
    #[inline]
    pub fn collect<C: FromIterator<S>>(self) -> C {
        // A `Vec` that is collected from a `Vec` of items keeps its memory.
        self.copy_to_vec().into_iter().collect()
    }

    /// The items as an iterator of the standard library, whose length `Vec` trusts. It loads one batch after another into `space`.
    ///
    /// # Safety
    ///
    /// `space` is writable while the iterator lives, and no other code accesses it.
    #[inline]
    unsafe fn into_batches<'b, const BATCH: usize>(
        mut self,
        space: *mut [MaybeUninit<S>; BATCH],
    ) -> impl Iterator<Item = S> + use<'a, 'b, S, BATCH>
    where
        S: 'b,
    {
        let lines = self.find_lines();
        let front = lines.map_or(0, |(front, _)| front.min(self.len()));
        let head = self.load_batch::<BATCH>(front);
        let (batches, rest) = (self.len() / BATCH, self.len() % BATCH);
        let mut last = self.clone();
        last.skip_items(batches * BATCH);
        let tail = last.load_batch::<BATCH>(rest);
        let body = (0..batches).flat_map(move |index| {
            match lines {
                // SAFETY: the first of `batches` batches of contiguous items begins at `first`, and `index` is less than `batches`.
                // By this function's contract `space` is writable.
                Some((_, first)) => unsafe { load_lines::<S, BATCH>(first, index, space) },
                None => {
                    let batch = self.load_batch(BATCH);
                    // SAFETY: by this function's contract `space` is writable.
                    unsafe { space.write(batch) };
                }
            }
            // SAFETY: `space` has a batch of items. `flat_map` uses the reference only until it requests the next batch.
            let batch: &'b [MaybeUninit<S>; BATCH] = unsafe { &*space };
            batch
        });
        let items = head.into_iter().take(front).chain(body.copied());
        let items = items.chain(tail.into_iter().take(rest));
        // SAFETY: `take` limits head and tail to the items that `load_batch` has loaded, and `body` has whole batches.
        items.map(|item| unsafe { item.assume_init() })
    }
}

/// Loads a batch of contiguous items to `space`.
///
/// # Safety
///
/// `first` is a multiple of [`LINE_ALIGNMENT`](atomic::LINE_ALIGNMENT), and more than `index` batches of items of a viewed tensor
/// in host memory begin there. The size of a batch is a multiple of a line. `space` is writable, and no other code accesses it.
#[inline(always)]
unsafe fn load_lines<S: Plain, const BATCH: usize>(
    first: *const u8,
    index: usize,
    space: *mut [MaybeUninit<S>; BATCH],
) {
    let bytes = BATCH * size_of::<S>();
    let place = first.wrapping_add(index * bytes);
    for line in (0..bytes).step_by(LINE) {
        let to = space.cast::<u8>().wrapping_add(line);
        // SAFETY: by this function's contract the line at `place` is readable, and that of `space` writable.
        unsafe { atomic::load_line(place.wrapping_add(line), to) };
    }
    // SAFETY: the loop has written all items of the batch to `space`, which no other code accesses.
    unsafe { make_values(space.cast::<S>(), BATCH) };
}

/// The number of items in a batch, for items of one byte and for others. A batch is a few cache lines.
const BYTES: usize = 256;
const OTHERS: usize = 64;

/// The size in bytes of items that stay in the cache between a copy and the calls of a function.
const IN_CACHE: usize = 1 << 20;

/// Items larger than this are collected one by one.
const LARGEST: usize = 16;

impl<S: Plain, B, F: FnMut(S) -> B> Mapped<'_, S, F> {
    /// Collects the results. Unlike [`Iterator::collect`], it fills a `Vec` by batches, which is much faster.
    #[inline]
    pub fn collect<C: FromIterator<B>>(self) -> C {
        let Self { items, function } = self;
        let is_same_size = size_of::<S>() == size_of::<B>() && align_of::<S>() == align_of::<B>();
        if is_same_size && items.len() * size_of::<S>() <= IN_CACHE {
            // A `Vec` of the results keeps the memory of the items.
            return items.copy_to_vec().into_iter().map(function).collect();
        }
        match size_of::<S>() {
            1 => {
                let mut space = [const { MaybeUninit::uninit() }; BYTES];
                // SAFETY: `space` is a local variable, which outlives the iterator and is used only by it.
                let items = unsafe { items.into_batches(&raw mut space) };
                items.map(function).collect()
            }
            2..=LARGEST => {
                let mut space = [const { MaybeUninit::uninit() }; OTHERS];
                // SAFETY: `space` is a local variable, which outlives the iterator and is used only by it.
                let items = unsafe { items.into_batches(&raw mut space) };
                items.map(function).collect()
            }
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
