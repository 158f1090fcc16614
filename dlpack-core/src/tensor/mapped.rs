//! Collects items, or the results of a function of them, by cache lines.
//!
//! `Vec` takes items one by one from an iterator, and checks its capacity for each, unless the standard library trusts the
//! iterator's length. It trusts only its own iterators. So `collect` has methods of its own, which allocate a `Vec` for all results
//! and write to it in a loop that the compiler vectorizes.
#![expect(unsafe_code, reason = "writes results to a vector")]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::type_name;
use core::fmt;
use core::iter::FusedIterator;
use core::mem::needs_drop;

use crate::element::Plain;
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
    /// Applies a function to each item. The result collects into a `Vec` by cache lines, which is much faster than [`Iterator::map`].
    #[inline]
    pub fn map<B, F: FnMut(S) -> B>(self, function: F) -> Mapped<'a, S, F> {
        Mapped {
            items: self,
            function,
        }
    }

    /// Collects the items. Unlike [`Iterator::collect`], it fills a `Vec` by large copies, which is much faster.
    #[inline]
    pub fn collect<C: FromIterator<S>>(self) -> C {
        // A `Vec` that is collected from a `Vec` of items keeps its memory.
        self.copy_to_vec().into_iter().collect()
    }
}

/// Whether `C` is a `Vec` or a boxed slice of `B`, which can be made from a `Vec` without a copy. The names suffice: a type with the
/// same name would be collected too, only after all its results are computed.
fn is_made_of_vec<C, B>() -> bool {
    let name = type_name::<C>();
    name == type_name::<Vec<B>>() || name == type_name::<Box<[B]>>()
}

impl<S: Plain, B, F: FnMut(S) -> B> Mapped<'_, S, F> {
    /// Collects the results. Unlike [`Iterator::collect`], it fills a `Vec` by cache lines, which is much faster.
    #[inline]
    pub fn collect<C: FromIterator<B>>(self) -> C {
        if needs_drop::<B>() || !is_made_of_vec::<C, B>() {
            return Iterator::collect(self);
        }
        self.collect_to_vec().into_iter().collect()
    }

    /// Collects results that need no drop, so that none is left to drop if the function panics.
    #[inline]
    fn collect_to_vec(self) -> Vec<B> {
        let Self {
            items,
            mut function,
        } = self;
        let len = items.len();
        let mut results = Vec::<B>::with_capacity(len);
        let to = results.as_mut_ptr();
        // `move`: by a reference, the address would be read again after each result, which might have overwritten it.
        let count = items.fold_runs::<false, _>(0, move |index, item| {
            debug_assert!(index < len, "as many items as `len`");
            // SAFETY: `results` has capacity for `len` results, and `items` returns as many items.
            unsafe { to.wrapping_add(index).write(function(item)) };
            index + 1
        });
        assert_eq!(count, len, "as many results as items");
        // SAFETY: the loop has written `len` results.
        unsafe { results.set_len(len) };
        results
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
