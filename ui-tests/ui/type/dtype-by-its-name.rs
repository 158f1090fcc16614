use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(dtype = self.kind)]
struct Image {
    #[dlpack(data)]
    bytes: Vec<u8>,
    kind: &'static str,
}

fn main() {}
