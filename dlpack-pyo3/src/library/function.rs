//! The function that creates an array of a library from any tensor: its `from_dlpack`, looked up by name.

use pyo3::exceptions::{PyAttributeError, PyImportError, PyTypeError};
use pyo3::types::{PyModule, PyString};
use pyo3::{intern, prelude::*, sync::PyOnceLock};

use crate::{error::fail, library::not_installed, values};

/// An array library, by its name or module, chosen at run time.
///
/// As an argument it takes both:
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::Library;
/// use pyo3::prelude::*;
///
/// /// In Python: `ramp(3, "torch")`, or `ramp(3, torch)`.
/// #[pyfunction]
/// fn ramp<'py>(py: Python<'py>, len: u16, library: Library) -> PyResult<Bound<'py, PyAny>> {
///     let samples: Vec<f32> = (0..len).map(f32::from).collect();
///     library.array(py, samples)
/// }
/// ```
#[derive(Debug)]
pub struct Library {
    function: Py<PyAny>,
    kind: LibraryKind,
}

/// How a library creates arrays.
#[derive(Clone, Copy, PartialEq, Debug)]
enum LibraryKind {
    Usual,
    /// Has a C API that is faster and supports more.
    Numpy,
    /// May have an exchange table, which is faster.
    Torch,
    /// Accepts nothing but the capsule of a legacy tensor.
    TakesCapsule,
}

impl Library {
    /// The library of this name, imported if necessary.
    ///
    /// The name is that of a module, such as `"torch"`, or a dotted path in one. The path leads to an object with a function
    /// `from_dlpack`, or to the function itself, as `"onnxruntime.OrtValue.ortvalue_from_dlpack"` does. For `"jax"`, `"mlx"`
    /// and `"tensorflow"` the path is filled in.
    ///
    /// # Errors
    ///
    /// `ModuleNotFoundError` with what to install, `ImportError` if there is no such function, and whatever the library raises
    /// when it is imported.
    pub fn named(py: Python<'_>, name: &str) -> PyResult<Self> {
        let path = match name {
            "jax" => "jax.dlpack",
            "mlx" => "mlx.core",
            "tensorflow" => "tensorflow.experimental.dlpack",
            _ => name,
        };
        let pkgutil = py.import(intern!(py, "pkgutil"))?;
        let found = pkgutil.call_method1(intern!(py, "resolve_name"), (path,));
        let found = found.map_err(|error| unresolved_error(py, path, error))?;
        let function = found.getattr_opt(intern!(py, "from_dlpack"))?;
        let function = function.or_else(|| found.is_callable().then_some(found));
        let function = function.ok_or_else(|| {
            fail!(py, PyImportError:
                "`{path}` has no function `from_dlpack`, nor is it one; name the module that has it, as `jax.dlpack`")
            .take_exception(py)
        })?;
        let kind = match path {
            "numpy" => LibraryKind::Numpy,
            "torch" => LibraryKind::Torch,
            _ if path.starts_with("tensorflow.") => LibraryKind::TakesCapsule,
            _ => LibraryKind::Usual,
        };
        let function = function.unbind();
        Ok(Self { function, kind })
    }

    /// The library of a module, if it has a function `from_dlpack`.
    pub(crate) fn of_module(module: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let function = module.getattr_opt(intern!(module.py(), "from_dlpack"))?;
        Ok(function
            .filter(|found| found.is_callable())
            .map(|found| Self {
                function: found.unbind(),
                kind: LibraryKind::Usual,
            }))
    }

    /// Whether the library is NumPy.
    pub(crate) fn is_numpy(&self) -> bool {
        self.kind == LibraryKind::Numpy
    }

    /// Whether the library is PyTorch.
    pub(crate) fn is_torch(&self) -> bool {
        self.kind == LibraryKind::Torch
    }

    /// Creates an array of the library from an object that exports a tensor.
    pub(crate) fn create_array<'py>(
        &self,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = self.function.bind(object.py());
        if self.kind == LibraryKind::TakesCapsule {
            let capsule = object.call_method0(intern!(object.py(), "__dlpack__"))?;
            return values::call_one(function, capsule);
        }
        values::call_one(function, object.clone())
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Library {
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const INPUT_TYPE: pyo3::inspect::PyStaticExpr = crate::hints::LIBRARY;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        if let Ok(name) = object.cast::<PyString>() {
            return Self::named(py, &name.to_cow()?);
        }
        match object.cast::<PyModule>() {
            Ok(module) => Self::named(py, &module.name()?.to_cow()?),
            Err(_) => {
                let class = object.get_type();
                Err(fail!(py, PyTypeError: "expected a library, as a name such as `\"torch\"` or a module, found {class}").take_exception(py))
            }
        }
    }
}

/// The error for a path that cannot be resolved.
#[cold]
fn unresolved_error(py: Python<'_>, path: &str, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyAttributeError>(py) {
        let told = fail!(py, PyImportError: "there is no `{path}`: {error}").take_exception(py);
        told.set_cause(py, Some(error));
        return told;
    }
    let root = path.split('.').next().unwrap_or(path);
    let why = format!("an array of {root} was asked for");
    not_installed(py, error, root, &why)
}

/// A library that this crate refers to by name, looked up once.
pub(crate) struct KnownLibrary(&'static str, PyOnceLock<Library>);

impl KnownLibrary {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self(name, PyOnceLock::new())
    }

    /// Imports the library on the first call.
    ///
    /// The thread that imports holds no lock of ours: a child that was forked meanwhile would wait for it for ever.
    pub(crate) fn import_once(&self, py: Python<'_>) -> PyResult<&Library> {
        if let Some(library) = self.1.get(py) {
            return Ok(library);
        }
        let library = Library::named(py, self.0)?;
        Ok(self.1.get_or_init(py, || library))
    }
}

pub(crate) static TORCH: KnownLibrary = KnownLibrary::new("torch");
pub(crate) static JAX: KnownLibrary = KnownLibrary::new("jax");
pub(crate) static CUPY: KnownLibrary = KnownLibrary::new("cupy");
