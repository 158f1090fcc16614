use dlpack_core::{DLPack, Element, Record};

#[derive(DLPack)]
struct Tape<T: Record, E: Element> {
    #[dlpack(columns)]
    trades: Vec<T>,
    #[dlpack(tensor)]
    weights: Vec<E>,
}

fn main() {}
