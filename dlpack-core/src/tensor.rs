//! Imported tensors: ownership, checks, read access and release.
//!
//! An import starts from a pointer to a C struct, and the caller's promise that the struct is valid. A [`Managed`] owns the
//! struct and calls its deleter once. Safe code reads the tensor through a [`TensorRef`].
//!
//! ```text
//! *mut DLManagedTensor.. ──(foreign: well formed?)──> Managed ──view()──> TensorRef ──> a slice, a vector, Items
//!                                                        └─ drop: the deleter, once
//! ```
//!
//! | file | job |
//! |---|---|
//! | `foreign` | checks that a foreign struct is well formed: ndim, device, dtype, shape, strides, addresses |
//! | `c_struct` | reads and releases the C struct, versioned or legacy |
//! | `managed_facts` | what a `Managed` knows beyond its struct, in one word |
//! | `managed` | owns a C struct: checks its version, and calls its deleter once |
//! | `accessors` | the accessors that `TensorRef` and `Descriptor` share |
//! | `view` | the elements as a slice or a vector, in a requested order and type; and a copy of all items, by `memory::gather` or `memory::atomic` |
//! | `items` | iterates over the elements, by atomic loads if the memory is shared with writers |
//! | `item_offsets` | the offsets of all items, in runs of equal stride; copies items to and from a buffer |
//! | `array_element` | the elements of typed arrays, including records: how each is read and written |
//! | `mapped` | collects items by batches, with or without a function |
//! | `numbers` | converts the items of any dtype to numbers |

pub(crate) mod accessors;
pub(crate) mod array_element;
pub(crate) mod c_struct;
pub(crate) mod foreign;
pub(crate) mod item_offsets;
pub(crate) mod items;
pub(crate) mod managed;
pub(crate) mod managed_facts;
pub(crate) mod mapped;
pub(crate) mod numbers;
pub(crate) mod view;

pub use items::Items;
pub use managed::Managed;
pub use mapped::Mapped;
pub use view::TensorRef;
