//! A tensor that somebody exported: taken over, checked, looked at, and released once.
//!
//! What comes in is a pointer to a C struct and a promise. The struct is checked before anything is read by it; from then
//! on `Managed` has the duty to call its deleter, and `TensorRef` is what safe code sees of it.
//!
//! ```text
//! *mut DLManagedTensor.. ──(foreign: well formed?)──> Managed ──view()──> TensorRef ──> a slice, a vector, Items
//!                                                        └─ drop: the deleter, once
//! ```
//!
//! | file | job |
//! |---|---|
//! | `foreign` | whether the struct of somebody else is well formed: ndim, device, type, extents, strides, addresses |
//! | `c_struct` | the struct that it is in, of either version: its fields, and its deleter |
//! | `managed` | owns a struct of either version, ours or foreign: looks at its version, and calls its deleter once |
//! | `accessors` | what can be asked of any tensor; described ones have the same |
//! | `view` | the elements as a slice or a vector, in the order and type that is asked for; and the copy of all items, by `memory::gather` or `memory::atomic` |
//! | `items` | the elements one by one, in atomic words where others write |
//! | `array_element` | the elements of typed arrays, records among them: how one is read and written |
//! | `numbers` | the items as numbers, whatever their type |

pub(crate) mod accessors;
pub(crate) mod array_element;
pub(crate) mod c_struct;
pub(crate) mod foreign;
pub(crate) mod items;
pub(crate) mod managed;
pub(crate) mod numbers;
pub(crate) mod view;

pub use items::Items;
pub use managed::Managed;
pub use view::TensorRef;
