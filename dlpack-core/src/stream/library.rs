//! The libraries of the drivers: where they are looked for, and functions in them by name.
#![expect(unsafe_code, reason = "loads libraries")]

use alloc::{format, string::String, vec::Vec};
use core::ffi::c_void;
use core::{mem::transmute_copy, ptr::NonNull};

use libloading::Library;
use std::ffi::OsString;

use crate::Error;

/// Where an API's library is looked for.
pub(super) struct SearchPath {
    pub(super) name: &'static str,
    /// What names another in the environment.
    variable: &'static str,
    candidates: &'static [&'static str],
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
};

pub(super) const HIP: SearchPath = SearchPath {
    name: "libamdhip64",
    variable: "DLPACK_LIBAMDHIP64",
    candidates: if cfg!(windows) {
        &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"]
    } else {
        // The bare name can be that of another version's development files.
        &[
            "libamdhip64.so.7",
            "libamdhip64.so.6",
            "libamdhip64.so.5",
            "libamdhip64.so",
        ]
    },
};

/// A library that is never closed again.
pub(super) struct OpenLibrary {
    pub(super) library: Library,
    name: OsString,
}

impl OpenLibrary {
    pub(super) fn open(search: &SearchPath) -> Result<Self, Error> {
        let named = std::env::var_os(search.variable);
        let by_name = named.is_none();
        let candidates = match named {
            Some(path) => alloc::vec![path],
            None => search.candidates.iter().map(OsString::from).collect(),
        };
        // Two copies of a runtime do not know each other's streams: one that is loaded already is the right one.
        for name in &candidates {
            if let Some(library) = loaded(name) {
                let name = name.clone();
                return Ok(Self { library, name });
            }
        }
        let mut failures = Vec::new();
        for name in candidates {
            match load(&name, by_name) {
                Ok(library) => return Ok(Self { library, name }),
                Err(error) => failures.push(why(&name, &error)),
            }
        }
        Err(Error::NoDriver {
            library: search.name,
            why: failures.join("; "),
        })
    }

    /// The function of this name.
    ///
    /// # Safety
    ///
    /// `F` is a type of function pointers, and that of this function.
    pub(super) unsafe fn find<F: Copy>(&self, symbol: &'static str) -> Result<F, Error> {
        const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
        let address = self.address(symbol)?;
        // SAFETY: the address of a function, of which the caller vouches for the type.
        Ok(unsafe { transmute_copy(&address) })
    }

    /// Where the function of this name is; one for the functions of all types.
    fn address(&self, symbol: &'static str) -> Result<NonNull<c_void>, Error> {
        // SAFETY: any symbol has an address.
        let found = unsafe { self.library.get::<*mut c_void>(symbol.as_bytes()) };
        let address = found.ok().and_then(|address| NonNull::new(*address));
        address.ok_or_else(|| Error::NoEntryPoint {
            library: self.name.to_string_lossy().into_owned(),
            symbol,
        })
    }
}

/// What the system says. From version 0.9 on, an error of `libloading` keeps that behind a text of its own. Windows does
/// not say which library it is about.
fn why(name: &OsString, error: &dyn core::error::Error) -> String {
    let (name, why) = (
        name.to_string_lossy(),
        format!("{}", error.source().unwrap_or(error)),
    );
    if why.contains(&*name) {
        why
    } else {
        format!("{name}: {why}")
    }
}

/// Loads a library: by its name, or from where somebody says that it is.
fn load(name: &OsString, by_name: bool) -> Result<Library, libloading::Error> {
    #[cfg(windows)]
    if by_name && name == "nvcuda.dll" {
        use libloading::os::windows;

        // The driver's place; the folder of the program, which comes first otherwise, may be anybody's.
        let system = windows::LOAD_LIBRARY_SEARCH_SYSTEM32;
        // SAFETY: a driver does nothing when it is loaded but to get ready.
        return unsafe { windows::Library::load_with_flags(name, system) }.map(Library::from);
    }
    let _ = by_name;
    // SAFETY: as above; who names another library in the environment vouches for what that does.
    unsafe { Library::new(name) }
}

/// A library that is loaded already.
#[cfg(unix)]
fn loaded(name: &OsString) -> Option<Library> {
    use core::ffi::c_int;

    use libloading::os::unix;

    /// `RTLD_NOLOAD`, which `libloading` does not name.
    const NO_LOAD: c_int = if cfg!(target_os = "macos") { 0x10 } else { 4 };
    // SAFETY: nothing is loaded, and so nothing runs.
    let library = unsafe { unix::Library::open(Some(name), unix::RTLD_LAZY | NO_LOAD) };
    Some(library.ok()?.into())
}

#[cfg(windows)]
fn loaded(name: &OsString) -> Option<Library> {
    let library = libloading::os::windows::Library::open_already_loaded(name);
    Some(library.ok()?.into())
}
