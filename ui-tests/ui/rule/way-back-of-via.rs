use dlpack_core::{DLPack, FromDLPack};

#[derive(DLPack, FromDLPack)]
#[dlpack(via = self.0.clone())]
struct Image(Vec<f32>);

fn main() {}
