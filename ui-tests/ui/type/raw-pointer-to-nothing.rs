use dlpack_core::DLPack;

#[derive(DLPack)]
#[dlpack(unsafe(data = self.data, len = self.len))]
struct Image {
    data: *mut std::ffi::c_void,
    len: usize,
}

// SAFETY: the memory belongs to the struct alone.
unsafe impl Send for Image {}

fn main() {}
