//! What a binding to another language calls, and a user of Rust has no need for.
//!
//! A binding borrows the object that holds a tensor in a way of its own, and releases it in a way of its own. So it
//! does by hand what [`into_dlpack`](crate::DLPack::into_dlpack) does at one go: it describes the tensor, and hands
//! it over together with the owner that keeps the memory.
//!
//! | to | call |
//! |---|---|
//! | export what a borrow of yours keeps in place | [`export_with`] |
//! | do so, and release the owner without the deleter | [`hand_over`], [`take_back`] |
//! | do so without a request, in the fewest instructions | [`hand_over_plain`], if the tensor [`is_plain`](fn@is_plain) |
//! | make a tensor of what another protocol describes, as Python's buffers do | [`keep_strided`](fn@keep_strided) |
//! | view such memory without a tensor, and make one later | [`Found`], [`View::into_tensor`](crate::array::View::into_tensor) |
//! | export a part of it | [`pick`] |
//! | make a tensor of bytes that were written down | [`recast`] |
//! | find what keeps the memory of a tensor that was exported, imported, and so on | [`kept_by`], for a class that says [`Extras::transparent`] |
//! | hold the memory itself, where that is of a [`SharedBuffer`](crate::SharedBuffer), and no tensor between | [`share_root`], [`keep_by_root_of`] |
//! | take a tensor of ours over again, in the fewest instructions | [`take_own`] |
//! | lend the records of a class to readers that know their layout | [`DLPackTensors::records`](crate::DLPackTensors), [`Records`] |
//! | view a structured array | [`Found::of_records`], [`Access`] |
//! | know that an imported tensor is a copy which nobody else has | [`is_own_copy`] |
//! | say where the data of a tensor is, in the fewest instructions | [`device_of`] |
//! | order nothing: who asks sees to it | [`unordered`] |
//! | wait for the work behind a tensor that was imported | [`settle`](fn@settle) |
//! | let somebody take a tensor, who may fail and keep it all the same | [`Offer`] |
//! | answer `current_work_stream` of the exchange table | [`current_stream`](fn@current_stream) |
//! | answer its allocator | [`zeroed_like`] |
//! | look at a struct that somebody else filled, and take nothing | [`aligned`](fn@aligned), [`list_at`](fn@list_at) |
//! | show what is in a tensor, whatever its type | [`numbers`](fn@numbers) |
//! | put an error into words where there may be no memory for them | [`text`](fn@text) |
//! | find the exception for an error in Python, with the feature `pyo3` | `exception` |
//! | keep arrays apart that are lent as plain slices | [`LeaseTable`], with the [`Span`] of each array by [`Found::span`] |
//! | let go of a lock while core waits for a device | [`around_blocking`](fn@around_blocking) |
//!
//! `dlpack-pyo3` is such a binding, and this module changes with its needs: from one minor release to the next, not
//! only from one major release to the next.

mod leases;

pub use crate::array::found::Found;
pub use crate::describe::record::Records;
pub use crate::error::text;
pub use crate::export::cuts::{pick, recast};
#[cfg(feature = "std")]
pub use crate::export::device::settle;
pub use crate::export::extras::{Extras, Lists, Shared, lists, share};
pub use crate::export::fresh::{is_own_copy, zeroed_like};
pub use crate::export::hand_over::{
    Handover, RawExport, hand_over, hand_over_plain, is_plain, take_back,
};
pub use crate::export::layer::kept_by;
pub use crate::export::offer::Offer;
pub use crate::export::root::{keep_by_root_of, share_root};
pub use crate::export::strided::{Strided, keep_strided};
pub use crate::export::ways::{export_with, unordered};
#[cfg(feature = "pyo3")]
pub use crate::features::pyo3::{Exception, exception};
pub use crate::layout::cut::Pick;
pub use crate::layout::span::Span;
#[cfg(feature = "std")]
pub use crate::stream::order::current_stream;
#[cfg(feature = "std")]
pub use crate::stream::visit::around_blocking;
pub use crate::tensor::array_element::{Access, ByAccess};
pub use crate::tensor::foreign::{aligned, list_at};
pub use crate::tensor::managed::{device_of, take_own};
pub use crate::tensor::numbers::{Number, Numbers, numbers};
pub use leases::{LeaseTable, Leases, TableLock};
