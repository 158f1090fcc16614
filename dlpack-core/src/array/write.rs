//! Arrays that may be written.
#![expect(unsafe_code, reason = "writes elements of a checked tensor")]

use core::mem::MaybeUninit;
use core::ops::Deref;
use core::{cmp::min, slice};

use crate::Error;
use crate::array::rank::{Index, Rank};
use crate::array::{Array, ArrayElement};
use crate::element::Plain;
use crate::layout::extent::size;
use crate::tensor::array_element::Access;
use crate::tensor::items::{Block, Positions};
use crate::tensor::view::same_extent;

/// An [`Array`] that may be written: of a [`ViewMut`](crate::array::ViewMut), or of a part of one.
///
/// It has no size (that is what `U` is for), so that no `mem::swap` can put one where the memory of another is kept.
pub struct ArrayMut<T, L, U: ?Sized = [()]> {
    array: Array<T, L>,
    #[expect(dead_code, reason = "only its size matters")]
    no_size: U,
}

/// One with a size, for who keeps it; what others see is made of it by the compiler.
pub(super) type Place<T, L> = ArrayMut<T, L, [(); 0]>;

impl<T, L> Place<T, L> {
    /// An array that may be written, no element of which has two indices.
    pub(super) fn new(array: Array<T, L>) -> Self {
        Self { array, no_size: [] }
    }

    pub(super) fn share(&mut self, shared: bool) {
        self.array.shared = shared;
    }
}

impl<T, L, U: ?Sized> Deref for ArrayMut<T, L, U> {
    type Target = Array<T, L>;

    #[inline]
    fn deref(&self) -> &Array<T, L> {
        &self.array
    }
}

impl<T: ArrayElement + Copy, L: Rank> ArrayMut<T, L> {
    /// Writes one element.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut image = ViewMut::<u8, [i64; 2]>::new(vec![[1_u8, 2], [3, 4]].into_dlpack()?)?;
    /// image.set([1, 0], 9);
    /// assert_eq!(image.at([1, 0]), 9);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Where there is none, as the index of a slice does.
    #[inline]
    pub fn set(&mut self, index: impl Index<L>, element: T) {
        let index = index.as_ref();
        let Some(place) = self.place(index) else {
            self.outside(index)
        };
        // SAFETY: the address of an element that may be written.
        unsafe { T::Access::store(place, slice::from_ref(&element)) };
    }

