//! [`Import`]: reads a tensor into the fields of a struct, for the derive of `FromDLPack`.

use alloc::vec::Vec;
use core::cell::Cell;

use crate::describe::check::fill_strides;
use crate::element::{Axes, Plain};
use crate::export::root::allocation_of;
use crate::import::FromTensor;
use crate::import::list::{FromInt, FromList, bad_field};
use crate::layout::{Dims, extent, shape::HOLE};
use crate::loan::access::Access;
use crate::tensor::view::{check_alignment, check_axis_size, count_elements};
use crate::{Descriptor, Device, Element, Error, Managed, Order, SharedBuffer, TensorRef};

/// A tensor that is being imported into the fields of a struct. A method fails if its value does not fit the field's type.
#[doc(hidden)]
#[derive(Debug)]
pub struct Import {
    tensor: Managed,
    axes: Axes,
    order: Order,
    adopts: bool,
    strides_read: Cell<bool>,
}

impl Import {
    /// Starts an import with `D` as the container of the elements.
    ///
    /// # Errors
    ///
    /// The dtype or the trailing axes are not those of the elements of `D`.
    pub fn new<D: FromTensor>(tensor: Managed) -> Result<Self, Error> {
        let import = Self {
            tensor,
            axes: D::Element::TRAILING,
            order: Order::C,
            adopts: D::ADOPTS,
            strides_read: Cell::new(false),
        };
        import.check_type::<D::Element>()?;
        Ok(import)
    }

    /// Imports the elements.
    ///
    /// # Errors
    ///
    /// The errors of [`FromDLPack::from_dlpack`](crate::FromDLPack::from_dlpack).
    pub fn into_data<D: FromTensor>(self) -> Result<D, Error> {
        D::from_tensor(self)
    }

    /// Replaces the elements of a field, in their own memory where that is possible. After an error the field is unchanged.
    pub(crate) fn replace<D: FromTensor>(self, field: &mut D) -> Result<(), Error> {
        field.replace(self)
    }

    /// Checks that the items are those of `T`, and host-readable.
    fn check_type<T: Element>(&self) -> Result<(), Error> {
        self.tensor.view().check_type::<T>()
    }

    /// Sets the memory order of the struct to Fortran order.
    #[must_use]
    pub fn column_major(mut self) -> Self {
        self.order = Order::F;
        self
    }

    /// The memory order of the imported elements.
    #[cfg(feature = "ndarray")]
    pub(crate) fn memory_order(&self) -> Order {
        self.order
    }

    /// Sets the memory order of the struct to C order, which replaces an earlier choice.
    #[cfg(feature = "image")]
    pub(crate) fn row_major(mut self) -> Self {
        self.order = Order::C;
        self
    }

    /// The number of axes of the tensor, without the trailing axes of the element type.
    fn leading_axes(&self) -> usize {
        self.tensor.view().shape().len() - self.axes.len()
    }

    /// The number of items in one element.
    fn items_per_element(&self) -> usize {
        let items: i64 = self.axes.extents().iter().product();
        usize::try_from(items).unwrap_or(0)
    }

    fn bytes_per_element(&self) -> i64 {
        let bits = self.tensor.view().dtype().itemsize_bits();
        i64::try_from(bits * self.items_per_element() / 8).unwrap_or(i64::MAX)
    }

    /// Whether the memory is contiguous in the order of the struct.
    fn is_packed(&self, view: &TensorRef<'_>) -> bool {
        let (shape, steps) = view.shape().split_at(self.leading_axes());
        let (strides, inner) = view.strides().split_at(self.leading_axes());
        let pitch = steps.iter().product();
        extent::is_packed(self.order, shape, strides, pitch)
            && extent::is_packed(Order::C, steps, inner, 1)
    }

    /// Checks that the tensor has this number of axes, without those of the element type.
    pub fn check_rank(&self, needed: usize) -> Result<(), Error> {
        let found = self.leading_axes();
        if found == needed {
            return Ok(());
        }
        Err(Error::Rank { found, needed })
    }

    /// Checks that an axis has this size.
    pub fn check_size(&self, axis: usize, needed: i64) -> Result<(), Error> {
        check_axis_size(axis, self.tensor.view().shape()[axis], needed)
    }

    /// Reads the shape.
    pub fn shape<S: FromList>(&self) -> Result<S, Error> {
        S::from_list(
            "the extent",
            &self.tensor.view().shape()[..self.leading_axes()],
        )
    }

    /// Reads the size of one axis.
    pub fn axis_size<I: FromInt>(&self, axis: usize) -> Result<I, Error> {
        I::from_int("the extent", self.tensor.view().shape()[axis])
    }

