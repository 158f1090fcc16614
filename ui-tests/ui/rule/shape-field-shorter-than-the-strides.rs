use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(byte_strides = [_, pitch, _])]
struct Frame {
    #[dlpack(data)]
    bytes: Vec<u8>,
    #[dlpack(shape)]
    dims: [usize; 2],
    pitch: usize,
}

fn main() {}
