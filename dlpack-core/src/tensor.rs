//! A tensor that somebody made: owned, checked, looked at.

mod foreign;
pub(crate) mod items;
pub(crate) mod managed;
pub(crate) mod view;
