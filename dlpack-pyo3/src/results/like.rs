//! Results in the library of an argument: `Prototype` remembers the library, `Like` is the result.
//!
//! | argument | how the result is created |
//! |---|---|
//! | a NumPy array | by NumPy's C API, as by [`Numpy`](crate::Numpy) |
//! | an object of a class with `#[dlpack_pymethods]`, or a [`Tensor`] | as a [`Tensor`] |
//! | an object of a class with an exchange table, such as PyTorch's | by the table |
//! | an array of another library | by the library's `from_dlpack` |

use core::ops::{Deref, DerefMut};

use dlpack_core::array::Rank;
use dlpack_core::element::Plain;
use dlpack_core::layout::Dims;
use dlpack_core::{DLPack, DataType, Error, Managed, Shaped};
use pyo3::prelude::*;

use crate::class::{arrays::array_of_tensor, tensor::Tensor};
use crate::error::OrRaise;
use crate::exchange::foreign::ForeignTable;
use crate::exchange::lookup::table_of_class;
use crate::library::{numpy, origin::Origin};
use crate::results::new_tensor::NewTensor;
use crate::view::{InPlace, ViewMut};

/// How arrays of one library are created.
#[derive(Clone, Debug)]
enum ArrayLibrary {
    Table(ForeignTable),
    Function(Origin),
    /// This crate's own class.
    Tensor,
}

impl ArrayLibrary {
    /// The library of an object.
    #[inline]
    fn of_object(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if numpy::is_exact_array(object) {
            return Ok(Self::Function(Origin::Numpy));
        }
        Self::of_other(object)
    }

    /// The library of an object that may be of any class.
    #[inline(never)]
    fn of_other(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Some(table) = table_of_class(&object.get_type()) {
            if table.device.is_some() {
                return Ok(Self::Tensor);
            }
            if let Some(table) = ForeignTable::new(table.api) {
                return Ok(Self::Table(table));
            }
        }
        Origin::of_array(object).map(Self::Function)
    }

    /// An array over a value, which it owns.
    #[inline]
    fn array_over_value<'py, T: DLPack + 'static>(
        &self,
        py: Python<'py>,
        value: T,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Self::Function(Origin::Numpy) = self {
            return numpy::array_over_value(py, value);
        }
        self.array_over_tensor(py, value.into_dlpack()?)
    }

    /// An array over a tensor, which it owns.
    fn array_over_tensor<'py>(
        &self,
        py: Python<'py>,
        tensor: Managed,
    ) -> PyResult<Bound<'py, PyAny>> {
        let library = match self {
            Self::Table(table) => return table.create_object(py, tensor),
            Self::Tensor => return Ok(Bound::new(py, Tensor::new(tensor))?.into_any()),
            Self::Function(Origin::Numpy) => return numpy::array_over_tensor(py, tensor),
            Self::Function(Origin::Known(library)) => library,
            Self::Function(Origin::Found(library)) => &**library,
        };
        array_of_tensor(py, library, tensor)
    }

    /// A new tensor in host memory: of the library's allocator if it has one, else of ours.
    fn allocate_tensor(&self, shape: &[i64], dtype: DataType) -> PyResult<NewTensor> {
        match self {
            Self::Table(table) if table.can_allocate() => {
                Python::attach(|py| NewTensor::of_library(py, table, shape, dtype))
            }
            _ => NewTensor::in_own_memory(shape, dtype),
        }
    }
}

/// An argument, and the array library of the object that it was extracted from, so that a result can be an array of that library.
/// `V` is a view or any other argument type; the prototype dereferences to it.
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{Like, Prototype, View};
/// use pyo3::prelude::*;
///
/// /// A torch tensor for a torch tensor, a NumPy array for a NumPy array.
/// #[pyfunction]
/// fn doubled(samples: Prototype<View<f32, 1>>) -> Like<Vec<f32>> {
///     let doubled = samples.iter().map(|sample| sample * 2.0).collect();
///     Like::new(&samples, doubled)
/// }
/// ```
///
/// The object itself is not kept alive. [`Like`] says which results are created for which objects.
#[derive(Clone, Debug)]
pub struct Prototype<V> {
    argument: V,
    library: ArrayLibrary,
}

impl<V> Prototype<V> {
    /// The argument alone.
    #[must_use]
    pub fn into_inner(self) -> V {
        self.argument
    }
}

