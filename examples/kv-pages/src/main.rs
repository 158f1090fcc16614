//! Exports the keys and the values of a cache from a GPU. Without a GPU it says so.
#![forbid(unsafe_code)]

use std::sync::Arc;

use cudarc::driver::CudaContext;
use dlpack_core::{DLPackTensors, Device, stream};
use kv_pages::Pages;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    // cudarc panics where there is no driver, so we ask first.
    if let Err(why) = stream::available(Device::cuda(0)) {
        println!("no GPU: {why}; with one, keys and values of bf16 would be exported from cuda:0");
        return Ok(());
    }
    let stream = CudaContext::new(0)?.new_stream()?;
    let pages = Arc::new(Pages::new(&stream, [1024, 16, 128])?);
    for name in Pages::NAMES {
        let tensor = pages.to_dlpack_tensor(name)?;
        let view = tensor.view();
        println!(
            "{name}: {} {:?}, strides {:?}, on {}",
            view.dtype(),
            view.shape(),
            view.strides(),
            view.device()
        );
    }
    Ok(())
}