    /// The strides of the imported elements, in elements.
    fn element_strides(&self) -> Result<Dims, Error> {
        self.strides_read.set(true);
        let view = self.tensor.view();
        let shape = &view.shape()[..self.leading_axes()];
        let pitch = i64::try_from(self.items_per_element()).unwrap_or(i64::MAX);
        let mut strides = extent::packed_strides(self.order, shape, pitch)?;
        if self.adopts && !shape.contains(&0) {
            // The stride of an axis of size 1 may be any number, also one that the struct cannot hold.
            let axes = strides.iter_mut().zip(shape).zip(view.strides());
            for ((stride, _), &found) in axes.filter(|((_, extent), _)| **extent > 1) {
                *stride = found;
            }
        }
        let pitch = pitch.max(1);
        for (axis, stride) in strides.iter_mut().enumerate() {
            if *stride % pitch != 0 {
                let bits = view.dtype().itemsize_bits();
                let in_bytes = |items: i128| items * bits as i128 / 8;
                return Err(Error::PartialStride {
                    axis,
                    found: in_bytes((*stride).into()).try_into().unwrap_or(i64::MAX),
                    itemsize: self.items_per_element() * bits / 8,
                });
            }
            *stride /= pitch;
        }
        Ok(strides)
    }

    fn element_byte_strides(&self) -> Result<Dims, Error> {
        let bytes = self.bytes_per_element();
        let mut strides = self.element_strides()?;
        // A stride of an empty tensor may exceed the integer. It is not used, but has to be a multiple of the element size.
        let most = i64::MAX - i64::MAX.checked_rem(bytes).unwrap_or(0);
        for stride in strides.iter_mut() {
            *stride = stride.checked_mul(bytes).unwrap_or(most);
        }
        Ok(strides)
    }

    /// Reads all strides, in elements.
    pub fn strides<S: FromList>(&self) -> Result<S, Error> {
        S::from_list("the stride", &self.element_strides()?)
    }

    /// Reads all strides, in bytes.
    pub fn byte_strides<S: FromList>(&self) -> Result<S, Error> {
        S::from_list("the stride", &self.element_byte_strides()?)
    }

    /// Reads one stride, in elements.
    pub fn stride<I: FromInt>(&self, axis: usize) -> Result<I, Error> {
        I::from_int("the stride", self.element_strides()?[axis])
    }

    /// Reads one stride, in bytes.
    pub fn byte_stride<I: FromInt>(&self, axis: usize) -> Result<I, Error> {
        I::from_int("the stride", self.element_byte_strides()?[axis])
    }

    /// Checks that the strides are those that the export of the struct computes from `given`, in elements: a list of the values
    /// of its fields, and `None` for `_`. The stride of an axis of size 1 does not matter.
    pub fn check_strides(&self, given: &[Option<i64>]) -> Result<(), Error> {
        self.check_given_strides(given, &self.element_strides()?, 1)
    }

    /// [`check_strides`](Self::check_strides), in bytes.
    pub fn check_byte_strides(&self, given: &[Option<i64>]) -> Result<(), Error> {
        self.check_given_strides(
            given,
            &self.element_byte_strides()?,
            self.bytes_per_element(),
        )
    }

    /// Checks that the memory to adopt contains each element of the tensor once. A struct with strides and without a shape gets its
    /// shape from the number of elements in memory, so that it would lose repeated elements.
    ///
    /// # Errors
    ///
    /// [`Error::NotContiguous`].
    pub fn check_unrepeated(&self) -> Result<(), Error> {
        let view = self.tensor.view();
        let (shape, strides) = (view.shape(), view.strides());
        let reached = extent::reached_items(shape, strides).map(|reach| reach.max - reach.min + 1);
        if self.adopts && !shape.contains(&0) && reached < extent::count_items(shape) {
            return Err(view.not_contiguous());
        }
        Ok(())
    }

    fn check_given_strides(
        &self,
        given: &[Option<i64>],
        strides: &Dims,
        unit: i64,
    ) -> Result<(), Error> {
        let view = self.tensor.view();
        let shape = Dims::from(&view.shape()[..self.leading_axes()]).check_allocated()?;
        let mut expected = Dims::from(&**strides).check_allocated()?;
        for (stride, given) in expected.iter_mut().zip(given) {
            *stride = given.unwrap_or(HOLE);
        }
        let expected = fill_strides(&expected, &shape, unit)?;
        if extent::address_same_items(&shape, strides, &expected) {
            return Ok(());
        }
        Err(view.not_contiguous())
    }

