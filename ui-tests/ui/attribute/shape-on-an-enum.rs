use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = [_, 2])]
enum Audio {
    Stereo(Vec<f32>),
}

fn main() {}
