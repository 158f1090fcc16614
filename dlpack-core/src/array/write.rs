//! `ArrayMut`: writes single elements, fills, updates and copies.
#![expect(unsafe_code, reason = "writes elements of a checked tensor")]

use core::mem::MaybeUninit;
use core::ops::Deref;
use core::slice;

use crate::Error;
use crate::array::in_place::{Change, Next, Update, change_run, change_strided, copy_strided};
use crate::array::rank::{Index, Rank};
use crate::array::{Array, ArrayElement};
use crate::element::{Plain, RecordLayout};
use crate::layout::memory_order::MemoryOrder;
use crate::memory::atomic;
use crate::tensor::array_element::{ElementAccess, ElementTask};
use crate::tensor::item_offsets::ItemOffsets;

/// An [`Array`] that may be written. [`ViewMut`](crate::array::ViewMut) and its parts dereference to it.
///
/// It is unsized (by the parameter `U`), so `mem::swap` cannot exchange two arrays that different owners keep alive.
pub struct ArrayMut<T, L, U: ?Sized = [()]> {
    array: Array<T, L>,
    #[expect(dead_code, reason = "only its size matters")]
    no_size: U,
}

/// An [`ArrayMut`] with a size, for the structs that contain one. The compiler coerces a reference to it to `ArrayMut<T, L>`.
pub(super) type SizedArrayMut<T, L> = ArrayMut<T, L, [(); 0]>;

impl<T, L> SizedArrayMut<T, L> {
    /// Wraps an array that may be written. No two indices refer to the same element.
    pub(super) fn new(array: Array<T, L>) -> Self {
        Self { array, no_size: [] }
    }

    pub(super) fn set_shared(&mut self, shared: bool) {
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
    /// If the index is outside the array.
    #[inline]
    pub fn set(&mut self, index: impl Index<L>, element: T) {
        let Some(place) = self.address_of(index.as_ref()) else {
            self.panic_outside(index)
        };
        // SAFETY: `address_of` returned the address of an element, which may be written.
        unsafe { T::Access::store_element(place, &element) };
    }

    /// Writes one value to all elements.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut samples = ViewMut::<f32, [i64; 1]>::new(vec![1.0_f32; 3].into_dlpack()?)?;
    /// samples.fill(0.5);
    /// assert_eq!(samples.to_vec()?, [0.5; 3]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn fill(&mut self, element: T) {
        T::Access::run_task(ChangeAll {
            array: self,
            change: Next(|| element),
            in_memory_order: true,
        });
    }

    /// Writes the results of a function to all elements, in row-major order.
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut samples = ViewMut::<f32, [i64; 1]>::new(vec![1.0_f32; 3].into_dlpack()?)?;
    /// let mut numbers = [0.5, 1.5, 2.5].into_iter();
    /// samples.fill_with(|| numbers.next().unwrap_or(0.0));
    /// assert_eq!(samples.to_vec()?, [0.5, 1.5, 2.5]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    #[inline]
    pub fn fill_with(&mut self, next: impl FnMut() -> T) {
        T::Access::run_task(ChangeAll {
            array: self,
            change: Next(next),
            in_memory_order: false,
        });
    }

    /// Copies the elements of a slice to the array, in row-major order.
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
    /// [`Error::Count`] if the slice has another length.
    pub fn copy_from_slice(&mut self, elements: &[T]) -> Result<(), Error> {
        self.check_count(elements.len())?;
        if self.is_contiguous() {
            // SAFETY: the array has as many contiguous elements, which may be written.
            unsafe { T::Access::store_elements(self.data, elements) };
        } else {
            let mut elements = elements.iter();
            self.fill_with(|| *elements.next().expect("as many as here"));
        }
        Ok(())
    }

