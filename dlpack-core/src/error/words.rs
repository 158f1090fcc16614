//! The texts and lists that errors hold: where there is no memory for them, that is the error.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::error::Error;

/// The errors that hold lists, if there is memory for those.
impl Error {
    #[cold]
    pub(crate) fn too_large(shape: &[i64]) -> Self {
        list(shape).map_or_else(|error| error, |shape| Self::TooLarge { shape })
    }

    #[cold]
    pub(crate) fn not_contiguous(shape: &[i64], strides: &[i64]) -> Self {
        let lists = list(shape).and_then(|shape| Ok((shape, list(strides)?)));
        let error = |(shape, strides)| Self::NotContiguous { shape, strides };
        lists.map_or_else(|error| error, error)
    }

    /// A clone, if there is memory for one, of an error that is remembered.
    #[cfg(feature = "std")]
    #[cold]
    pub(crate) fn again(&self) -> Self {
        let clone = || match self {
            &Self::NoDriver { library, ref why } => {
                let why = text(why)?;
                Ok(Self::NoDriver { library, why })
            }
            &Self::NoEntryPoint {
                ref library,
                symbol,
            } => {
                let library = text(library)?;
                Ok(Self::NoEntryPoint { library, symbol })
            }
            other => Ok(other.clone()),
        };
        clone().unwrap_or_else(|error| error)
    }
}

/// `value.to_string()`, where there is memory for it.
///
/// # Errors
///
/// [`Error::OutOfMemory`], where `to_string` would end the process.
pub fn text(value: impl fmt::Display) -> Result<String, Error> {
    struct Text(String);

    impl fmt::Write for Text {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0.try_reserve(part.len()).map_err(|_| fmt::Error)?;
            self.0.push_str(part);
            Ok(())
        }
    }

    let mut text = Text(String::new());
    match fmt::write(&mut text, format_args!("{value}")) {
        Ok(()) => Ok(text.0),
        Err(fmt::Error) => Err(Error::OutOfMemory {
            bytes: text.0.len() + 1,
        }),
    }
}

/// `values.to_vec()`, where there is memory for it.
pub(crate) fn list(values: &[i64]) -> Result<Vec<i64>, Error> {
    let mut list = Vec::new();
    if list.try_reserve_exact(values.len()).is_err() {
        let bytes = size_of_val(values);
        return Err(Error::OutOfMemory { bytes });
    }
    list.extend_from_slice(values);
    Ok(list)
}
