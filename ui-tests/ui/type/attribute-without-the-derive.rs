struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
}

fn main() {}
