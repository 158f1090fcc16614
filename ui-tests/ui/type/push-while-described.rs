use dlpack_core::DLPack;

#[derive(DLPack)]
struct Samples {
    values: Vec<f32>,
}

fn main() {
    let mut samples = Samples { values: vec![1.0] };
    let described = samples.describe().unwrap();
    samples.values.push(2.0);
    assert_eq!(described.shape(), [1]);
}
