//! From a plan to tokens: calls into core, never logic, and no `unsafe`.

pub(crate) mod call;
pub(crate) mod class;
pub(crate) mod dlpack;
pub(crate) mod element;
pub(crate) mod from;
pub(crate) mod record;
pub(crate) mod stub;
pub(crate) mod tensors;
