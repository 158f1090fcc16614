use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = [{ let rows: usize = self.values.len(); rows / 2 }, 2])]
struct Pairs {
    #[dlpack(data)]
    values: Vec<f32>,
    rows: usize,
}

fn main() {}
