//! Results of functions: any value that implements `DLPack`, as a `Tensor` or as an array of a library.

/// A function for each kind of result.
#[pyo3::pymodule(submodule)]
pub(crate) mod libraries {
    use dlpack_pyo3::{
        Cupy, DLPack, Error, Exported, Jax, Library, Managed, SharedBuffer, Torch, from_dlpack,
    };
    use ndarray::{Array2, ArrayD};
    use pyo3::prelude::*;

    use crate::alive::Alive;

    /// Numbers in memory that is aligned as JAX requires for sharing.
    fn aligned(len: u16) -> Result<SharedBuffer<f32>, Error> {
        let numbers: Vec<f32> = (0..len).map(f32::from).collect();
        SharedBuffer::copied_from(&numbers)
    }

    /// A tensor type that is no Python class.
    #[derive(DLPack)]
    struct Points {
        #[dlpack(data)]
        values: Vec<f32>,
        #[dlpack(shape)]
        dims: [usize; 2],
        _alive: Alive,
    }

    impl Points {
        fn new(values: Vec<f32>, dims: [usize; 2]) -> Self {
            let _alive = Alive::new();
            Self {
                values,
                dims,
                _alive,
            }
        }
    }

    #[pyfunction]
    fn vector(numbers: Vec<f32>) -> Exported<Vec<f32>> {
        Exported(numbers)
    }

    #[pyfunction]
    fn matrix(rows: usize, columns: usize) -> Exported<Array2<f64>> {
        let number = |(row, column)| (10 * row + column) as f64;
        Exported(Array2::from_shape_fn((rows, columns), number))
    }

    /// The shape may not fit the values.
    #[pyfunction]
    fn points(values: Vec<f32>, dims: [usize; 2]) -> Exported<Points> {
        Exported(Points::new(values, dims))
    }

    #[pyfunction]
    fn managed(object: &Bound<'_, PyAny>) -> PyResult<Exported<Managed>> {
        from_dlpack(object).map(Exported)
    }

    #[pyfunction]
    fn torch(values: Vec<f32>, dims: [usize; 2]) -> Torch<Points> {
        Torch(Points::new(values, dims))
    }

    #[pyfunction]
    fn torch_of(object: &Bound<'_, PyAny>) -> PyResult<Torch<Managed>> {
        from_dlpack(object).map(Torch)
    }

    #[pyfunction]
    fn jax(len: u16) -> PyResult<Jax<SharedBuffer<f32>>> {
        Ok(Jax(aligned(len)?))
    }

    #[pyfunction]
    fn cupy(numbers: Vec<f32>) -> Cupy<Vec<f32>> {
        Cupy(numbers)
    }

    #[pyfunction]
    fn array(library: Library, shape: Vec<usize>, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let ones = ArrayD::<f32>::ones(shape);
        library.array(py, ones)
    }
}