impl<V> Deref for Prototype<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.argument
    }
}

impl<V> DerefMut for Prototype<V> {
    fn deref_mut(&mut self) -> &mut V {
        &mut self.argument
    }
}

impl<'a, 'py, V: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Prototype<V> {
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const INPUT_TYPE: pyo3::inspect::PyStaticExpr = crate::hints::SAME_TYPE;

    #[inline]
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let argument = V::extract(object).map_err(Into::into)?;
        let library = ArrayLibrary::of_object(&object)?;
        Ok(Self { argument, library })
    }
}

/// A result that is an array of the same library as an argument, the [`Prototype`].
///
/// ```no_run,standalone_crate
/// use dlpack_pyo3::{Like, Prototype, View, ViewMut};
/// use pyo3::prelude::*;
///
/// /// In memory of the library's own, if it has an allocator, as PyTorch has.
/// #[pyfunction]
/// fn transposed(a: Prototype<View<f64, 2>>) -> PyResult<Like<ViewMut<f64, 2>>> {
///     let [rows, columns] = a.shape();
///     let mut result = Like::zeros(&a, [columns, rows])?;
///     result.copy_from(&a.transpose())?;
///     Ok(result)
/// }
/// ```
///
/// The value is any [`DLPack`] value, such as a `Vec`, or what [`Like::zeros`] returns. It is moved, not copied.
///
/// | the argument was | the result is |
/// |---|---|
/// | a NumPy array, also of a subclass | a `numpy.ndarray` |
/// | an object of a class with an exchange table, as PyTorch and PaddlePaddle have | what the table creates; for a subclass such as `torch.nn.Parameter` a plain `torch.Tensor` |
/// | a [`Tensor`], or an object of a class with `#[dlpack_pymethods]` | a [`Tensor`] |
/// | an array of another library, such as JAX | what the library's `from_dlpack` returns |
/// | an object of no array library, such as `bytes` or a list | a `numpy.ndarray` |
///
/// What [`Torch`](crate::Torch) and [`Jax`](crate::Jax) say of their libraries holds here too: PyTorch writes to read-only tensors, and JAX
/// copies memory that is not aligned to 64 bytes. Data on a GPU is ordered before the library's current stream.
///
/// Exceptions of the library are passed on.
#[derive(Clone, Debug)]
pub struct Like<T> {
    value: T,
    library: ArrayLibrary,
}

impl<T> Like<T> {
    /// A value that becomes an array of the prototype's library.
    #[must_use]
    pub fn new<V>(prototype: &Prototype<V>, value: T) -> Self {
        let library = prototype.library.clone();
        Self { value, library }
    }

