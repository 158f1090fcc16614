//! Bytes: how they are had, read while others write, and copied. What they mean is not known here.
//!
//! ```text
//! strided items ──[ gather: which walk ]──[ moves: the inner loops ]── contiguous items
//!                                                                  └── aligned memory
//! items that others write ──[ atomic: words and lines ]──┘
//! ```
//!
//! | file | job |
//! |---|---|
//! | `aligned` | memory from the allocator, aligned to 256 bytes; room in a vector |
//! | `counted` | a value that several hold, which may find no memory |
//! | `atomic` | reads and writes of what others write meanwhile, in words, and by `atomic/lines` in cache lines |
//! | `gather` | which walk copies strided items best, planned in safe code |
//! | `moves` | what that walk is made of: transposed squares, rows, single items; read plainly, or by `atomic` |

pub(crate) mod aligned;
pub(crate) mod atomic;
pub(crate) mod counted;
pub(crate) mod gather;
mod moves;
