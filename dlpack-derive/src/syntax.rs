//! From tokens to what the user wrote, borrowed and with its spans; no rule over more than one attribute.

pub(crate) mod attr;
pub(crate) mod ctxt;
pub(crate) mod expr;
pub(crate) mod input;
pub(crate) mod krate;
pub(crate) mod role;
pub(crate) mod root;
pub(crate) mod ty;
