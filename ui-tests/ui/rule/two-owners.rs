use std::sync::Arc;

use dlpack_core::DLPack;

#[derive(DLPack)]
struct Series {
    #[dlpack(data, owner)]
    candles: Arc<[f64]>,
    #[dlpack(owner)]
    pool: Arc<[f64]>,
}

fn main() {}
