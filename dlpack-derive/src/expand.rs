//! From a plan to tokens: calls into core, never logic, and no `unsafe` but the user's own.
//!
//! ```text
//! Plan ──[ call: each at the user's tokens ]── impl DLPack { describe: Parts::new().shape(..).describe(..) }
//! ```
//!
//! Every call stands where the user wrote what it is about, so that an error of rustc's points there.
//!
//! | file | writes |
//! |---|---|
//! | `call` | the calls that a tensor and its fields become |
//! | `dlpack` | `DLPack` |
//! | `tensors` | `DLPackTensors`, and an accessor for each tensor |
//! | `from` | `FromDLPack` |
//! | `element` | `Element` |
//! | `record` | `Record` |
//! | `class` | the check that a Python class got its methods |
//! | `complete` | for editors: the keys that the user wrote, as names of a module that has all |
//! | `inventory` | for type stubs: what `#[dlpack_pymethods]` has to know |
//! | `stub` | what an item with mistakes gets, so that its uses add no errors |

pub(crate) mod call;
pub(crate) mod class;
pub(crate) mod complete;
pub(crate) mod dlpack;
pub(crate) mod element;
pub(crate) mod from;
pub(crate) mod inventory;
pub(crate) mod record;
pub(crate) mod stub;
pub(crate) mod tensors;
