//! From a plan to tokens: calls of the core, without logic, and without `unsafe` except for the user's own.
//!
//! ```text
//! Plan ──[ call: each at the user's tokens ]── impl DLPack { describe: Parts::new().shape(..).describe(..) }
//! ```
//!
//! Each call has the span of the user's tokens that it is about, so that rustc's errors point to them.
//!
//! | file | generates |
//! |---|---|
//! | `call` | the calls for a tensor and its fields |
//! | `dlpack` | `DLPack` |
//! | `tensors` | `DLPackTensors`, and an accessor for each tensor |
//! | `from` | `FromDLPack` |
//! | `element` | `Element` |
//! | `record` | `Record` |
//! | `class` | the check that a Python class has its methods |
//! | `complete` | for editors: the user's keys as imports from a module that defines all keys |
//! | `inventory` | for type stubs: what `#[dlpack_pymethods]` needs to know about the type |
//! | `stub` | an implementation for an item with errors, so that its uses cause no further errors |

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
