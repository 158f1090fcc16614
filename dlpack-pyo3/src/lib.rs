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
//! `numpy.from_dlpack(Image(4, 4))`, `torch.from_dlpack(..)`, `jax.dlpack.from_dlpack(..)` and the others
//! then look at the pixels where they are. So does whatever asks for an array without a word of DLPack, as `numpy.asarray(..)`,
//! `numpy.mean(..)`, `matplotlib`, `pandas` and `scikit-learn` do, and `memoryview(..)`.
//!
//! # A new project
//!
//! `template` in the repository is one with a class, a function, tests in Python, and wheels for Linux, macOS and Windows:
//!
//! ```text
//! cargo generate https://github.com/dlpack-derive/dlpack-derive template --name my-arrays
//! ```
//!
//! # What holds what
//!
//! An export keeps the object alive, and borrowed in PyO3's sense, until the consumer is done:
//!
//! | class | held | meanwhile |
//! |---|---|---|
//! | `frozen` | the object | everything works |
//! | other | the object and a shared borrow | `&mut self` methods raise "Already borrowed" |
//! | with `writable` over plain memory | the object and the exclusive borrow | everything else raises |
//! | with an `owner` field, or `tensor(owner)` | a clone of that field | everything works; the deleter needs no interpreter |
//!
//! `numpy.asarray(obj)` and `memoryview(obj)` are exports as every other, and hold as much: of a class with `writable` over plain
//! memory there is one at a time. Data on a device is a `TypeError` there, which says what to call instead.
//!
//! What others can still reach is exported read-only; [`SharedBuffer`] is the memory that both sides may write.
//! A consumer may ignore that flag: PyTorch does. Hand out copies or a `SharedBuffer` where that matters.
//!
//! An array keeps its object, and the garbage collector cannot see that it does: `x.me = numpy.from_dlpack(x)` is a cycle that
//! is never freed. This and the rest of the argument is told in [`soundness`].
//!
//! So a class whose methods write while arrays over it live, as a simulation's do, keeps its data in a `SharedBuffer`
//! behind `#[dlpack(data, owner)]`, or several behind `#[dlpack(tensor(owner))]`. Where a method may fail instead, [`borrow_mut_or_buffer_error`] says why.
//!
//! The consumer's last use may end on any thread, with the interpreter's lock or without, after an exception or after
//! the interpreter: the object is given back, or left alone where there is nobody to give it to. (A module in a
//! sub-interpreter of CPython 3.11 or older is the one exception: CPython cannot say there which interpreter to
//! attach to, and PyO3 does not refuse to load.)
//!
//! # Memory of GPUs
//!
//! Work on memory of CUDA and ROCm is ordered as the consumer asks: its `stream` waits for the key `stream`, and the
//! memory is freed behind the consumer's work. Whoever has to wait on the processor lets go of Python meanwhile, in
//! `__dlpack__` and in the deleter. (With the stable ABI nobody can tell before Python 3.12 that the thread on which a
//! consumer calls the deleter is attached: there Python waits too.) [`from_dlpack`] names the default stream, so that
//! what it gives may be used in work on that stream.
//!
//! A consumer may still be at work when it lets go of an array. Such memory waits, and is freed by a later export;
//! [`functions::collect`] is for users who want it back at once, in Python.
//!
//! # Arrays as arguments
//!
//! | argument | what it takes |
//! |---|---|
//! | [`View<f32, 2>`](View), [`ViewMut<f32, 2>`](ViewMut) | an array of that type and rank, where it lies, to read or to write |
//! | [`Imported<Points>`](Imported) | what becomes a value of yours, by [`FromDLPack`](macro@FromDLPack) |
//! | `DeviceView<f32, 2>`, `DeviceViewMut<f32, 2>` | with the feature `cudarc`: the same on a GPU, as a `CudaView` on a stream |
//! | [`Tensor`] | any tensor, on any device; in Python `tensor[1:, ::2]` is a part of it |
//!
//! Each takes arrays of every library.
//!
//! # Arrays as results
//!
//! | result | what Python gets |
//! |---|---|
//! | [`Numpy<T>`](Numpy), [`Torch<T>`](Torch), [`Jax<T>`](Jax), [`Cupy<T>`](Cupy) | an array of that library |
//! | [`Exported<T>`](Exported) | a [`Tensor`], which is one of no library in particular |
//! | what [`Library::array`] gives | an array of the library that somebody names at run time |
//!
//! Each takes any [`DLPack`](trait@DLPack) value, such as a `Vec<f32>`, and nothing is copied.
//!
//! # Errors
//!
//! In a function that returns [`PyResult`](pyo3::PyResult), `?` makes an exception of an [`Error`]: a `BufferError`, as consumers
//! expect, a `ValueError` for a stream that makes no sense, an `IndexError` for an index out of range, and for no memory a
//! `MemoryError`; never a `TypeError`, upon which consumers ask again for less.
//!
//! # Type stubs
//!
//! maturin writes them, with the help of PyO3 0.30 or newer. Give your package a feature for it:
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
//! They have the methods of each class, an attribute for each tensor and column with what `///` say of its field, and types
//! of all arguments: whatever has `__dlpack__`, or a buffer. Four things to know:
//!
//! - The module is a `mod` with `#[pymodule]`, and has `#[pymodule_export] use dlpack_pyo3::Tensor;`. Then Python names that
//!   class in annotations and in `isinstance`. Without it, attributes and arguments are `Any`.
//! - Rows of `columns` derive [`Record`](macro@Record) in the crate of the class. Where its methods stand, they go by the name
//!   that the field says: `Vec<Trade>` needs `Trade` in scope, not `type Trades = Vec<Trade>`.
//! - `#[dlpack_pymethods]` looks for the derives of this crate: a class whose [`DLPack`] is written by hand has a [`Protocol`],
//!   and no class is a record besides.
//! - A tensor with a `#[pyo3(get)]` beside it would be there twice: write a `#[getter]` for it.
//!
//! What runs is the same as without the feature, but compiling takes longer.
//!
//! # Other processes
//!
//! A [`Tensor`] is pickled and copied, and so is a class that asks for it: `#[dlpack_pymethods(pickle)]`. Pickle has to find
//! `Tensor` in a module, so export it from yours: `#[pymodule_export] use dlpack_pyo3::Tensor;`.
//!
//! | sent by | its memory there |
//! |---|---|
//! | `pickle` with protocol 5 and a `buffer_callback` | the same: nothing is copied |
//! | `pickle` without, `multiprocessing`, `joblib`, a `DataLoader` with spawned workers | a copy |
//! | a process that was forked, of what was there before | as all of its memory: the same until one of the two writes |
//! | `copy.copy`, `copy.deepcopy` | a copy |
//!
//! What is strided is packed, what lies on a device comes to the host, and what is read-only is so again; a `copy` may be
//! written.
//!
//! # Attributes that are set
//!
//! With `#[dlpack(tensor(set))]` on a field, `obj.mask = array` puts the elements of any library's array into it: a `Vec` copies
//! them, a [`SharedBuffer`] adopts the memory. Data type, rank and fixed extents have to fit. While an array over data of
//! the object lives it is a `BufferError`, unless the field of that says `owner`.
//!
//! # The rest of the crate
//!
//! Everything of `dlpack-core` is re-exported, so one dependency is enough. [`Protocol`] adds the methods to a class without
//! a macro.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `cudarc` | classes over `CudaSlice` and the other memory of `cudarc`, with its device and its stream; arrays on a GPU as arguments: `view::DeviceView` |
//! | `stubs` | what maturin needs to write [type stubs](#type-stubs), by PyO3's `experimental-inspect` |
//! | `half`, `num-complex`, `microfloat`, `glam`, `nalgebra`, `ndarray`, `image` | what they add to `dlpack-core` |
#![cfg_attr(docsrs, feature(doc_cfg))]

