//! Describes tensors that were exported or imported before, to export them again.

use core::marker::PhantomData;

use crate::describe::descriptor::DescriptionSource;
use crate::layout::extent;
use crate::layout::shape_strides::ShapeStrides;
use crate::{Descriptor, Error, Managed, ReleasePolicy, TensorRef, stream::Queue, version::Abi};

impl<'a> Descriptor<'a> {
    /// Describes an exported or imported tensor as seen through a shared reference.
    pub(crate) fn of_tensor(tensor: &'a Managed) -> Result<Self, Error> {
        let mut described = Self::of_view(tensor, &tensor.view_inlined(), Some(tensor))?;
        described.apply_export_rules(tensor)?;
        Ok(described)
    }

    /// Describes an exported or imported tensor as seen through an exclusive reference.
    pub(crate) fn of_tensor_mut(tensor: &'a mut Managed) -> Result<Self, Error> {
        let mut described = Self::of_view(tensor, &tensor.view_inlined(), Some(tensor))?;
        (described.read_only, described.access) = (tensor.is_read_only(), tensor.access());
        described.apply_export_rules(tensor)?;
        Ok(described)
    }

    /// Applies the rules that other producers need not follow to the description of a tensor or of a view of it: overlapping items
    /// are read-only, and a tensor without elements has no address.
    #[inline(always)]
    pub(super) fn apply_export_rules(&mut self, tensor: &Managed) -> Result<(), Error> {
        if tensor.is_own_export() {
            return Ok(());
        }
        self.apply_rules_to_import()
    }

    #[inline(never)]
    fn apply_rules_to_import(&mut self) -> Result<(), Error> {
        if self.shape().contains(&0) {
            // LAY-05, LAY-18
            (self.data, self.byte_offset) = (core::ptr::null_mut(), 0);
            self.dims = ShapeStrides::row_major(self.shape())?;
        } else if !self.read_only {
            // LAY-16: one write would show up in several elements.
            self.read_only = extent::may_overlap(self.shape(), self.strides());
        }
        Ok(())
    }

    /// Describes a view of a tensor as seen through a shared reference. `view` is that of the whole tensor, but for the address,
    /// shape and strides. `borrowed` is the tensor, unless the caller stores it in the description.
    #[inline(always)]
    pub(super) fn of_view(
        tensor: &Managed,
        view: &TensorRef<'_>,
        borrowed: Option<&'a Managed>,
    ) -> Result<Self, Error> {
        // Calls the producer's code, so it comes first: for the case of a panic, all that is built before is kept in memory, and then
        // moved by wide loads that wait for the narrow stores before.
        let stream = match view.device.device_type.stream_api() {
            Some(_) => tensor.owner_stream(),
            None => None,
        };
        let source = match borrowed {
            Some(tensor) => DescriptionSource::BorrowedTensor(tensor),
            None => DescriptionSource::Memory,
        };
        match ShapeStrides::copy_short(view.shape, view.strides) {
            Some(dims) => Ok(Self::of_dims(tensor, view, dims, stream, source)),
            None => ShapeStrides::on_heap(view.shape, view.strides)
                .map(|dims| Self::of_dims(tensor, view, dims, stream, source)),
        }
    }

    /// Describes a view of a tensor, with this shape and these strides.
    #[inline(always)]
    fn of_dims(
        tensor: &Managed,
        view: &TensorRef<'_>,
        dims: ShapeStrides,
        stream: Option<Queue>,
        source: DescriptionSource<'a>,
    ) -> Self {
        let access = tensor.access();
        Self {
            data: view.data,
            byte_offset: view.byte_offset,
            dims,
            dtype: view.dtype,
            device: view.device,
            stream,
            read_only: tensor.is_read_only_through_shared(view),
            access: if view.is_read_only() {
                access.for_reading()
            } else {
                access.through_shared()
            },
            legacy: tensor.legacy_policy(),
            release: ReleasePolicy::Safe,
            source,
            allocation: None,
            lifetime: PhantomData,
        }
    }

    /// Describes a tensor that the descriptor owns.
    pub(crate) fn of_owned_tensor(tensor: Managed) -> Result<Self, Error> {
        let mut described = Self::of_view(&tensor, &tensor.view_inlined(), None)?;
        (described.read_only, described.access) = (tensor.is_read_only(), tensor.access());
        described.apply_export_rules(&tensor)?;
        described.source = DescriptionSource::OwnedTensor(tensor);
        Ok(described)
    }
}

/// Describes a tensor of at most six axes that this crate exported, on a device without streams, as seen through a shared reference:
/// a fast path of [`describe`](crate::DLPack::describe), for [`hand_over_plain`](crate::binding::hand_over_plain). Returns `None`
/// for any other tensor.
///
/// ```
/// use dlpack_core::binding::{describe_export, is_from_fast_path};
/// use dlpack_core::DLPack;
///
/// let tensor = vec![1_u8, 2].into_dlpack()?;
/// let described = describe_export(&tensor).expect("an export of this crate");
/// assert!(is_from_fast_path(&described));
/// assert_eq!(described.as_ptr(), tensor.view().as_ptr());
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[must_use]
#[inline(always)]
pub fn describe_export(tensor: &Managed) -> Option<Descriptor<'_>> {
    // The struct first, so that its fields are found in one way.
    if tensor.abi() != Abi::Versioned || !tensor.is_own_export() {
        return None;
    }
    let view = tensor.view_inlined();
    if view.device.device_type.stream_api().is_some() {
        return None;
    }
    let dims = ShapeStrides::copy_short(view.shape, view.strides)?;
    let source = DescriptionSource::FastPath;
    Some(Descriptor::of_dims(tensor, &view, dims, None, source))
}

#[cfg(test)]
mod tests {
    use alloc::{sync::Arc, vec};

    use super::*;
    use crate::{DLPack, DataType, SharedBuffer};

    /// All that a description says but where it comes from.
    fn facts(it: &Descriptor<'_>) -> impl PartialEq + core::fmt::Debug {
        let layout = (it.shape().to_vec(), it.strides().to_vec());
        let place = (it.data, it.byte_offset, it.device, it.stream);
        let rules = (it.read_only, it.access, it.legacy, it.release);
        (layout, place, rules, it.dtype, it.allocation)
    }

    #[test]
    fn an_export_is_described_on_the_fast_path_as_on_the_general_one() {
        let zeroed = |shape: &[i64]| Managed::zeroed(shape, DataType::F4_E2M1FN).unwrap();
        let exports = [
            vec![1_u16, 2, 3].into_dlpack(),
            Arc::new(vec![1_u16, 2, 3]).to_dlpack(),
            SharedBuffer::copied_from(&[1_u16, 2, 3])
                .unwrap()
                .into_dlpack(),
            vec![1_u16, 2, 3, 4].into_dlpack().unwrap().slice(0, 1..3),
            Ok(zeroed(&[])),
            Ok(zeroed(&[2, 0])),
            Ok(zeroed(&[1, 2, 1, 2, 1, 2])),
        ];
        for tensor in exports {
            let tensor = tensor.unwrap();
            let fast = describe_export(&tensor).expect("an export in host memory");
            assert!(matches!(fast.source, DescriptionSource::FastPath));
            let general = Descriptor::of_tensor(&tensor).unwrap();
            assert_eq!(facts(&fast), facts(&general));
        }
    }
}
