//! The items of a tensor one by one; in atomic words where others may write.
#![expect(unsafe_code, reason = "reads elements of a checked tensor")]

use core::marker::PhantomData;
use core::mem::{MaybeUninit, align_of, size_of};

use crate::layout::{dims::MAX_RANK, extent};
use crate::{element::Plain, memory::atomic};

/// The items of a tensor, in row-major order of their indices.
///
/// ```
/// use dlpack_core::DLPack;
///
/// let managed = [[1_u8, 2], [3, 4]].into_dlpack()?;
/// assert_eq!(managed.view().iter::<u8>()?.len(), 4);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Items<'a, S> {
    pub(crate) positions: Positions<'a>,
    pub(crate) data: *mut u8,
    pub(crate) shared: bool,
    pub(crate) lifetime: PhantomData<&'a [S]>,
}

impl<S: Plain> Iterator for Items<'_, S> {
    type Item = S;

    fn next(&mut self) -> Option<S> {
        let position = self.positions.next()?;
        let item = self.data.wrapping_offset(position).cast::<S>();
        // SAFETY: `position` is that of an item of the tensor, whose items are `S` (`check_scalar`).
        Some(unsafe { read(item, self.shared) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.positions.left, Some(self.positions.left))
    }
}

impl<S: Plain> ExactSizeIterator for Items<'_, S> {}

/// Reads an item, in atomic words if others may be writing it.
///
/// # Safety
///
/// `item` is the address of an item of a tensor that is viewed, which is an `S`; `shared` is what its
/// view says.
pub(crate) unsafe fn read<S: Plain>(item: *const S, shared: bool) -> S {
    if !shared {
        // SAFETY: whoever made the tensor knows its items to be readable, and nobody writes them.
        // Any address will do. A `Plain` value is no more than its bytes, so reading it does not
        // take it away from there.
        return unsafe { item.read_unaligned() };
    }
    let mut value = MaybeUninit::<S>::uninit();
    let to = value.as_mut_ptr().cast::<u8>();
    // SAFETY: as above, but that others may write; Rust code does so atomically.
    unsafe { atomic::load(item.cast(), to, size_of::<S>(), align_of::<S>()) };
    if !S::ANY_BITS {
        // SAFETY: the byte that stands for a `bool`, just written.
        let byte = unsafe { &mut *to };
        // It was looked at before, but may have changed since.
        *byte = u8::from(*byte != 0);
    }
    // SAFETY: every byte was written with those of a value.
    unsafe { value.assume_init() }
}

/// The distances in bytes of all items from the first one, in row-major order of their indices.
#[derive(Clone, Debug)]
pub(crate) struct Positions<'a> {
    shape: &'a [i64],
    strides: &'a [i64],
    itemsize: i64,
    /// Those of an item, and an axis more in case the last one is cut into groups.
    index: [i64; MAX_RANK + 1],
    at: i64,
    pub(crate) left: usize,
}

impl<'a> Positions<'a> {
    pub(crate) fn new(shape: &'a [i64], strides: &'a [i64], itemsize: usize) -> Self {
        Self {
            shape,
            strides,
            itemsize: i64::try_from(itemsize).unwrap_or(i64::MAX),
            index: [0; MAX_RANK + 1],
            at: 0,
            left: usize::try_from(extent::count(shape).unwrap_or(0)).unwrap_or(0),
        }
    }
}

impl Iterator for Positions<'_> {
    type Item = isize;

    fn next(&mut self) -> Option<isize> {
        self.left = self.left.checked_sub(1)?;
        let position = isize::try_from(self.at * self.itemsize).ok();
        for axis in (0..self.shape.len()).rev() {
            self.index[axis] += 1;
            if self.index[axis] < self.shape[axis] {
                // Inside what the tensor reaches, so this cannot overflow.
                self.at += self.strides[axis];
                break;
            }
            self.index[axis] = 0;
            self.at -= (self.shape[axis] - 1) * self.strides[axis];
        }
        position
    }
}