    /// Reads the offset in elements, which is 0 after every import.
    pub fn offset<I: FromInt>(&self) -> Result<I, Error> {
        I::from_int("the offset", 0)
    }

    /// Reads the offset in bytes, which is 0 after every import.
    pub fn byte_offset<I: FromInt>(&self) -> Result<I, Error> {
        self.offset()
    }

    /// Reads the device of the imported elements.
    pub fn device<D: TryFrom<Device>>(&self) -> Result<D, Error> {
        // DEV-10: the elements are in host memory. Copies are, whatever device they were copied from; and adopted memory, which the
        // host can read (`check_type`), is lent as host memory by its buffer.
        let device = Device::CPU;
        D::try_from(device).map_err(|_| bad_field::<D>("the device", device))
    }

    /// Checks that the tensor has this number of elements.
    pub(super) fn check_count<T: Element>(&self, needed: usize) -> Result<(), Error> {
        let view = self.tensor.view();
        let items = extent::count_items(view.shape()).unwrap_or(i64::MAX);
        let found = count_elements::<T>(items);
        if found == needed {
            return Ok(());
        }
        if view.shape().len() == 1 + T::TRAILING.len() {
            let counted = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
            return check_axis_size(0, counted(found), counted(needed));
        }
        Err(Error::Count { found, needed })
    }

    /// Copies the elements in the memory order of the struct.
    ///
    /// # Errors
    ///
    /// The errors of [`TensorRef::to_vec`].
    pub fn copy_elements<T: Element>(&self) -> Result<Vec<T>, Error> {
        let mut elements = Vec::new();
        self.replace_elements(&mut elements)?;
        Ok(elements)
    }

    /// Replaces the elements of a vector. If there are as many, their memory is reused.
    pub(super) fn replace_elements<T: Element>(&self, target: &mut Vec<T>) -> Result<(), Error> {
        let view = self.tensor.view();
        if self.order == Order::C {
            return view.copy_to_vec(target);
        }
        let leading = self.leading_axes();
        let mut shape = Dims::from(view.shape()).check_allocated()?;
        let mut strides = Dims::from(view.strides()).check_allocated()?;
        shape[..leading].reverse();
        strides[..leading].reverse();
        view.with_axes(&shape, &strides).copy_to_vec(target)
    }

    /// Adopts the memory without a copy, with its strides.
    pub(super) fn adopt_memory<T: Plain>(self) -> Result<SharedBuffer<T>, Error> {
        let view = self.tensor.view();
        view.check_type::<T>()?;
        let shape = view.shape();
        let items = if shape.contains(&0) {
            0
        } else if self.is_packed(&view) {
            extent::count_items(shape).unwrap_or(0)
        } else {
            // A struct that keeps the strides accepts any order of the axes. But a buffer must contain exactly the items
            // of its tensor: bytes in a gap belong to other code, and a start in the middle would leave items in front
            // of the buffer.
            let leading = self.leading_axes();
            let (tail, steps) = (&shape[leading..], &view.strides()[leading..]);
            let whole_elements = extent::address_same_items(tail, steps, self.axes.strides());
            let reach = extent::reached_items(shape, view.strides())
                .filter(|reach| {
                    reach.min == 0
                        && self.strides_read.get()
                        && whole_elements
                        && !extent::may_leave_gaps(shape, view.strides())
                })
                .ok_or_else(|| view.not_contiguous())?;
            reach.max + 1
        };
        let len = count_elements::<T>(items);
        if !T::ANY_BITS {
            // The memory has no gaps and no repeated items, so this checks each item once.
            view.with_axes(&[items], &[1]).check_bools()?;
        }
        if len == 0 {
            return SharedBuffer::zeroed(0);
        }
        let data = view.data.cast::<T>();
        let access = match (view.read_only, view.shared) {
            (false, _) => Access::Shared,
            (true, true) => Access::ReadShared,
            (true, false) => Access::Read,
        };
        check_alignment(data.addr(), align_of::<T>(), view.dtype)?;
        if let Some(allocation) = allocation_of(&Descriptor::of_tensor(&self.tensor)?) {
            // The tensor is an export of a `SharedBuffer`, so the new buffer is another handle to the same memory.
            return Ok(SharedBuffer::from_allocation(allocation, data, len, access));
        }
        let is_own = !view.shared;
        let buffer = SharedBuffer::from_keeper(self.tensor, data, len, access)?;
        Ok(if is_own { buffer.into_own() } else { buffer })
    }
}
