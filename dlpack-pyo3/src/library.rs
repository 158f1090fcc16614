//! The array libraries of Python: how one is found, and by what it makes an array of its own.
//!
//! | file | job |
//! |---|---|
//! | `function` | the `from_dlpack` of any library, by name |

pub(crate) mod function;
