use dlpack_core::DLPack;

#[derive(DLPack)]
#[repr(C, packed)]
struct Header {
    flags: u8,
    #[dlpack(data)]
    values: [f32; 4],
}

fn main() {}
