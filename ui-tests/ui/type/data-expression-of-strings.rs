use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(data = &self.names[..])]
struct Table {
    names: Vec<String>,
}

fn main() {}