    /// Copies the elements of another array of the same shape.
    ///
    /// The arrays may overlap. It is unspecified whether an element that both have is read before or after it is written.
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
        self.check_same_shape(other)?;
        if self.is_empty() {
            return Ok(());
        }
        T::Access::run_task(CopyAll(self, other));
        Ok(())
    }

    /// Replaces each element by the result of a function. Elements are visited in memory order, which is fastest (with more than 8
    /// axes, in row-major order); for row-major order, use [`ArrayMut::update_in_order`].
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
    #[inline]
    pub fn update(&mut self, change: impl FnMut(T) -> T) {
        T::Access::run_task(ChangeAll {
            array: self,
            change: Update(change),
            in_memory_order: true,
        });
    }

    /// Replaces each element by the result of a function, in row-major order. For an array that is not contiguous, this is slower
    /// than [`ArrayMut::update`].
    ///
    /// ```
    /// use dlpack_core::{DLPack, array::ViewMut};
    ///
    /// let mut image = ViewMut::<u8, [i64; 2]>::new(vec![[0_u8; 3]; 2].into_dlpack()?)?;
    /// let mut count = 0;
    /// image.permute_mut(&[1, 0])?.update_in_order(|_| {
    ///     count += 1;
    ///     count
    /// });
    /// assert_eq!(image.to_vec()?, [1, 3, 5, 2, 4, 6]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    pub fn update_in_order(&mut self, change: impl FnMut(T) -> T) {
        T::Access::run_task(ChangeAll {
            array: self,
            change: Update(change),
            in_memory_order: false,
        });
    }

    /// Changes one element after another, in row-major order.
    fn change_each<C: Change<T>>(&mut self, change: &mut C) {
        for start in self.item_offsets() {
            let place = self.data.wrapping_offset(start);
            let mut element = MaybeUninit::<T>::uninit();
            if C::READS {
                // SAFETY: `place` is the address of an element, which Rust code writes only by `memory/atomic.rs`.
                unsafe { T::Access::load_elements(place, element.as_mut_ptr(), 1) };
            }
            change.write_values(slice::from_mut(&mut element));
            // SAFETY: `write_values` has initialised the element.
            let element = unsafe { element.assume_init() };
            // SAFETY: `place` is the address of an element, which may be written.
            unsafe { T::Access::store_element(place, &element) };
        }
    }
}

/// The task of changing all elements: by lines and blocks, or record by record.
struct ChangeAll<'a, T, L, C> {
    array: &'a mut ArrayMut<T, L>,
    change: C,
    in_memory_order: bool,
}

impl<T: ArrayElement + Copy, L: Rank, C: Change<T>> ElementTask<T> for ChangeAll<'_, T, L, C> {
    type Output = ();

    #[inline(always)]
    fn run_for_plain(mut self)
    where
        T: Plain,
    {
        if self.in_memory_order {
            self.array.change_in_memory_order(&mut self.change);
        } else {
            self.array.change_in_row_major_order(&mut self.change);
        }
    }

    fn run_for_records(mut self, _: &'static RecordLayout) {
        self.array.change_each(&mut self.change);
    }
}

/// The task of copying the elements of another array of the same shape.
struct CopyAll<'a, 'b, T, L, M>(&'a mut ArrayMut<T, L>, &'b Array<T, M>);

impl<T: ArrayElement + Copy, L: Rank, M: Rank> ElementTask<T> for CopyAll<'_, '_, T, L, M> {
    type Output = ();

    #[inline(always)]
    fn run_for_plain(self)
    where
        T: Plain,
    {
        self.0.copy_items(self.1);
    }

    fn run_for_records(self, _: &'static RecordLayout) {
        let mut others = self.1.iter();
        (self.0).fill_with(|| others.next().expect("as many as here"));
    }
}

