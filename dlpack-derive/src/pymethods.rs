//! `#[dlpack_pymethods]`: what is added to the methods of a class.
//!
//! The block is scanned, not parsed: PyO3 validates its contents. One class attribute is added; when PyO3 evaluates it,
//! everything else is defined on the class.
//!
//! ```text
//! #[pymethods] impl Image { .. } ──[ block ]── the block with const __dlpack_tensors__: Attributes<Image>
//! ```
//!
//! | file | job |
//! |---|---|
//! | `methods` | the options, the generated items, and the errors |
//! | `inventory` | for type stubs: the tensors of the class, as known to its derive |
//! | `block` | an `impl` block as tokens: its type, its attributes, the names that it defines |

pub(crate) mod block;
pub(crate) mod inventory;
pub(crate) mod methods;
