use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(owner)]
struct Series {
    candles: std::sync::Arc<[f64]>,
}

fn main() {}
