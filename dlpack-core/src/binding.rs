//! Functions for bindings to other languages. Rust code does not need them.
//!
//! A binding borrows and releases the object that holds a tensor in its own way. So it performs the steps of
//! [`into_dlpack`](crate::DLPack::into_dlpack) one by one: it describes the tensor, and exports it together with the owner that
//! keeps the memory.
//!
//! | to | call |
//! |---|---|
//! | export memory that a borrow of the binding keeps in place | [`export_with`] |
//! | export such memory without a consumer's request | [`export_unordered`] |
//! | export it with an owner that can be released without the deleter | [`hand_over`], [`take_back`] |
//! | export it with such an owner, without a request, in the fewest instructions | [`hand_over_plain`], if the tensor [`is_plain`](fn@is_plain); fewest if the description [`is_from_fast_path`](fn@is_from_fast_path), such as that of [`describe_export`](fn@describe_export) |
//! | view a described tensor without exporting it | [`view`](fn@view), if the tensor [`is_plain`](fn@is_plain) |
//! | make a tensor from a description by another protocol, such as Python's buffers | [`keep_strided`](fn@keep_strided) |
//! | read such memory during a call | [`view_strided`] |
//! | view such memory without a tensor, and make one later | [`UnownedArray`], [`View::into_tensor`](crate::array::View::into_tensor) |
//! | slice a tensor, and export the slice later or never | [`TensorSlice`], [`PickedView`] |
//! | make a tensor from serialized bytes | [`reinterpret_bytes`] |
//! | find what keeps the memory below a tensor that was exported and imported repeatedly | [`find_root`], for a class with [`Extras::transparent`]; for a tensor of [`describe_export`](fn@describe_export), [`find_root_of_export`] |
//! | hold the allocation of a [`SharedBuffer`](crate::SharedBuffer) directly, without the tensors in between | [`share_root`], [`keep_by_allocation`]; without a tensor at all [`share_allocation`], [`allocation_of_export`] |
//! | re-import a tensor that this crate exported, in the fewest instructions | [`take_own`] |
//! | import a tensor of a producer that may change its shape and strides | [`take_versioned`], [`take_legacy`] |
//! | lend the records of a class to readers that know their layout | [`DLPackTensors::records`](crate::DLPackTensors), [`Records`] |
//! | view a structured array | [`UnownedArray::from_records`], [`ElementAccess`] |
//! | find out whether an imported tensor is a copy that no other code holds | [`is_own_copy`] |
//! | find a data type by its name | [`dtype_of_name`] |
//! | get the device of a tensor's data, in the fewest instructions | [`device_of`] |
//! | get the `stream` value that requests no ordering, or a request with it | [`unordered_stream`], [`unordered_request`] |
//! | wait for pending work on an imported tensor | [`wait_for_producer`](fn@wait_for_producer) |
//! | pass a tensor to code that may keep it even if it fails | [`Offer`] |
//! | implement `current_work_stream` of the exchange API table | [`current_stream`](fn@current_stream) |
//! | implement the allocator of that table | [`zeroed_like`] |
//! | read a struct that another producer filled, without taking ownership | [`check_aligned`](fn@check_aligned), [`list_at`](fn@list_at) |
//! | print the numbers of a tensor of any data type | [`copy_numbers`], [`only_number`] |
//! | format an error when memory may be exhausted | [`text`](fn@text) |
//! | find the Python exception for an error, with the feature `pyo3` | `exception` |
//! | prevent overlap of arrays that are lent as plain slices | [`LeaseTable`], with the [`Span`] of each array from [`UnownedArray::span`] |
//! | release an object that may own the next link of a long chain | [`release_nested`] |
//! | hide an error that is pending from the deleters of other producers | [`around_deleters`] |
//! | release a lock while the crate waits for a device | [`around_blocking`](fn@around_blocking) |
//!
//! `dlpack-pyo3` is such a binding. This module changes with its needs, even in minor releases.

mod leases;

pub use crate::array::unowned::UnownedArray;
pub use crate::describe::{of_tensor::describe_export, record::Records, slice::TensorSlice};
pub use crate::dtype::dtype_of_name;
pub use crate::error::text;
pub use crate::export::device::wait_for_producer;
pub use crate::export::extras::{Extras, Lists, ShareCall, lists, share};
pub use crate::export::finish::{
    export_unordered, export_with, is_from_fast_path, is_plain, unordered_request, unordered_stream,
};
pub use crate::export::hand_over::{
    Handover, RawExport, hand_over, hand_over_plain, take_back, view,
};
pub use crate::export::host_memory::{is_own_copy, zeroed_like};
pub use crate::export::offer::Offer;
pub use crate::export::root::{
    AllocationHandle, Root, allocation_of_export, find_root, find_root_of_export,
    keep_by_allocation, share_allocation, share_root,
};
pub use crate::export::strided::{Strided, keep_strided, view_strided};
pub use crate::export::views::reinterpret_bytes;
#[cfg(feature = "pyo3")]
pub use crate::features::pyo3::{Exception, exception};
pub use crate::layout::span::Span;
pub use crate::layout::views::{Pick, PickedView};
pub use crate::memory::nested::{around_deleters, release_nested};
#[cfg(not(feature = "streams"))]
pub use crate::stream::state::{around_blocking, current_stream};
#[cfg(feature = "streams")]
pub use crate::stream::{order::current_stream, session::around_blocking};
pub use crate::tensor::array_element::{ElementAccess, ElementTask};
pub use crate::tensor::foreign::{check_aligned, list_at};
pub use crate::tensor::managed::{device_of, take_legacy, take_own, take_versioned};
pub use crate::tensor::numbers::{AnyNumber, Numbers, copy_numbers, only_number};
pub use leases::{LeaseTable, Leases, TableLock};
