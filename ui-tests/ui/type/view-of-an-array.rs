use dlpack_core::DLPack;

#[derive(DLPack)]
struct Image {
    #[dlpack(data)]
    pixels: ndarray::ArrayView2<'static, f32>,
    name: String,
}

fn main() {}
