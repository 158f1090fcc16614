//! The measured calls: `export` measures their time, `instructions` counts their instructions.
//!
//! Every call of a group starts from the same value and ends with everything released, so a group's rows differ only in the
//! export between them. The first rows are the floor: no export at all, and one allocation of the same size.

mod floor;
mod peers;

use core::hint::black_box;
use std::sync::Arc;

use dlpack_core::{DLPack, ExportRequest, Managed};

/// A row: the name of a call, and a function that repeats it.
pub(crate) struct Call {
    pub(crate) group: &'static str,
    pub(crate) name: &'static str,
    pub(crate) repeat: fn(u64),
}

/// A typical struct.
#[derive(DLPack)]
pub(crate) struct Image {
    #[dlpack(data)]
    pixels: Vec<f32>,
    #[dlpack(shape)]
    dims: [usize; 3],
}

impl AsRef<Image> for Image {
    fn as_ref(&self) -> &Image {
        self
    }
}

/// A struct that delegates to its only field.
#[derive(DLPack)]
struct Frame(Image);

/// Not contiguous, so it takes the general path.
#[derive(DLPack)]
#[dlpack(shape = [rows, cols], strides = [pitch, _])]
struct Padded {
    #[dlpack(data)]
    bytes: Vec<u8>,
    rows: usize,
    cols: usize,
    pitch: usize,
}

fn padded() -> Padded {
    Padded {
        bytes: vec![0; 64],
        rows: 4,
        cols: 12,
        pitch: 16,
    }
}

/// The compiler must not know the numbers, or it would evaluate the checks.
fn image() -> Image {
    Image {
        pixels: Vec::from([0.5; 24]),
        dims: black_box([2, 4, 3]),
    }
}

fn repeat<T>(turns: u64, mut call: impl FnMut() -> T) {
    for _ in 0..turns {
        // By reference, because moving the value through memory is not part of the call.
        black_box(&call());
    }
}

macro_rules! calls {
    ($($group:literal { $($name:literal $(($shared:ident: $make:expr))? => $call:expr;)* })*) => {
        pub(crate) const CALLS: &[Call] = &[$($(Call {
            group: $group,
            name: $name,
            repeat: |turns| {
                $(let $shared = black_box(Arc::new($make));)?
                repeat(turns, || $call)
            },
        }),*),*];
    };
}
calls! {
    "moved" {
        "the value alone" => image();
        "a box of the block's size" => (image(), floor::block::<Image>());
        "one malloc, as in C" => floor::export(image());
        "into_dlpack" => image().into_dlpack().expect(INSIDE);
        "into_dlpack, newtype" => Frame(image()).into_dlpack().expect(INSIDE);
        "into_dlpack_with, legacy" => image().into_dlpack_with(&legacy()).expect(INSIDE);
        "dlpark" => peers::dlpark_moved(image());
        "dlpack-rs" => peers::dlpack_rs_moved(image());
    }
    "shared" {
        "Arc::clone alone"(shared: image()) => Arc::clone(black_box(&shared));
        "a box of the block's size"(shared: image()) => (Arc::clone(black_box(&shared)), floor::block::<Arc<Image>>());
        "one malloc, as in C"(shared: image()) => floor::export(Arc::clone(black_box(&shared)));
        "Arc::to_dlpack"(shared: image()) => black_box(&shared).to_dlpack().expect(INSIDE);
        "Arc::to_dlpack_with, versioned"(shared: image()) => black_box(&shared).to_dlpack_with(&versioned()).expect(INSIDE);
        "and back: from_raw, view"(shared: image()) => back(black_box(&shared).to_dlpack().expect(INSIDE));
        "dlpark"(shared: image()) => peers::dlpark_shared(black_box(&shared));
        "dlpack-rs"(shared: image()) => peers::dlpack_rs_shared(black_box(&shared));
    }
    "described" {
        "describe"(shared: image()) => black_box(&*shared).describe().expect(INSIDE);
        "describe, padded rows"(shared: padded()) => black_box(&*shared).describe().expect(INSIDE);
    }
    "copied" {
        "Vec::clone, 4 KB"(shared: samples()) => Vec::clone(black_box(&shared));
        "to_dlpack_with, copy"(shared: samples()) => black_box(&shared).to_dlpack_with(&copy()).expect(INSIDE);
    }
}

const INSIDE: &str = "the shape lies inside the data";

fn legacy() -> ExportRequest {
    black_box(ExportRequest::default())
}

fn samples() -> Vec<f32> {
    vec![0.5; 1024]
}

fn copy() -> ExportRequest {
    black_box(ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    })
}

fn versioned() -> ExportRequest {
    black_box(ExportRequest::versioned())
}

/// Converts to a C pointer and back: checked as a foreign tensor, and read.
#[expect(unsafe_code, reason = "plays the consumer")]
fn back(exported: Managed) -> Managed {
    let pointer = black_box(exported.into_raw());
    // SAFETY: `into_raw` returned the pointer, and this is its only use.
    let managed = unsafe { Managed::from_raw(pointer) }.expect("an export of ours is valid");
    black_box(managed.view().shape());
    managed
}
