use dlpack_core::DLPack;

fn main() {
    let slice = {
        let tensor = vec![1.0_f32].into_dlpack().unwrap();
        tensor.view().as_slice::<f32>().unwrap()
    };
    println!("{}", slice[0]);
}