impl<T: Plain, L: Rank> ArrayMut<T, L> {
    /// Copies the elements of another array of the same shape, in memory order if there are not too many axes.
    fn copy_items<M: Rank>(&mut self, other: &Array<T, M>) {
        let unit = size_of::<T::Scalar>();
        if T::ANY_BITS && self.is_contiguous() && other.is_contiguous() {
            let bytes = self.len() * size_of::<T>();
            // SAFETY: both arrays have as many contiguous elements; those of `self` may be written.
            unsafe { atomic::transfer_bytes(other.data, self.data, bytes, align_of::<T>()) };
            return;
        }
        let shape = self.shape.as_ref();
        let strides = [self.strides.as_ref(), other.strides.as_ref()];
        if let Some(order) = MemoryOrder::new(shape, strides) {
            let [to, from] = [(0, self.data), (1, other.data)].map(|(array, data)| {
                let data = data.wrapping_offset(order.first(array) * Array::<T, L>::UNIT);
                (
                    data,
                    ItemOffsets::new(order.shape(), order.strides(array), unit),
                )
            });
            // SAFETY: the offsets are those of all elements of both arrays, in the same order; those of `self` may be written.
            unsafe { copy_strided::<T>(from.0, from.1, to.0, to.1) };
        } else {
            // SAFETY: the offsets are those of all elements of both arrays, in row-major order; those of `self` may be written.
            unsafe {
                copy_strided::<T>(
                    other.data,
                    other.item_offsets(),
                    self.data,
                    self.item_offsets(),
                )
            };
        }
    }

    /// Changes all elements, in memory order if there are not too many axes.
    #[inline]
    fn change_in_memory_order(&mut self, change: &mut impl Change<T>) {
        if self.is_contiguous() {
            // SAFETY: the array has `len` contiguous elements, which may be written.
            unsafe { change_run(self.data, self.len(), change) };
        } else {
            self.change_with_gaps(change);
        }
    }

    /// Changes the elements of an array that is not contiguous, in memory order if there are not too many axes. It is not inlined,
    /// so that little code remains in a loop over contiguous rows.
    #[inline(never)]
    fn change_with_gaps(&mut self, change: &mut impl Change<T>) {
        let (shape, strides) = (self.shape.as_ref(), self.strides.as_ref());
        let Some(order) = MemoryOrder::new(shape, [strides]) else {
            return self.change_in_row_major_order(change);
        };
        let data = (self.data).wrapping_offset(order.first(0) * Array::<T, L>::UNIT);
        let unit = size_of::<T::Scalar>();
        let offsets = ItemOffsets::new(order.shape(), order.strides(0), unit);
        // SAFETY: the offsets are those of all elements, in memory order; they may be written.
        unsafe { change_strided(data, offsets, change) };
    }

    /// Changes all elements, in row-major order.
    #[inline]
    fn change_in_row_major_order(&mut self, change: &mut impl Change<T>) {
        if self.is_contiguous() {
            // SAFETY: the array has `len` contiguous elements, which may be written.
            unsafe { change_run(self.data, self.len(), change) };
        } else {
            // SAFETY: the offsets are those of all elements, which may be written.
            unsafe { change_strided(self.data, self.item_offsets(), change) };
        }
    }

    /// Borrows the elements as a mutable slice. The array must be contiguous, and no other code may access it.
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
    /// The errors of [`Array::as_slice`].
    #[inline]
    pub fn as_mut_slice(&mut self) -> Result<&mut [T], Error> {
        if self.shared {
            return Err(Error::MayChange);
        }
        // SAFETY: the array is not `shared`, so no other code accesses its memory while it is borrowed.
        unsafe { self.as_mut_slice_unchecked() }
    }

    /// Borrows the elements as a mutable slice, also if other code may access the memory.
    ///
    /// # Errors
    ///
    /// The errors of [`ArrayMut::as_mut_slice`], except [`Error::MayChange`].
    ///
    /// # Safety
    ///
    /// While the slice lives, no other code reads or writes its memory: no Rust code, no Python code, no other thread.
    #[inline]
    pub unsafe fn as_mut_slice_unchecked(&mut self) -> Result<&mut [T], Error> {
        let (data, len) = self.slice_parts()?;
        // SAFETY: `slice_parts` found `len` contiguous, aligned, valid elements, which live while the array is borrowed. `self` is
        // borrowed exclusively, so no part of the array exists, and by this function's contract no other code accesses the
        // memory.
        Ok(unsafe { slice::from_raw_parts_mut(data, len) })
    }
}
