use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(shape = [if let Some(rows) = self.rows { rows } else { 1 }, 2])]
struct Pairs {
    #[dlpack(data)]
    values: Vec<f32>,
    rows: Option<usize>,
}

fn main() {}
