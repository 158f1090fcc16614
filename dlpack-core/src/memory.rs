//! Raw memory without types: allocation, reads of memory that other threads write, and copies.
//!
//! ```text
//! strided items ──[ gather: the loops ]───[ moves: the inner loops ]── contiguous items
//!                                                                  └── aligned memory
//! memory shared by threads ──[ atomic: words and lines ]──┘
//! ```
//!
//! | file | job |
//! |---|---|
//! | `aligned` | allocations aligned to 256 bytes, and vectors with fallible allocation |
//! | `counted` | a reference-counted value with fallible allocation |
//! | `nested` | a limit to how deep releases nest |
//! | `atomic` | reads and writes of memory that other threads access: in words, by `atomic/lines` in cache lines, by `atomic/floats` in registers of floats |
//! | `gather` | chooses the loops that copy strided items fastest, in safe code |
//! | `moves` | the inner loops of that copy: transposed squares, rows, single items; plain reads, or reads by `atomic` |

pub(crate) mod aligned;
pub(crate) mod atomic;
pub(crate) mod counted;
pub(crate) mod gather;
mod moves;
pub(crate) mod nested;
