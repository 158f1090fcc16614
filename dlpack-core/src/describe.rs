//! Descriptions of tensors. An annotation (shape, strides, offset, dtype and so on) and borrowed memory become a [`Descriptor`]:
//! a tensor that was checked to lie inside the memory.
//!
//! A [`Descriptor`](crate::Descriptor) can only be made by [`Parts`](parts::Parts), which rejects any tensor that would
//! reach outside its memory. All later code, up to the consumer, relies on that.
//!
//! ```text
//! annotation ──[ Parts ]──┐                ┌── fast ──────────────────┐
//!                         ├──[ describe ]──┤                          ├── Descriptor ── export
//! data ──────[ Loan ]─────┘                └── check every rule ──────┘
//! ```
//!
//! | file | job |
//! |---|---|
//! | `parts` | the builder: the parts of an annotation, or the error of the first invalid one |
//! | `check` | every rule that involves more than one part: shape, strides, offset, bounds, alignment, device, stream; decides whether the tensor is read-only |
//! | `fast` | fast paths for valid tensors with few axes, which nearly all tensors are; a second copy of the rules for them |
//! | `descriptor` | the checked description |
//! | `of_tensor` | the description of a tensor that was exported or imported before |
//! | `slice` | a view of a tensor that is not exported yet |
//! | `record` | columns over a slice of structs |

pub(crate) mod check;
pub(crate) mod descriptor;
pub(crate) mod fast;
pub(crate) mod of_tensor;
pub(crate) mod parts;
pub(crate) mod record;
pub(crate) mod slice;
