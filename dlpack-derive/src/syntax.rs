//! From tokens to what the user wrote, borrowed and with its spans; no rule over more than one attribute.
//!
//! ```text
//! #[dlpack(shape = [rows, _])] ──[ attr: one key ]── role, value ──[ input: where it stands ]── Input
//! ```
//!
//! A new key is a row in `role`: its name, and the form that it takes on each site. What it means with others is said
//! in `plan`, what becomes of it in `expand`.
//!
//! | file | job |
//! |---|---|
//! | `role` | the keys: each spelled once, with the sites where it may stand |
//! | `attr` | the grammar of one attribute |
//! | `input` | the item with its fields or variants, each with its keys |
//! | `expr` | the user's expressions: where one ends, which lists it holds, which names are in scope |
//! | `ty` | what a type shows by its tokens |
//! | `krate` | the paths of an expansion, and where rustc sees each call |
//! | `root` | whether a macro is core's or dlpack-pyo3's |
//! | `ctxt` | errors, collected so that one compilation shows them all |

pub(crate) mod attr;
pub(crate) mod ctxt;
pub(crate) mod expr;
pub(crate) mod input;
pub(crate) mod krate;
pub(crate) mod role;
pub(crate) mod root;
pub(crate) mod ty;
