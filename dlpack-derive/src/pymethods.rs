//! `#[dlpack_pymethods]`: what a class gets beside the methods that its author wrote.
//!
//! The block is not parsed, only looked through: what stands in it is PyO3's to judge. What is added is one class
//! attribute, which puts everything else on the class when PyO3 evaluates it.
//!
//! ```text
//! #[pymethods] impl Image { .. } ──[ block ]── the same, and const __dlpack_tensors__: Attributes<Image>
//! ```
//!
//! | file | job |
//! |---|---|
//! | `methods` | the options, what is added, and what is said where it cannot be |
//! | `inventory` | for type stubs: the tensors of the class, as its derive knows them |
//! | `block` | an `impl` as tokens: its type, its attributes, the names it defines |

pub(crate) mod block;
pub(crate) mod inventory;
pub(crate) mod methods;
