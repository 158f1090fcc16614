//! A tensor on its way into a struct: what the derive of `FromDLPack` asks it for.

use alloc::vec::Vec;
use core::cell::Cell;

use crate::element::{Axes, Plain};
use crate::export::root::allocation_of;
use crate::import::FromTensor;
use crate::import::list::{FromInt, FromList, bad_field};
use crate::layout::{Dims, extent};
use crate::loan::access::Access;
use crate::tensor::view::{aligned_to, elements, same_extent};
use crate::{
    DataType, Descriptor, Device, Element, Error, Managed, Order, SharedBuffer, TensorRef,
};

/// A tensor on its way into the fields of a struct. What is asked for has to fit the type that it is read into.
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
    /// A tensor whose elements go into `D`.
    ///
    /// # Errors
    ///
    /// Another data type, or other trailing axes, than the elements of `D` have.
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

    /// The elements.
    ///
    /// # Errors
    ///
    /// As [`FromDLPack::from_dlpack`](crate::FromDLPack::from_dlpack).
    pub fn data<D: FromTensor>(self) -> Result<D, Error> {
        D::from_tensor(self)
    }

    /// Replaces the elements of a field, in their own memory where that is possible. After an error the field is unchanged.
    pub(crate) fn replace<D: FromTensor>(self, field: &mut D) -> Result<(), Error> {
        field.replace(self)
    }

    /// That its items are those of `T`.
    fn check_type<T: Element>(&self) -> Result<(), Error> {
        self.tensor.view().check_type::<T>()
    }

    /// The first axis moves fastest in the struct.
    #[must_use]
    pub fn column_major(mut self) -> Self {
        self.order = Order::F;
        self
    }

    /// The order that the elements will have.
    #[cfg(feature = "ndarray")]
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// The last axis moves fastest in the struct, whatever was said before.
    #[cfg(feature = "image")]
    pub(crate) fn row_major(mut self) -> Self {
        self.order = Order::C;
        self
    }

    /// The axes in front of those of the element.
    fn leading(&self) -> usize {
        self.tensor.view().shape().len() - self.axes.len()
    }

    /// The items in one element.
    fn pitch(&self) -> usize {
        let items: i64 = self.axes.extents().iter().product();
        usize::try_from(items).unwrap_or(0)
    }

    /// Whether the memory has the order that the struct wants, without gaps.
    fn is_packed(&self, view: &TensorRef<'_>) -> bool {
        let (shape, steps) = view.shape().split_at(self.leading());
        let (strides, inner) = view.strides().split_at(self.leading());
        let pitch = steps.iter().product();
        extent::is_packed(self.order, shape, strides, pitch)
            && extent::is_packed(Order::C, steps, inner, 1)
    }

    /// That there are so many axes.
    pub fn rank(&self, needed: usize) -> Result<(), Error> {
        let found = self.leading();
        if found == needed {
            return Ok(());
        }
        Err(Error::Rank { found, needed })
    }

    /// That this axis is so long.
    pub fn expect(&self, axis: usize, needed: i64) -> Result<(), Error> {
        same_extent(axis, self.tensor.view().shape()[axis], needed)
    }

    /// All extents.
    pub fn shape<S: FromList>(&self) -> Result<S, Error> {
        S::from_list("extent", &self.tensor.view().shape()[..self.leading()])
    }

    /// One extent.
    pub fn extent<I: FromInt>(&self, axis: usize) -> Result<I, Error> {
        I::from_int("the extent", self.tensor.view().shape()[axis])
    }

    /// The strides that the struct will have, in elements.
    fn element_strides(&self) -> Result<Dims, Error> {
        self.strides_read.set(true);
        let view = self.tensor.view();
        let pitch = i64::try_from(self.pitch()).unwrap_or(i64::MAX);
        let mut strides = if self.adopts {
            Dims::from(&view.strides()[..self.leading()]).check_allocated()?
        } else {
            extent::packed_strides(self.order, &view.shape()[..self.leading()], pitch)?
        };
        let pitch = pitch.max(1);
        for (axis, stride) in strides.iter_mut().enumerate() {
            if *stride % pitch != 0 {
                return Err(Error::PartialStride {
                    axis,
                    found: *stride,
                    itemsize: self.pitch(),
                });
            }
            *stride /= pitch;
        }
        Ok(strides)
    }

    fn element_byte_strides(&self) -> Result<Dims, Error> {
        let view = self.tensor.view();
        let bytes = view.dtype().itemsize_bits() * self.pitch() / 8;
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut strides = self.element_strides()?;
        for stride in strides.iter_mut() {
            *stride = stride.saturating_mul(bytes);
        }
        Ok(strides)
    }

    /// All strides, in elements.
    pub fn strides<S: FromList>(&self) -> Result<S, Error> {
        S::from_list("stride", &self.element_strides()?)
    }

    /// All strides, in bytes.
    pub fn byte_strides<S: FromList>(&self) -> Result<S, Error> {
        S::from_list("stride", &self.element_byte_strides()?)
    }

    /// One stride, in elements.
    pub fn stride<I: FromInt>(&self, axis: usize) -> Result<I, Error> {
        I::from_int("the stride", self.element_strides()?[axis])
    }

    /// One stride, in bytes.
    pub fn byte_stride<I: FromInt>(&self, axis: usize) -> Result<I, Error> {
        I::from_int("the stride", self.element_byte_strides()?[axis])
    }

    /// The offset, which an import never has.
    pub fn offset<I: FromInt>(&self) -> Result<I, Error> {
        I::from_int("the offset", 0)
    }

    /// As [`Import::offset`].
    pub fn byte_offset<I: FromInt>(&self) -> Result<I, Error> {
        self.offset()
    }

    /// The device.
    pub fn device<D: TryFrom<Device>>(&self) -> Result<D, Error> {
        // Elements that were copied lie in ordinary memory, wherever they came from.
        let device = if self.adopts {
            self.tensor.view().device()
        } else {
            Device::CPU
        };
        D::try_from(device).map_err(|_| bad_field("the device", device))
    }

    /// The data type.
    pub fn dtype<D: TryFrom<DataType>>(&self) -> Result<D, Error> {
        let dtype = self.tensor.view().dtype();
        D::try_from(dtype).map_err(|_| bad_field("the data type", dtype))
    }

    /// That there are so many elements in all.
    pub(super) fn count<T: Element>(&self, needed: usize) -> Result<(), Error> {
        let items = extent::count_items(self.tensor.view().shape()).unwrap_or(i64::MAX);
        let counted = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        same_extent(0, counted(elements::<T>(items)), counted(needed))
    }

    /// The elements in the order that the struct wants.
    ///
    /// # Errors
    ///
    /// As [`TensorRef::to_vec`].
    pub fn elements<T: Element>(&self) -> Result<Vec<T>, Error> {
        let mut elements = Vec::new();
        self.copy_elements(&mut elements)?;
        Ok(elements)
    }

    /// Replaces the elements of a vector. If there are as many, their memory is reused.
    pub(super) fn copy_elements<T: Element>(&self, target: &mut Vec<T>) -> Result<(), Error> {
        let view = self.tensor.view();
        if self.order == Order::C {
            return view.copy_to_vec(target);
        }
        let leading = self.leading();
        let mut shape = Dims::from(view.shape()).check_allocated()?;
        let mut strides = Dims::from(view.strides()).check_allocated()?;
        shape[..leading].reverse();
        strides[..leading].reverse();
        view.with_axes(&shape, &strides).copy_to_vec(target)
    }

    /// The memory itself, strides and all.
    pub(super) fn adopt<T: Plain>(self) -> Result<SharedBuffer<T>, Error> {
        let view = self.tensor.view();
        view.check_type::<T>()?;
        let shape = view.shape();
        let items = if shape.contains(&0) {
            0
        } else if self.is_packed(&view) {
            extent::count_items(shape).unwrap_or(0)
        } else {
            // Any order of the axes is all right for a struct that keeps the strides. But a buffer has the
            // items of its tensor and no others: what lies in a gap is somebody else's, and a start in
            // the middle leaves items in front.
            let leading = self.leading();
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
        let len = elements::<T>(items);
        if !T::ANY_BITS {
            // Without gaps, these are all there is, and each of them once.
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
        aligned_to(data.addr(), align_of::<T>(), view.dtype)?;
        if let Some(allocation) = allocation_of(&Descriptor::of_tensor(&self.tensor)?) {
            // An export of a buffer: the new one is another handle on its memory.
            return Ok(SharedBuffer::from_allocation(allocation, data, len, access));
        }
        SharedBuffer::from_keeper(self.tensor, data, len, access)
    }
}
