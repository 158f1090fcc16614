//! Which of the two crates a macro belongs to.

/// The crate that a macro belongs to: its users have it, whatever else they depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Core,
    /// For Python's classes.
    Pyo3,
}

impl Root {
    /// The path, for messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Core => "::dlpack_core",
            Self::Pyo3 => "::dlpack_pyo3",
        }
    }
}
