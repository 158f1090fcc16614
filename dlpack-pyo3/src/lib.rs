//! PyO3 classes that every array library in Python reads without a copy.
//!
//! Derive [`DLPack`](macro@DLPack) on a class, mark the field that holds the elements and the one that holds
//! the shape, and write [`#[dlpack_pymethods]`](macro@dlpack_pymethods) above its `#[pymethods]`.
//!
//! ```no_run,standalone_crate
//! use dlpack_pyo3::{DLPack, dlpack_pymethods};
//! use pyo3::prelude::*;
//!
//! #[pyclass(frozen)]
//! #[derive(DLPack)]
//! struct Image {
//!     #[dlpack(data)]
//!     pixels: Vec<f32>,
//!     #[dlpack(shape)]
//!     dims: [usize; 3],
//! }
//!
//! #[dlpack_pymethods]
//! #[pymethods]
//! impl Image {
//!     #[new]
//!     fn new(height: usize, width: usize) -> Self {
//!         let dims = [height, width, 3];
//!         Self { pixels: vec![0.5; height * width * 3], dims }
//!     }
//! }
//! ```
//!
//! `numpy.from_dlpack(Image(4, 4))`, `torch.from_dlpack(..)`, `jax.dlpack.from_dlpack(..)` and other consumers
//! then read the pixels in place. So do functions that do not use DLPack: `numpy.asarray(..)`,
//! `numpy.mean(..)`, `matplotlib`, `pandas`, `scikit-learn` and `memoryview(..)`.
//!
//! # A new project
//!
//! `template` in the repository has a class, a function, tests in Python, and a workflow that builds wheels for Linux, macOS and Windows:
//!
//! ```text
//! cargo generate https://github.com/dlpack-derive/dlpack-derive template --name my-arrays
//! ```
//!
//! # Ownership
//!
//! An export keeps the object alive, and borrowed in PyO3's sense, until the consumer is done:
//!
//! | class | an export holds | while it lives |
//! |---|---|---|
//! | `frozen` | the object | all methods work |
//! | other | the object and a shared borrow | `&mut self` methods raise "Already borrowed" |
//! | with `writable` over plain memory | the object and the exclusive borrow | every other use raises |
//! | with an `owner` field, or `tensor(owner)` | a clone of that field | all methods work; the deleter needs no interpreter |
//!
//! `numpy.asarray(obj)` and `memoryview(obj)` are exports too, and hold the same. A class with `writable` over plain
//! memory has one export at a time. For data on a device `asarray` raises a `TypeError` that says what to call
//! instead, and `memoryview` a `BufferError`.
//!
//! Memory that Rust code can still reach is exported read-only; both sides may write a [`SharedBuffer`].
//! A consumer may ignore the read-only flag: PyTorch does. Give it a copy or a `SharedBuffer`.
//!
//! An array keeps its object alive, and the garbage collector cannot see that: `x.me = numpy.from_dlpack(x)` is a cycle that
//! is never freed. (It does see a `memoryview`.) [`soundness`] explains this and the rest of the argument.
//!
//! If methods of a class write while arrays over it live, as those of a simulation do, keep its data in a `SharedBuffer`
//! with `#[dlpack(data, owner)]`, or in several with `#[dlpack(tensor(owner))]`. If a method may fail instead,
//! [`borrow_mut_or_buffer_error`] raises a `BufferError`.
//!
//! A consumer may release an array on any thread, attached to the interpreter or not, after an exception, or after
//! interpreter shutdown: the object is released, or leaked if the interpreter is gone. In a sub-interpreter
//! the first class or import raises `ImportError`, if CPython loads the module there at all.
//!
//! # Memory of GPUs
//!
//! Work on CUDA and ROCm memory is ordered as the consumer requests: its `stream` waits for the key `stream`, and the
//! memory is freed after the consumer's work. When the host has to wait, in
//! `__dlpack__` or in the deleter, other Python threads run. (With the stable ABI before Python 3.12 only if Python has `ctypes`; without it, a
//! deleter cannot find out whether its thread is attached.) [`from_dlpack`] passes the default stream, so you may use
//! the tensor in work on that stream.
//!
//! All this is the default feature `streams`. A module for host memory is smaller without it:
//! `dlpack-pyo3 = { version = "0.1", default-features = false }`. Its exports of GPU memory raise `BufferError`.
//!
//! Kernels of a consumer may still run when it drops an array. A background thread frees such memory when they have
//! finished, if their end is known; [`functions::collect`] frees it now, from Python.
//!
//! # Arrays as arguments
//!
//! | argument | accepts |
//! |---|---|
//! | [`View<f32, 2>`](View), [`ViewMut<f32, 2>`](ViewMut) | an array of that type and rank, in place, to read or to write |
//! | [`Imported<Points>`](Imported) | any array that can be converted to your type, by [`FromDLPack`](macro@FromDLPack) |
//! | `DeviceView<f32, 2>`, `DeviceViewMut<f32, 2>` | with the feature `cudarc`: an array on a GPU, as a `CudaView` on a stream |
//! | [`Prototype<View<f32, 2>>`](Prototype) | what the type in it accepts; a [`Like`] result is then an array of the same library |
//! | [`Tensor`] | any tensor, on any device; in Python `tensor[1:, ::2]` is a slice of it |
//!
//! Each accepts arrays of every library.
//!
//! # Arrays as results
//!
//! | result | Python gets |
//! |---|---|
//! | [`Numpy<T>`](Numpy), [`Torch<T>`](Torch), [`Jax<T>`](Jax), [`Cupy<T>`](Cupy) | an array of that library |
//! | [`Like<T>`](Like) | an array of the library that an argument is of, the [`Prototype`] |
//! | [`Exported<T>`](Exported) | a [`Tensor`], which belongs to no library |
//! | the return value of [`Library::array`] | an array of the library that the caller names at run time |
//!
//! Each wraps any [`DLPack`](trait@DLPack) value, such as a `Vec<f32>`; nothing is copied. `Numpy::shaped(vec, [2, 3])` gives a
//! [buffer](Buffer) a shape.
//!
//! # Errors
//!
//! In a function that returns [`PyResult`](pyo3::PyResult), `?` turns an [`Error`] into an exception: a `BufferError`, as consumers
//! expect, a `ValueError` for an invalid stream, an `IndexError` for an index out of range, a `RuntimeError` for
//! incompatible extension modules, a `MemoryError` if memory runs out. It is never a `TypeError`, because consumers
//! repeat a request with fewer arguments after one.
//!
//! # Type stubs
//!
//! maturin writes type stubs, with PyO3 0.30 or newer. Add a feature to your package:
//!
//! ```toml
//! [features]
//! stubs = ["dlpack-pyo3/stubs"]
//! ```
//! ```text
//! maturin build --generate-stubs --features stubs       # or develop; the wheel has them
//! maturin generate-stubs --features stubs --out python  # or to look at them
//! ```
//!
//! The stubs contain the methods of each class, an attribute for each tensor and column with the `///` comment of its field, and the types
//! of all arguments: objects with `__dlpack__` or a buffer. Requirements:
//!
//! - Write the module as a `mod` with `#[pymodule]`, with `#[pymodule_export] use dlpack_pyo3::Tensor;` in it, so that annotations and
//!   `isinstance` can name that class. Without it, attributes and arguments are `Any`.
//! - Define the [`Record`](macro@Record) of `columns` in the crate of the class. The name in the field must be in scope
//!   at the methods: `Vec<Trade>` needs `Trade`, not `type Trades = Vec<Trade>`. A type of yours that derefs to records names them too:
//!   `Mapped<Trade>`.
//! - Do not name an argument by a keyword of Python, such as `from`.
//! - `#[dlpack_pymethods]` looks for the derives of this crate: use [`Protocol`] for a class whose [`DLPack`] is written by hand,
//!   and do not make a class a record as well.
//! - A field with `#[pyo3(get)]` cannot be a tensor of the same name: remove `get`, or name the tensor by `tensor(name = "..")`.
//!
//! The feature does not change the code that runs, but compiling takes longer.
//!
//! # Other processes
//!
//! A [`Tensor`] can be pickled and copied, and so can a class with `#[dlpack_pymethods(pickle)]`. Pickle has to find
//! `Tensor` in a module, so export it from yours: `#[pymodule_export] use dlpack_pyo3::Tensor;`.
//!
//! | sent by | memory in the other process |
//! |---|---|
//! | `pickle` with protocol 5 and a `buffer_callback` | the same: nothing is copied |
//! | `pickle` without it, `multiprocessing`, `joblib`, a `DataLoader` with spawned workers | a copy |
//! | `fork`, for existing objects | shared copy-on-write, like all memory |
//! | `copy.copy`, `copy.deepcopy` | a copy |
//!
//! Strided tensors become C-contiguous, device memory is copied to the host, and read-only tensors stay read-only; a `copy` is
//! writable. A class with `readonly` over a `SharedBuffer`, to which Rust code writes, is always copied.
//!
//! # Attributes that are set
//!
//! With `#[dlpack(tensor(set))]` on a field, `obj.mask = array` stores the elements of any library's array in it: a `Vec` copies
//! them, a [`SharedBuffer`] adopts the memory. Data type, rank and fixed sizes must fit. While an array over data of
//! the object lives the assignment raises `BufferError`, unless the field of that array has `owner`.
//!
//! # The rest of the crate
//!
//! All of `dlpack-core` is re-exported, so one dependency is enough. [`Protocol`] adds the methods to a class without
//! a macro.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `cudarc` | classes over `CudaSlice` and the other memory of `cudarc`, with its device and its stream; arrays on a GPU as arguments: `view::DeviceView` |
//! | `streams` (default) | work on GPUs: drivers, stream order, copies of device memory |
//! | `stubs` | what maturin needs to write [type stubs](#type-stubs), by PyO3's `experimental-inspect` |
//! | `half`, `num-complex`, `microfloat`, `glam`, `nalgebra`, `ndarray`, `image` | what they add to `dlpack-core` |
#![cfg_attr(docsrs, feature(doc_cfg))]

