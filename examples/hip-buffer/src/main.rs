//! Exports a field from an AMD GPU. Without one it says so.

use std::sync::Arc;

use dlpack_core::{DLPack, Device, stream};
use hip_buffer::Field;
use hip_buffer::hip::{DeviceBuffer, HipError, Stream};

/// The names of the library that `stream::available` accepts. The last belongs to the development files.
const LIBRARIES: [&str; 4] = [
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so",
];

/// A stream of the library that the environment names, or of the first that is found.
fn open_stream() -> Result<Arc<Stream>, HipError> {
    if let Ok(library) = std::env::var("DLPACK_LIBAMDHIP64") {
        return Stream::new(library);
    }
    let mut stream = Stream::new(LIBRARIES[0]);
    for library in &LIBRARIES[1..] {
        if let Err(HipError::Library(_)) = stream {
            stream = Stream::new(library);
        }
    }
    stream
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let device = Device::rocm(0);
    if let Err(why) = stream::available(device) {
        println!("no AMD GPU: {why}; with one, a field of f32 would be exported from {device}");
        return Ok(());
    }
    let stream = open_stream()?;
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
