use dlpack_core::Element;

#[derive(Element)]
#[repr(u8)]
enum Side {
    Bid,
    Ask,
}

fn main() {}
