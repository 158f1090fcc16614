//! What users write: the structs that were asked for, annotated as their owners would, exported both ways and looked at.
//!
//! | key | used in |
//! |---|---|
//! | `data` | every struct with a flag; `delegated` over tensors; `shapes::Slot`, `keys::Tail` by expression |
//! | `shape` | `listed::Page` by a tuple, `shapes::Ragged` by `Vec<u64>`, `keys::Boxed` by `Box<[i32]>`, lists with and without `_` |
//! | `strides`, `byte_strides` | `listed::Tensor` by a field, `keys::Window` by a list; `listed::Frame` |
//! | `order` | `listed::ColMajor`, `keys::RowMajor` by a string; `shapes::File` by a field, `keys::Turned` by an expression |
//! | `offset`, `byte_offset` | `keys::Window`; `shapes::File`, `shapes::Metal` |
//! | `elem` | `ambiguities::Mask`, `keys::Points` |
//! | `dtype` | `shapes::File` by a field, `shapes::Slot` by an expression |
//! | `device` | `shapes::OnGpu` by an expression, `keys::Mapped` by a field |
//! | `stream` | `listed::Page` by a field, `keys::Mapped` by an expression |
//! | `owner` | `listed::Series`, `listed::Vectors` beside `data`; `shapes::Slot` on another field |
//! | `readonly`, `writable` | `keys::Table`, `keys::Canvas`; `keys::Owned` on the struct |
//! | `tensor` | `shapes::Batch`; `keys::Multi` with every key inside, on fields and on the struct |
//! | `columns` | `shapes::Tape`; `keys::Book` beside tensors |
//! | `via` | `keys::Computed` |
//! | `unsafe` | `listed::Tensor`, `keys::Mapped`; `keys::Multi` inside `tensor` |
//! | `legacy`, `release` | `keys::Strict`, `keys::Computed` |
//! | `skip` | `listed::Audio`; `keys::Quote` on the field of a record |
//! | `crate`, `bound` | `keys::Owned`, and all of the package `ui-tests-renamed`; `keys::Bounded` |
// Lint levels on a struct do not reach the impl that its derive makes, so this stands on the crate.
#![expect(
    unsafe_code,
    reason = "the key `unsafe(data = .., len = ..)` is a promise of the code that has it"
)]

mod ambiguities;
mod delegated;
mod keys;
mod listed;
mod shapes;
mod stand_ins;
mod way_back;

use std::sync::Arc;

use dlpack_core::{DLPack, DataType, Device, TensorRef};

/// What both exports of a value have to look like.
struct Expected<'a> {
    data: *const u8,
    shape: &'a [i64],
    strides: &'a [i64],
    dtype: DataType,
    /// Of the export that shares the value.
    shared_read_only: bool,
    /// Of the export that takes it.
    owned_read_only: bool,
    device: Device,
}

/// Data that is the value's alone: only the export that takes it may be written.
const fn plain<'a>(
    data: *const u8,
    shape: &'a [i64],
    strides: &'a [i64],
    dtype: DataType,
) -> Expected<'a> {
    Expected {
        data,
        shape,
        strides,
        dtype,
        shared_read_only: true,
        owned_read_only: false,
        device: Device::CPU,
    }
}

impl Expected<'_> {
    /// Data that others can read: no export may be written.
    const fn shared(self) -> Self {
        Self {
            owned_read_only: true,
            ..self
        }
    }

    /// Memory of a device, which is written through shared references.
    const fn on(self, device: Device) -> Self {
        Self {
            device,
            shared_read_only: false,
            owned_read_only: false,
            ..self
        }
    }

    fn check(&self, view: &TensorRef<'_>, read_only: bool) {
        assert_eq!(view.shape(), self.shape);
        assert_eq!(view.strides(), self.strides);
        assert_eq!(view.dtype(), self.dtype);
        assert_eq!(view.device(), self.device);
        assert_eq!(view.as_ptr(), self.data);
        assert_eq!(view.is_read_only(), read_only);
        assert!(!view.is_copied());
    }
}

/// Exports the value without giving it up, then by giving it up.
fn exports<T: DLPack + Sync + 'static>(value: T, expected: &Expected<'_>) {
    let value = Arc::new(value);
    let shared = value.to_dlpack().expect("the value is shared");
    expected.check(&shared.view(), expected.shared_read_only);
    drop(shared);
    let Ok(value) = Arc::try_unwrap(value) else {
        panic!("the deleter gave everything back");
    };
    let owned = value.into_dlpack().expect("the value is given up");
    expected.check(&owned.view(), expected.owned_read_only);
}

/// Where the elements begin.
fn start<T>(elements: &[T]) -> *const u8 {
    elements.as_ptr().cast()
}
