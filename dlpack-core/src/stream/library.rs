//! Finds and loads the libraries of the drivers, and looks up functions in them by name.
#![expect(unsafe_code, reason = "loads libraries")]

use alloc::string::{String, ToString};
use alloc::{format, vec::Vec};
use core::ffi::c_void;
use core::{mem::MaybeUninit, ptr::NonNull};

use libloading::Library;
use std::ffi::OsString;

use crate::Error;

/// The names under which an API's library is searched.
pub(super) struct SearchPath {
    pub(super) name: &'static str,
    /// The environment variable that names another library.
    variable: &'static str,
    candidates: &'static [&'static str],
}

pub(super) const CUDA: SearchPath = SearchPath {
    name: "libcuda",
    variable: "DLPACK_LIBCUDA",
    // The first name is the driver's; the second can be a toolkit's stub.
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
        // The name without a version can belong to the development files of another version.
        &[
            "libamdhip64.so.7",
            "libamdhip64.so.6",
            "libamdhip64.so.5",
            "libamdhip64.so",
        ]
    },
};

/// The name of a function, and whether a library must have it.
pub(super) type Symbol = (&'static str, bool);

/// The address of a function, as it lies in a function pointer or an `Option` of one.
type FunctionAddress = Option<NonNull<c_void>>;

/// A loaded library.
pub(super) struct OpenLibrary {
    pub(super) library: Library,
    name: OsString,
}

impl OpenLibrary {
    #[inline(never)]
    pub(super) fn open(search: &SearchPath) -> Result<Self, Error> {
        if cfg!(miri) {
            let (library, why) = (search.name, String::from("Miri calls no C code"));
            return Err(Error::NoDriver { library, why });
        }
        let named = std::env::var_os(search.variable);
        let by_name = named.is_none();
        let candidates = match named {
            Some(path) => alloc::vec![path],
            None => search.candidates.iter().map(OsString::from).collect(),
        };
        // Two copies of a runtime do not know each other's streams, so a library that is loaded already is preferred.
        for name in &candidates {
            if let Some(library) = open_if_loaded(name) {
                let name = name.clone();
                return Ok(Self { library, name });
            }
        }
        let mut failures = Vec::new();
        for name in candidates {
            match load_library(&name, by_name) {
                Ok(library) => return Ok(Self { library, name }),
                Err(error) => failures.push(describe_failure(&name, &error)),
            }
        }
        Err(Error::NoDriver {
            library: search.name,
            why: failures.join("; "),
        })
    }

    /// Looks up functions by name.
    ///
    /// # Errors
    ///
    /// [`Error::NoEntryPoint`] for the first required function that the library does not have.
    ///
    /// # Safety
    ///
    /// `F` is laid out as an array of as many function pointers as there are symbols, in this order. Each has the type of its
    /// function, in an `Option` if the function is optional.
    pub(super) unsafe fn find_functions<F>(&self, symbols: &[Symbol]) -> Result<F, Error> {
        assert_eq!(size_of::<F>(), symbols.len() * size_of::<FunctionAddress>());
        let mut functions = MaybeUninit::<F>::uninit();
        // SAFETY: `F` has as many pointers as there are symbols, by this function's contract and the assertion.
        unsafe { self.find_addresses(symbols, functions.as_mut_ptr().cast()) }?;
        // SAFETY: `find_addresses` wrote every pointer of `F`: a function of the pointer's type, or `None` for an optional function.
        Ok(unsafe { functions.assume_init() })
    }

    /// Writes the addresses of functions to `first` and the places after it.
    ///
    /// # Safety
    ///
    /// As many places as there are symbols are valid for writes.
    #[inline(never)]
    unsafe fn find_addresses(
        &self,
        symbols: &[Symbol],
        first: *mut FunctionAddress,
    ) -> Result<(), Error> {
        for (index, &(symbol, is_required)) in symbols.iter().enumerate() {
            let address = self.find_address(symbol, is_required)?;
            // SAFETY: by this function's contract there is a place for each symbol.
            unsafe { first.wrapping_add(index).write(address) };
        }
        Ok(())
    }

    /// The address of a function; `None` only if it is optional.
    fn find_address(
        &self,
        symbol: &'static str,
        is_required: bool,
    ) -> Result<FunctionAddress, Error> {
        // SAFETY: the address of a symbol is read as an untyped pointer, which every symbol's address is.
        let found = unsafe { self.library.get::<*mut c_void>(symbol.as_bytes()) };
        let address = found.ok().and_then(|address| NonNull::new(*address));
        if address.is_none() && is_required {
            let library = self.name.to_string_lossy().into_owned();
            return Err(Error::NoEntryPoint { library, symbol });
        }
        Ok(address)
    }
}

/// The message of the system. Since version 0.9, an error of `libloading` has that as its source, behind its own message.
/// Windows does not name the library, so its name is added. It is also added to a message about another library that this one
/// needs.
#[inline(never)]
fn describe_failure(name: &OsString, error: &libloading::Error) -> String {
    let why = match core::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    };
    let name = name.to_string_lossy();
    // A search in the whole text would link 3 KB of the standard library's.
    if why.starts_with(&*name) {
        why
    } else {
        format!("{name}: {why}")
    }
}

/// Loads a library, by one of the default names or by the path from the environment.
#[inline(never)]
fn load_library(name: &OsString, by_name: bool) -> Result<Library, libloading::Error> {
    #[cfg(windows)]
    if by_name && name == "nvcuda.dll" {
        use libloading::os::windows;

        // Only the system folder is searched: the program's folder comes first by default, and other users may write to it.
        let system = windows::LOAD_LIBRARY_SEARCH_SYSTEM32;
        // SAFETY: the library is the system's driver; its initialization has no preconditions.
        return unsafe { windows::Library::load_with_flags(name, system) }.map(Library::from);
    }
    let _ = by_name;
    // SAFETY: a driver's initialization has no preconditions; the user that sets the variable guarantees it for another library.
    unsafe { Library::new(name) }
}

/// Opens a library if it is loaded already.
#[cfg(unix)]
#[inline(never)]
fn open_if_loaded(name: &OsString) -> Option<Library> {
    use core::ffi::c_int;

    use libloading::os::unix;

    /// `RTLD_NOLOAD`, which `libloading` does not name.
    const NO_LOAD: c_int = if cfg!(target_os = "macos") { 0x10 } else { 4 };
    // SAFETY: with `RTLD_NOLOAD` no library is loaded, so no initialization code runs.
    let library = unsafe { unix::Library::open(Some(name), unix::RTLD_LAZY | NO_LOAD) };
    Some(library.ok()?.into())
}

#[cfg(windows)]
fn open_if_loaded(name: &OsString) -> Option<Library> {
    let library = libloading::os::windows::Library::open_already_loaded(name);
    Some(library.ok()?.into())
}
