//! A tensor that somebody made: owned, checked, looked at.

pub(crate) mod accessors;
pub(crate) mod foreign;
pub(crate) mod items;
pub(crate) mod managed;
pub(crate) mod view;

pub use items::Items;
pub use managed::Managed;
pub use view::TensorRef;
