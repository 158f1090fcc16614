//! The same exports by other crates, as in their documentation.
#![expect(unsafe_code, reason = "required by their API")]

use core::ptr::NonNull;
use std::sync::Arc;

use dlpack_rs::safe::{TensorInfo, cpu_device, dtype_f32, pack_versioned};
use dlpark::OpaqueContext;
use dlpark::ffi::{DLDataType, DLDevice};
use dlpark::metadata::Fixed;
use dlpark::versioned::Dlpack;

use super::Image;
use super::floor::Exported;

impl Image {
    fn shape(&self) -> [i64; 3] {
        self.dims
            .map(|extent| i64::try_from(extent).expect("small"))
    }

    fn strides(&self) -> [i64; 3] {
        let [_, w, c] = self.shape();
        [w * c, c, 1]
    }
}

pub(crate) fn dlpark_moved(image: Image) -> Dlpack {
    dlpark_boxed(
        image.pixels.as_ptr(),
        image.shape(),
        image.strides(),
        Box::new(image),
    )
}

pub(crate) fn dlpark_shared(image: &Arc<Image>) -> Dlpack {
    dlpark_boxed(
        image.pixels.as_ptr(),
        image.shape(),
        image.strides(),
        Arc::clone(image),
    )
}

fn dlpark_boxed(
    data: *const f32,
    shape: [i64; 3],
    strides: [i64; 3],
    owner: impl OpaqueContext,
) -> Dlpack {
    let mut tensor = Fixed::new(shape, strides)
        .initialize(owner)
        .expect("three axes");
    tensor
        .set_data(data.cast_mut().cast())
        .set_dtype(DLDataType::F32)
        .set_device(DLDevice::CPU);
    // SAFETY: the owner keeps the data, and shape and strides are those of the image.
    unsafe { tensor.finish() }
}

pub(crate) fn dlpack_rs_moved(image: Image) -> Exported {
    dlpack_rs_packed(info(&image), image)
}

pub(crate) fn dlpack_rs_shared(image: &Arc<Image>) -> Exported {
    dlpack_rs_packed(info(image), Arc::clone(image))
}

fn info(image: &Image) -> TensorInfo {
    TensorInfo::strided(
        image.pixels.as_ptr().cast_mut().cast(),
        cpu_device(),
        dtype_f32(),
        image.shape().to_vec(),
        image.strides().to_vec(),
    )
}

fn dlpack_rs_packed<O: 'static>(info: TensorInfo, owner: O) -> Exported {
    let tensor = NonNull::new(pack_versioned(owner, info, 0)).expect("it was boxed");
    // SAFETY: the tensor was just packed, and both crates mirror the same C struct.
    unsafe { Exported::new(tensor.cast()) }
}
