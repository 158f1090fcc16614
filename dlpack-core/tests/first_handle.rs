//! The first handle to an allocation: a process that has none skips the search for one behind imported objects. Each case of this
//! needs a process of its own, so this file has one test.
#![cfg(feature = "derive")]

use dlpack_core::binding::{self, AllocationHandle, Shared};
use dlpack_core::{DLPack, SharedBuffer};

#[derive(DLPack)]
struct State {
    #[dlpack(data, owner)]
    buffer: SharedBuffer<f32>,
}

#[test]
fn an_export_by_address_makes_a_handle() {
    let state = State {
        buffer: SharedBuffer::zeroed(3).unwrap(),
    };
    let mut shared = Shared {
        by_address: true,
        outcome: None,
    };
    assert!(!AllocationHandle::may_exist());
    let tensor = binding::share(&state, None, &mut shared);
    assert!(tensor.is_some() && shared.outcome.is_none());
    assert!(AllocationHandle::may_exist());
}
