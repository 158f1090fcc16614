//! From what an annotation says, and memory that is lent, to a tensor that was found to lie inside it.

pub(crate) mod check;
pub(crate) mod descriptor;
pub(crate) mod parts;
pub(crate) mod record;
pub(crate) mod usual;
