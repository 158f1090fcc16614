//! The first handle to an allocation: a process that has none skips the search for one behind imported objects. Each case of this
//! needs a process of its own, so this file has one test.
#![cfg(feature = "derive")]

use dlpack_core::binding::{self, AllocationHandle, ShareCall};
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
    let mut call = ShareCall {
        by_address: true,
        outcome: None,
    };
    assert!(!AllocationHandle::may_exist());
    let tensor = binding::share(&state, None, &mut call);
    assert!(tensor.is_some() && call.outcome.is_none());
    assert!(AllocationHandle::may_exist());
}