// The macros name the crate from outside, and are used inside it too.
extern crate self as dlpack_pyo3;

mod class;
mod error;
mod exchange;
mod export;
pub mod functions;
mod hidden;
#[cfg(feature = "stubs")]
mod hints;
mod hold;
pub mod import;
mod inspect;
mod library;
mod private;
mod results;
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
/// Gives a class that derives [`DLPack`](macro@DLPack) its methods; it stands above `#[pymethods]`.
///
/// A class that is a tensor gets `__dlpack__`, `__dlpack_device__` and DLPack's C exchange table, and `__array__` and
/// Python's buffer protocol, for `numpy.asarray(obj)` and `memoryview(obj)`; and every class an attribute for each `tensor`
/// and column. A block of its own will do: `#[dlpack_pymethods] #[pymethods] impl Image {}`.
///
/// | option | adds |
/// |---|---|
/// | `arrays = "numpy"` | the attributes are arrays of that library, by its `from_dlpack`, each access a new one over the same memory: `"torch"`, `"jax"`, `"cupy"`, any [`Library`] |
/// | `pickle` | `__reduce_ex__` and `__dlpack_restore__`: objects are pickled and copied as their tensor, so the class derives [`FromDLPack`](macro@FromDLPack) too. What that fills by `Default` is not carried |
/// | `iterable` | `__iter__` and `__len__`: `for part in obj` gives a [`Tensor`] for each index of the first axis, and `len(obj)` is its length; pandas takes such an object for an array. One without items is false then, as a list is |
/// | `info` | `__dlpack_info__` and the keyword `version`, from a draft of DLPack that few have read |
/// | `crate = path` | where this crate is, if not at `::dlpack_pyo3` |
///
/// What `///` say of a field is the text of its attribute in Python.
///
/// A `&self` or `&mut self` method of the block that cannot borrow its object raises what PyO3 raises, "Already borrowed",
/// and says that an array over the object is alive and what to do about it. (A block with a `#[pyo3(crate = "..")]` of its
/// own goes without.)
///
/// An attribute that the class has under the name of a tensor already, such as a `#[pyo3(get)]`, stays as it is; and so do
/// an `__array__`, an `__iter__`, a `__len__` and a `__getbuffer__`.
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
pub use hold::borrowing::{borrow_mut_or_buffer_error, borrow_or_buffer_error};
pub use import::{Imported, from_dlpack, from_dlpack_with};
pub use inspect::inspect;
pub use library::function::Library;
pub use results::{Cupy, Exported, Jax, Numpy, Torch};
#[cfg(feature = "cudarc")]
pub use view::{DeviceView, DeviceViewDyn, DeviceViewMut, DeviceViewMutDyn};
pub use view::{View, ViewDyn, ViewMut, ViewMutDyn};
