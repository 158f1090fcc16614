use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(order = F, shape = [2, _])]
struct Image {
    pixels: Vec<f32>,
}

fn main() {}