    /// The value alone.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<B, S> Like<Shaped<B, S>> {
    /// A buffer with a shape, in row-major order, as by [`Numpy::shaped`](crate::Numpy::shaped).
    ///
    /// ```no_run,standalone_crate
    /// use dlpack_pyo3::{Like, Prototype, Shaped, View};
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn as_row(a: Prototype<View<f32, 1>>) -> PyResult<Like<Shaped<Vec<f32>, [usize; 2]>>> {
    ///     Ok(Like::shaped(&a, a.to_vec()?, [1, a.len()]))
    /// }
    /// ```
    #[must_use]
    pub fn shaped<V>(prototype: &Prototype<V>, buffer: B, shape: S) -> Self {
        Self::new(prototype, Shaped::new(buffer, shape))
    }
}

impl<T: Plain, const N: usize, O: InPlace> Like<ViewMut<T, N, O>>
where
    [i64; N]: Rank,
{
    /// Zeros to be filled, on the CPU, row-major. If the prototype's library has an exchange table, its allocator allocates them.
    ///
    /// ```no_run,standalone_crate
    /// use dlpack_pyo3::{Like, Prototype, View, ViewMut};
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn squares(a: Prototype<View<f32, 1>>) -> PyResult<Like<ViewMut<f32, 1>>> {
    ///     let mut result = Like::zeros(&a, a.shape())?;
    ///     for (index, x) in a.iter().enumerate() {
    ///         result.set([index], x * x);
    ///     }
    ///     Ok(result)
    /// }
    /// ```
    ///
    /// The result derefs to an [`ArrayMut`](dlpack_core::array::ArrayMut). No other code can have the memory yet, but only the library
    /// says so. So elements are accessed as those of any [`ViewMut`]: `as_mut_slice` needs a [`Promise`](crate::Promise).
    ///
    /// # Errors
    ///
    /// The error that the allocator reports, such as `MemoryError`. `BufferError` if it returns other memory than was requested:
    /// another shape, data type or device, read-only memory, or the memory of an argument.
    pub fn zeros<V>(prototype: &Prototype<V>, shape: [usize; N]) -> PyResult<Self> {
        Self::from_new_tensor(prototype, shape, NewTensor::write_zeros)
    }

    /// An array of equal elements, in memory like that of [`Like::zeros`].
    ///
    /// ```no_run,standalone_crate
    /// use dlpack_pyo3::{Like, Prototype, View, ViewMut};
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn ones_like(a: Prototype<View<f32, 2>>) -> PyResult<Like<ViewMut<f32, 2>>> {
    ///     Like::full(&a, a.shape(), 1.0)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Like::zeros`].
    pub fn full<V>(prototype: &Prototype<V>, shape: [usize; N], element: T) -> PyResult<Self> {
        Self::from_new_tensor(prototype, shape, |tensor| tensor.fill_with(|| element))
    }

    /// An array of the elements that an iterator returns, in row-major order. They are written directly to memory like that of
    /// [`Like::zeros`].
    ///
    /// ```no_run,standalone_crate
    /// use dlpack_pyo3::{Like, Prototype, View, ViewMut};
    /// use pyo3::prelude::*;
    ///
    /// #[pyfunction]
    /// fn doubled(a: Prototype<View<f32, 2>>) -> PyResult<Like<ViewMut<f32, 2>>> {
    ///     Like::from_elements(&a, a.shape(), a.iter().map(|x| 2.0 * x))
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// `BufferError` if the iterator returns more or fewer elements than the shape has. Those of [`Like::zeros`].
    pub fn from_elements<V>(
        prototype: &Prototype<V>,
        shape: [usize; N],
        elements: impl IntoIterator<Item = T>,
    ) -> PyResult<Self> {
        let mut elements = elements.into_iter().fuse();
        let mut found = 0_usize;
        let array = Self::from_new_tensor(prototype, shape, |tensor| {
            let Some(mut next) = elements.next() else {
                return tensor.write_zeros();
            };
            found = 1;
            let next_element = || {
                let element = next;
                if let Some(element) = elements.next() {
                    next = element;
                    found += 1;
                }
                element
            };
            tensor.fill_with(next_element)
        })?;
        // To find the end, one element more than the shape has was read, if there is one.
        let found = found.saturating_add(elements.size_hint().0);
        let needed = array.len();
        if found != needed {
            return Err(Error::Count { found, needed }.into());
        }
        Ok(array)
    }

    /// Allocates a tensor, which `write` fills.
    fn from_new_tensor<V>(
        prototype: &Prototype<V>,
        shape: [usize; N],
        write: impl FnOnce(NewTensor) -> Result<ViewMut<T, N, O>, Error>,
    ) -> PyResult<Self> {
        let shape = full_shape::<T>(&shape)?;
        let library = prototype.library.clone();
        let value = write(library.allocate_tensor(&shape, T::DTYPE)?)?;
        Ok(Self { value, library })
    }
}

/// A shape with the axes of an element behind it.
fn full_shape<T: Plain>(shape: &[usize]) -> Result<Vec<i64>, Error> {
    let (leading, trailing) = (Dims::extents(shape)?, T::TRAILING);
    let rank = leading.len() + trailing.extents().len();
    let mut extents = Vec::new();
    let reserved = extents.try_reserve_exact(rank);
    reserved.map_err(|_| Error::OutOfMemory { bytes: 8 * rank })?;
    extents.extend_from_slice(&leading);
    extents.extend_from_slice(trailing.extents());
    Ok(extents)
}

impl<T> Deref for Like<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Like<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<'py, T: DLPack + 'static> IntoPyObject<'py> for Like<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr = crate::hints::SAME_TYPE;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        self.library.array_over_value(py, self.value)
    }
}

impl<'py, T: Plain, const N: usize, O: InPlace> IntoPyObject<'py> for Like<ViewMut<T, N, O>>
where
    [i64; N]: Rank,
{
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: pyo3::inspect::PyStaticExpr = crate::hints::SAME_TYPE;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let zeros = self.value.into_managed().or_fetch(py)?;
        self.library.array_over_tensor(py, zeros)
    }
}