// The macros name the crate from outside, and are used inside it too.
extern crate self as dlpack_pyo3;

mod capi;
mod class;
mod error;
mod exchange;
mod export;
#[cfg(feature = "streams")]
pub mod functions;
mod handover;
#[cfg(feature = "stubs")]
mod hints;
pub mod import;
mod inspect;
mod keepalive;
mod lender;
mod library;
mod private;
mod results;
mod sync;
mod values;
pub mod view;
mod vtable;

/// Named by the patch version, which the derive of the same release writes.
#[doc(hidden)]
pub mod __private0 {
    pub use crate::private::*;
}
const _: () = assert!(
    matches!(env!("CARGO_PKG_VERSION_PATCH").as_bytes(), b"0"),
    "`__private0` is named by the patch version"
);

pub use class::tensor::Tensor;
pub use class::{Protocol, TensorNames};
pub use dlpack_core;
pub use dlpack_core::*;
/// Adds the methods of DLPack to a class that derives [`DLPack`](macro@DLPack). Put it directly above `#[pymethods]`.
///
/// A class that is a tensor gets `__dlpack__`, `__dlpack_device__` and DLPack's C exchange table, and `__array__` and
/// Python's buffer protocol, for `numpy.asarray(obj)` and `memoryview(obj)`. Every class gets an attribute for each `tensor`
/// and column. An empty block is enough: `#[dlpack_pymethods] #[pymethods] impl Image {}`.
///
/// | option | adds |
/// |---|---|
/// | `arrays = "numpy"` | the attributes are arrays of that library, made by its `from_dlpack`; each access makes a new one over the same memory. Also `"torch"`, `"jax"`, `"cupy"`, any [`Library`] |
/// | `pickle` | `__reduce_ex__` and `__dlpack_restore__`: objects are pickled and copied as their tensor, so the class must derive [`FromDLPack`](macro@FromDLPack) too. Fields that it fills by `Default` are not preserved, and a variant of an enum is refused if it would be restored as another one |
/// | `iterable` | `__iter__` and `__len__`: `for part in obj` yields a [`Tensor`] for each index of the first axis, and `len(obj)` is its size (not for an enum with tuple variants, to which PyO3 gives a `__len__` of its own); pandas accepts such an object as an array. Empty objects become falsy, like empty lists |
/// | `info` | `__dlpack_info__` and the keyword `version`, from a draft of DLPack that few libraries implement |
/// | `crate = path` | where this crate is, if not at `::dlpack_pyo3` |
///
/// The `///` comment of a field is the text of its attribute in Python.
///
/// A `&self` or `&mut self` method of the block that cannot borrow its object raises PyO3's "Already borrowed",
/// with the additional text that an array over the object is alive, and what to do. (Not in a block with a `#[pyo3(crate = "..")]` of its
/// own.)
///
/// A class may not have another attribute with the name of a tensor: a `#[getter]` or `#[setter]` in the block is a compile error.
/// With one by `#[pyo3(get)]`, `#[pyo3(set)]`, `get_all`, `set_all` or another block, the module cannot be imported: Python raises a
/// `RuntimeError`, and the `AttributeError` at the end of its chain of causes names the attribute. Your own `__array__`,
/// `__iter__`, `__len__` and `__getbuffer__` stay.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{DLPack, dlpack_pymethods};
/// use pyo3::prelude::*;
///
/// #[pyclass]
/// #[derive(DLPack)]
/// struct Batch {
///     #[dlpack(tensor(shape = [_, 4]))]
///     observations: Vec<f32>,
///     #[dlpack(tensor)]
///     rewards: Vec<f64>,
/// }
///
/// #[dlpack_pymethods]
/// #[pymethods]
/// impl Batch {
///     /// Raises "Already borrowed" while an array over a reward lives, as the vectors would move.
///     fn push(&mut self, observation: [f32; 4], reward: f64) {
///         self.observations.extend(observation);
///         self.rewards.push(reward);
///     }
/// }
/// ```
pub use dlpack_derive::dlpack_pymethods;
#[doc(inline)]
pub use dlpack_derive::{
    PyDLPack as DLPack, PyElement as Element, PyFromDLPack as FromDLPack, PyRecord as Record,
};
pub use import::{Imported, from_dlpack, from_dlpack_with};
pub use inspect::inspect;
pub use keepalive::borrowing::{borrow_mut_or_buffer_error, borrow_or_buffer_error};
pub use library::function::Library;
pub use results::{Cupy, Exported, Jax, Like, Numpy, Prototype, Records, Torch};
pub use view::{
    AsBytes, Contiguous, Convert, MayOverlap, Promise, View, ViewDyn, ViewMut, ViewMutDyn,
};
#[cfg(feature = "cudarc")]
pub use view::{DeviceView, DeviceViewDyn, DeviceViewMut, DeviceViewMutDyn};
