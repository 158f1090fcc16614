use dlpack_core::{DLPack, DataType, assert_exports};

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    bytes: Vec<u8>,
    #[dlpack(dtype)]
    dtype: DataType,
}
assert_exports!(Image: u8);

fn main() {}
