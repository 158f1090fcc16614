//! The array libraries of Python that are called by what they compile into others, not by DLPack.
//!
//! | file | job |
//! |---|---|
//! | `numpy` | NumPy's C API: found once NumPy is there, and by it an array over any tensor |

pub(crate) mod numpy;
