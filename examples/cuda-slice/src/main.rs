//! Exports a picture from a GPU, and has a copy of it brought to the processor. Without a GPU it says so.
#![forbid(unsafe_code)]

use std::sync::Arc;

use cuda_slice::Image;
use cudarc::driver::CudaContext;
use dlpack_core::{DLPack, Device, ExportRequest, stream};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    // cudarc panics where there is no driver, so we ask first.
    if let Err(why) = stream::available(Device::cuda(0)) {
        println!("no GPU: {why}; with one, an image of f32 would be exported from cuda:0");
        return Ok(());
    }
    let image = Arc::new(Image::new(&CudaContext::new(0)?.new_stream()?, [480, 640])?);
    let shared = image.to_dlpack()?;
    let view = shared.view();
    println!("{} {:?} on {}", view.dtype(), view.shape(), view.device());

    // What numpy asks for: the processor may read at once, so the work on the stream is waited for.
    let request = ExportRequest {
        dl_device: Some(Device::CPU),
        ..ExportRequest::versioned()
    };
    let copy = image.to_dlpack_with(&request)?;
    println!("its first pixel: {}", copy.view().as_slice::<f32>()?[0]);
    Ok(())
}
