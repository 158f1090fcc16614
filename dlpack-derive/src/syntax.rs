//! Parses attributes into borrowed values with their spans. Rules that concern more than one attribute are in `plan`.
//!
//! ```text
//! #[dlpack(shape = [rows, _])] ──[ attr: one key ]── role, value ──[ input: where it stands ]── Input
//! ```
//!
//! To add a key, add a row in `role`: its name, and its form at each site. How it combines with other keys is decided in
//! `plan`, and what it generates in `expand`.
//!
//! | file | job |
//! |---|---|
//! | `role` | the keys: the name of each, and the sites where it is allowed |
//! | `attr` | the grammar of one attribute |
//! | `input` | the item with its fields or variants, and the keys of each |
//! | `expr` | the user's expressions: where each ends, bracket lists, and names of fields in scope |
//! | `fragment` | fragments of `macro_rules` in the item, such as `$e:expr` |
//! | `scope` | reports variables in an expression that have the name of a field |
//! | `ty` | recognizes types by their tokens |
//! | `krate` | the paths in generated code, and their spans |
//! | `root` | which of the two crates a macro belongs to |
//! | `ctxt` | collects errors, so that one compilation shows them all |

pub(crate) mod attr;
pub(crate) mod ctxt;
pub(crate) mod expr;
pub(crate) mod fragment;
pub(crate) mod input;
pub(crate) mod krate;
pub(crate) mod role;
pub(crate) mod root;
pub(crate) mod scope;
pub(crate) mod ty;
