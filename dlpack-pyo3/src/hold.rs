//! What keeps an object and its contents in place while a consumer looks at them.

pub(crate) mod borrowing;
pub(crate) mod forever;
pub(crate) mod held;
pub(crate) mod waiting;
