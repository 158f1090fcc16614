use dlpack_core::DLPack;

#[derive(DLPack)]
enum Audio {
    Stereo {
        #[dlpack(data)]
        samples: Vec<f32>,
        #[dlpack(shape)]
        dims: [usize; 2],
    },
}

fn main() {}