    /// Writes the same everywhere.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut samples = ViewMut::<f32, [i64; 1]>::new(vec![1.0_f32; 3].into_dlpack()?)?;
    /// samples.fill(0.5);
    /// assert_eq!(samples.to_vec()?, [0.5; 3]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    pub fn fill(&mut self, element: T) {
        self.write(|| element);
    }

    /// Writes elements in row-major order.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut samples = ViewMut::<f32, [i64; 1]>::new(vec![1.0_f32; 3].into_dlpack()?)?;
    /// samples.copy_from_slice(&[1.0, 2.0, 3.0])?;
    /// assert_eq!(samples.to_vec()?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Count`] if they are not as many as there are here.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<(), Error> {
        self.same_count(elements.len())?;
        if self.is_contiguous() {
            // SAFETY: as many elements one after another, which may be written.
            unsafe { T::Access::store(self.data, elements) };
        } else {
            let mut elements = elements.iter();
            self.write(|| *elements.next().expect("as many as here"));
        }
        Ok(())
    }

    /// Writes the elements of another array of this shape.
    ///
    /// The other one may be the same memory: what it has where both meet is then read before or after it is written.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::{View, ViewMut}};
    ///
    /// let image = View::<u8, [i64; 2]>::new(vec![[1_u8, 2], [3, 4]].into_dlpack()?)?;
    /// let mut turned = ViewMut::<u8, [i64; 2]>::new(vec![[0_u8; 2]; 2].into_dlpack()?)?;
    /// turned.copy_from(&image.transpose())?;
    /// assert_eq!(turned.to_vec()?, [1, 3, 2, 4]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Rank`], [`Error::Extent`] if the shapes differ.
    pub fn copy_from<M: Rank>(&mut self, other: &Array<T, M>) -> Result<(), Error> {
        let (shape, others) = (self.shape.as_ref(), other.shape.as_ref());
        if shape.len() != others.len() {
            let (found, needed) = (others.len(), shape.len());
            return Err(Error::Rank { found, needed });
        }
        for (axis, (&needed, &found)) in shape.iter().zip(others).enumerate() {
            same_extent(axis, found, needed)?;
        }
        let mut items = other.iter();
        self.write(|| items.next().expect("as many as here"));
        Ok(())
    }

    /// Replaces each element by the result of a function, in row-major order.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut samples = ViewMut::<f32, [i64; 1]>::new(vec![1.0_f32, 2.0].into_dlpack()?)?;
    /// samples.update(|sample| sample * 0.5);
    /// assert_eq!(samples.to_vec()?, [0.5, 1.0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[doc(alias = "iter_mut")]
    pub fn update(&mut self, mut change: impl FnMut(T) -> T) {
        self.blocks(|place, block| {
            // Looked up before the pointer is taken: a later use of `block` would end its permission to write.
            let count = block.len();
            let to = block.as_mut_ptr().cast::<T>();
            // SAFETY: so many elements of this array, which Rust code writes like this, and room for as many.
            unsafe { T::Access::load(place, to, count) };
            for element in block {
                // SAFETY: a value, just read.
                let value = unsafe { element.assume_init() };
                element.write(change(value));
            }
        });
    }

    /// Writes what `next` gives, in row-major order.
    fn write(&mut self, mut next: impl FnMut() -> T) {
        self.blocks(|_, block| {
            for element in block {
                element.write(next());
            }
        });
    }

    /// Gives a function the place of each few elements that lie one after another, in row-major order, and room for as
    /// many. What it leaves there is written.
    fn blocks(&mut self, mut body: impl FnMut(*const u8, &mut [MaybeUninit<T>])) {
        let most = Block::<T>::ROOM;
        let mut block = MaybeUninit::<Block<T>>::uninit();
        let (starts, run) = self.runs();
        for start in starts {
            for done in (0..run).step_by(most) {
                let place = self
                    .data
                    .wrapping_offset(start)
                    .wrapping_add(done * size_of::<T>());
                let count = min(most, run - done);
                let room = block.as_mut_ptr().cast();
                // SAFETY: a block has room for so many, aligned; nothing need be there yet.
                let elements = unsafe { slice::from_raw_parts_mut(room, count) };
                body(place, elements);
                // SAFETY: `body` has written each; nobody else has the block.
                let elements = unsafe { &*(&raw const *elements as *const [T]) };
                // SAFETY: so many elements of this array, which may be written.
                unsafe { T::Access::store(place, elements) };
            }
        }
    }

    /// Where runs of elements start, in bytes, and how many are in each.
    fn runs(&self) -> (Positions<'_>, usize) {
        let (shape, strides) = (self.shape.as_ref(), self.strides.as_ref());
        let (outer, run) = match (shape.split_last(), strides.last()) {
            _ if self.is_contiguous() => (0, self.len()),
            (Some((&last, outer)), Some(&stride)) if stride == Array::<T, L>::SCALARS => {
                (outer.len(), size(last))
            }
            _ => (shape.len(), 1),
        };
        let unit = T::Access::UNIT;
        (
            Positions::new(&shape[..outer], &strides[..outer], unit),
            run,
        )
    }
}

impl<T: Plain, L: Rank> ArrayMut<T, L> {
    /// The elements, for writing in place, where nobody else has them and they lie one after another.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut samples = ViewMut::<f32, [i64; 1]>::new(vec![2.0_f32, 1.0].into_dlpack()?)?;
    /// samples.as_mut_slice()?.sort_by(f32::total_cmp);
    /// assert_eq!(samples.as_slice()?, [1.0, 2.0]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Array::as_slice`].
    #[inline]
    pub fn as_mut_slice(&mut self) -> Result<&mut [T], Error> {
        if self.shared {
            return Err(Error::MayChange);
        }
        // SAFETY: nobody else has it, or it would be shared.
        unsafe { self.as_mut_slice_unchecked() }
    }

    /// As [`ArrayMut::as_mut_slice`], whoever else may have the memory.
    ///
    /// # Errors
    ///
    /// As [`ArrayMut::as_mut_slice`], but for [`Error::MayChange`].
    ///
    /// # Safety
    ///
    /// While the slice lives, nobody else reads or writes its memory: neither Rust code, nor Python, nor another thread.
    #[inline]
    pub unsafe fn as_mut_slice_unchecked(&mut self) -> Result<&mut [T], Error> {
        let len = self.run()?;
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: `len` aligned elements one after another (`run`), which stay while the array is borrowed. No part of it is
        // elsewhere, as `self` is borrowed for writing, and the caller speaks for all others. Any bytes are a `T`, or were
        // looked at.
        Ok(unsafe { slice::from_raw_parts_mut(self.data.cast(), len) })
    }
}
