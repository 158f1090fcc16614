use dlpack_core::{Buffer, DLPack, Loan};

struct Pool(Vec<f32>);

impl Buffer for Pool {
    fn lend(&self) -> Loan<'_> {
        self.0.lend()
    }
}

#[derive(DLPack)]
struct Page {
    #[dlpack(data, owner)]
    values: Pool,
    name: String,
}

fn main() {}
