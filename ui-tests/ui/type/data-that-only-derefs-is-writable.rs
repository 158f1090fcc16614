use dlpack_core::DLPack;

struct Mapped(&'static [f32]);

impl std::ops::Deref for Mapped {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        self.0
    }
}

#[derive(DLPack)]
struct Image {
    #[dlpack(data, writable)]
    pixels: Mapped,
    #[dlpack(shape)]
    dims: [usize; 2],
}

fn main() {}
