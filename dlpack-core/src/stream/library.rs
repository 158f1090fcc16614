//! The libraries of the drivers: where they are looked for, and functions in them by name.
#![expect(unsafe_code, reason = "loads libraries")]

use alloc::string::{String, ToString};
use alloc::{borrow::ToOwned, vec::Vec};
use core::ffi::c_int;

use libloading::Library;

use crate::Error;

/// Where an API's library is looked for.
pub(super) struct SearchPath {
    pub(super) name: &'static str,
    /// What names another in the environment.
    variable: &'static str,
    candidates: &'static [&'static str],
    pub(super) error_name: &'static str,
}

pub(super) const CUDA: SearchPath = SearchPath {
    name: "libcuda",
    variable: "DLPACK_LIBCUDA",
    // The first name is that of the driver; the second can be the stub of a toolkit.
    candidates: if cfg!(windows) {
        &["nvcuda.dll"]
    } else {
        &["libcuda.so.1", "libcuda.so"]
    },
    error_name: "cuGetErrorName",
};

pub(super) const HIP: SearchPath = SearchPath {
    name: "libamdhip64",
    variable: "DLPACK_LIBAMDHIP64",
    candidates: if cfg!(windows) {
        &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"]
    } else {
        &[
            "libamdhip64.so",
            "libamdhip64.so.7",
            "libamdhip64.so.6",
            "libamdhip64.so.5",
        ]
    },
    error_name: "hipGetErrorName",
};

/// A library that is never closed again.
pub(super) struct OpenLibrary {
    pub(super) library: Library,
    name: String,
}

impl OpenLibrary {
    pub(super) fn open(search: &SearchPath) -> Result<Self, Error> {
        if let Some(path) = std::env::var_os(search.variable) {
            let name = path.to_string_lossy().into_owned();
            // SAFETY: who names a library in the environment vouches for what it does when it is loaded.
            return match unsafe { Library::new(&path) } {
                Ok(library) => Ok(Self { library, name }),
                Err(error) => Err(Error::NoDriver {
                    library: search.name,
                    why: error.to_string(),
                }),
            };
        }
        // Two copies of a runtime do not know each other's streams: one that is loaded already is the right one.
        let loaded = search.candidates.iter().find_map(|name| Self::loaded(name));
        if let Some(opened) = loaded {
            return Ok(opened);
        }
        let mut failures = Vec::new();
        for &name in search.candidates {
            // SAFETY: a driver does nothing when it is loaded but to get ready.
            match unsafe { Library::new(name) } {
                Ok(library) => {
                    let name = name.to_owned();
                    return Ok(Self { library, name });
                }
                Err(error) => failures.push(error.to_string()),
            }
        }
        Err(Error::NoDriver {
            library: search.name,
            why: failures.join("; "),
        })
    }

    #[cfg(unix)]
    fn loaded(name: &str) -> Option<Self> {
        use libloading::os::unix;

        /// `RTLD_NOLOAD`, which `libloading` does not name.
        const NO_LOAD: c_int = if cfg!(target_os = "macos") { 0x10 } else { 4 };
        // SAFETY: nothing is loaded, and so nothing runs.
        let library = unsafe { unix::Library::open(Some(name), unix::RTLD_LAZY | NO_LOAD) }.ok()?;
        Some(Self {
            library: library.into(),
            name: name.to_owned(),
        })
    }

    #[cfg(windows)]
    fn loaded(name: &str) -> Option<Self> {
        let library = libloading::os::windows::Library::open_already_loaded(name).ok()?;
        Some(Self {
            library: library.into(),
            name: name.to_owned(),
        })
    }

    /// The function of this name.
    ///
    /// # Safety
    ///
    /// `F` is a type of function pointers, and that of this function.
    pub(super) unsafe fn find<F: Copy>(&self, symbol: &'static str) -> Result<F, Error> {
        // SAFETY: passed on to the caller.
        match unsafe { self.library.get::<F>(symbol.as_bytes()) } {
            Ok(found) => Ok(*found),
            Err(_) => Err(Error::NoEntryPoint {
                library: self.name.clone(),
                symbol,
            }),
        }
    }
}
