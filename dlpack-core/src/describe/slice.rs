//! [`TensorSlice`]: a view of a tensor that is not exported yet, so it needs no export block.
#![expect(unsafe_code, reason = "the caller has to pass the tensor of the slice")]

use crate::describe::descriptor::offset_address;
use crate::layout::{shape_strides::ShapeStrides, views::PickedView};
use crate::{DataType, Descriptor, Device, Error, Managed, TensorRef, Version};

/// Address, shape and strides of a view that [`Pick`](crate::binding::Pick)s select from a tensor. It does not keep the tensor.
///
/// ```
/// use dlpack_core::binding::{Pick, PickedView, TensorSlice};
/// use dlpack_core::{DLPack, Error};
///
/// let image = [[1_u8, 2, 3], [4, 5, 6]].into_dlpack()?;
/// let picks = [Pick::Index(1), Pick::Slice(0..3, -2)];
/// let select = |view: &mut PickedView<'_>| picks.iter().try_for_each(|one| view.pick(one));
/// let mut slice = TensorSlice::NONE;
/// slice.select(&image, None, select, |error| error)?;
/// // SAFETY: a slice of `image`.
/// assert_eq!(unsafe { slice.view(&image) }.to_vec::<u8>()?, [6, 4]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct TensorSlice {
    data: *mut u8,
    byte_offset: u64,
    dims: ShapeStrides,
}

// SAFETY: numbers, and an address that is not used without the tensor, which is `Send`.
unsafe impl Send for TensorSlice {}
// SAFETY: numbers, and an address that is not used without the tensor, which is `Sync`.
unsafe impl Sync for TensorSlice {}

impl TensorSlice {
    /// A slice of no tensor yet, for [`select`](Self::select).
    pub const NONE: Self = Self {
        data: core::ptr::null_mut(),
        byte_offset: 0,
        dims: ShapeStrides::EMPTY,
    };

    /// Makes [`NONE`](Self::NONE) a slice of `tensor`, or of another slice of it: `select` applies one pick after another. After
    /// an error the slice must not be used.
    ///
    /// It is changed in place, because moves of it would cost as much as the picks.
    ///
    /// # Errors
    ///
    /// The errors of `select`; and [`Error::PartialOffset`], [`Error::TooManyAxes`], [`Error::OutOfMemory`], as what `convert`
    /// makes of them.
    #[inline(always)]
    pub fn select<E>(
        &mut self,
        tensor: &Managed,
        of: Option<&Self>,
        select: impl FnOnce(&mut PickedView<'_>) -> Result<(), E>,
        convert: impl FnOnce(Error) -> E,
    ) -> Result<(), E> {
        let whole = tensor.view_inlined();
        let (data, byte_offset, shape, strides) = match of {
            None => (whole.data, whole.byte_offset, whole.shape, whole.strides),
            Some(of) => (of.data, of.byte_offset, of.dims.shape(), of.dims.strides()),
        };
        let mut picked = PickedView::new(shape, strides, &mut self.dims);
        select(&mut picked)?;
        (self.data, self.byte_offset) = (data, byte_offset);
        match picked.finish() {
            Ok(first) => match self.move_to(first, whole.dtype, whole.device) {
                Ok(()) => Ok(()),
                Err(error) => Err(convert(error)),
            },
            Err(error) => Err(convert(error)),
        }
    }

    /// Moves the address by so many items.
    #[inline]
    fn move_to(&mut self, first: isize, dtype: DataType, device: Device) -> Result<(), Error> {
        if self.dims.shape().contains(&0) {
            // LAY-05, LAY-18
            (self.data, self.byte_offset) = (core::ptr::null_mut(), 0);
            self.dims = ShapeStrides::row_major(self.dims.shape())?;
            return Ok(());
        }
        let address = (self.data, self.byte_offset);
        (self.data, self.byte_offset) = offset_address(address, first, dtype, device)?;
        Ok(())
    }

    /// The view of the elements.
    ///
    /// # Safety
    ///
    /// The slice was selected from `tensor`, or from another slice of it.
    #[must_use]
    pub unsafe fn view<'a>(&'a self, tensor: &'a Managed) -> TensorRef<'a> {
        let whole = tensor.view_inlined();
        TensorRef {
            data: self.data,
            byte_offset: self.byte_offset,
            shape: self.dims.shape(),
            strides: self.dims.strides(),
            read_only: tensor.is_read_only_through_shared(&whole),
            copied: false,
            version: Some(Version::CURRENT),
            ..whole
        }
    }

    /// The description of the view, for an export. Its owner has to keep `tensor`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`]
    ///
    /// # Safety
    ///
    /// The slice was selected from `tensor`, or from another slice of it.
    pub unsafe fn describe<'a>(&self, tensor: &'a Managed) -> Result<Descriptor<'a>, Error> {
        let view = TensorRef {
            data: self.data,
            byte_offset: self.byte_offset,
            shape: self.dims.shape(),
            strides: self.dims.strides(),
            ..tensor.view_inlined()
        };
        let mut described = Descriptor::of_view(tensor, &view, Some(tensor))?;
        described.apply_export_rules(tensor)?;
        Ok(described)
    }
}
