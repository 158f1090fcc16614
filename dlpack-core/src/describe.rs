//! A tensor of our own: from what an annotation says, and memory that is lent, to a tensor that was found to lie inside it.
//!
//! Nobody can make a [`Descriptor`](descriptor::Descriptor) but through [`Parts`](parts::Parts), and `Parts` refuses
//! whatever would reach outside. What follows, to the consumer, trusts it.
//!
//! ```text
//! annotation ──[ Parts ]──┐                ┌── fast ──────────────────┐
//!                         ├──[ describe ]──┤                          ├── Descriptor ── export
//! data ──────[ Loan ]─────┘                └── check every rule ──────┘
//! ```
//!
//! | file | job |
//! |---|---|
//! | `parts` | the builder: what an annotation says, or why the first part of it was refused |
//! | `check` | every rule over more than one part: extents, strides, offset, bounds, alignment, device, stream; whether the tensor is read-only is decided here |
//! | `fast` | the same for tensors of few axes where nothing is wrong, which is nearly all of them |
//! | `descriptor` | the outcome; also for a tensor that was exported before |
//! | `record` | columns over a slice of structs |

pub(crate) mod check;
pub(crate) mod descriptor;
pub(crate) mod fast;
pub(crate) mod parts;
pub(crate) mod record;
