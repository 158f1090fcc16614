//! Exports a field from an AMD GPU. Without one it says so.

use dlpack_core::{DLPack, Device, stream};
use hip_buffer::Field;
use hip_buffer::hip::{DeviceBuffer, Stream};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let device = Device::rocm(0);
    if let Err(why) = stream::available(device) {
        println!("no AMD GPU: {why}; with one, a field of f32 would be exported from {device}");
        return Ok(());
    }
    let library = std::env::var("DLPACK_LIBAMDHIP64");
    let stream = Stream::new(library.as_deref().unwrap_or("libamdhip64.so"))?;
    let field = Field {
        values: DeviceBuffer::upload(&stream, &[0.5; 6])?,
        dims: [2, 3],
        device,
        stream,
    };
    let tensor = field.into_dlpack()?;
    let view = tensor.view();
    println!("{} {:?} on {}", view.dtype(), view.shape(), view.device());
    Ok(())
}
