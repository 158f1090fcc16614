//! Which of the two crates a macro belongs to.

/// The crate that a macro belongs to, on which its users depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Core,
    /// `dlpack_pyo3`, for Python classes.
    Pyo3,
}

impl Root {
    /// The path of the crate, for messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Core => "::dlpack_core",
            Self::Pyo3 => "::dlpack_pyo3",
        }
    }
}
