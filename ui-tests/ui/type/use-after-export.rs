use dlpack_core::DLPack;

#[derive(DLPack)]
struct Samples {
    values: Vec<f32>,
}

fn main() {
    let samples = Samples { values: vec![1.0] };
    let tensor = samples.into_dlpack().unwrap();
    println!("{} {}", samples.values.len(), tensor.view().shape()[0]);
}
