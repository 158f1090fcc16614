//! Results in the library of an argument.

/// Each function takes a `Prototype`.
#[pyo3::pymodule(submodule)]
pub(crate) mod like {
    use dlpack_pyo3::array::ArrayMut;
    use dlpack_pyo3::view::MayOverlap;
    use dlpack_pyo3::{
        Convert, DLPack, Like, Managed, Prototype, Shaped, SharedBuffer, View, ViewDyn, ViewMut,
        from_dlpack,
    };
    use pyo3::prelude::*;

    use crate::alive::Alive;
    use crate::viewed_bytes::Undisturbed;

    type Zeros<const N: usize> = Like<ViewMut<f32, N>>;

    /// A value that is counted while it lives.
    #[derive(DLPack)]
    struct Counted {
        #[dlpack(data)]
        items: Vec<f32>,
        _alive: Alive,
    }

    /// The numbers doubled, and the address of the first.
    #[pyfunction]
    fn doubled(a: Prototype<View<f32, 1>>) -> (Like<Counted>, usize) {
        let items: Vec<_> = a.iter().map(|number| number * 2.0).collect();
        let address = items.as_ptr().addr();
        let _alive = Alive::new();
        (Like::new(&a, Counted { items, _alive }), address)
    }

    /// The numbers in memory that is aligned as JAX requires.
    #[pyfunction]
    fn aligned(a: Prototype<ViewDyn<f32>>) -> PyResult<(Like<SharedBuffer<f32>>, usize)> {
        let buffer = SharedBuffer::copied_from(&a.to_vec()?)?;
        let address = buffer.as_ptr().addr();
        Ok((Like::new(&a, buffer), address))
    }

    #[pyfunction]
    fn as_row(a: Prototype<View<f32, 1>>) -> PyResult<Like<Shaped<Vec<f32>, [usize; 2]>>> {
        Ok(Like::shaped(&a, a.to_vec()?, [1, a.len()]))
    }

    /// The tensor of `other`, in the library of `a`.
    #[pyfunction]
    fn like_any(
        a: Prototype<Bound<'_, PyAny>>,
        other: &Bound<'_, PyAny>,
    ) -> PyResult<Like<Managed>> {
        Ok(Like::new(&a, from_dlpack(other)?))
    }

    /// The numbers of any argument that NumPy can convert.
    #[pyfunction]
    fn converted(a: Prototype<View<f64, 1, Convert>>) -> PyResult<Like<Vec<f64>>> {
        Ok(Like::new(&a, a.to_vec()?))
    }

    /// Two results, one of them zeros.
    #[pyfunction]
    fn pair(a: Prototype<View<f32, 1>>) -> PyResult<(Zeros<1>, Like<Vec<f32>>)> {
        Ok((Like::zeros(&a, [2])?, Like::new(&a, a.to_vec()?)))
    }

    #[pyfunction]
    fn zeros(a: Prototype<Bound<'_, PyAny>>, shape: [usize; 2]) -> PyResult<Zeros<2>> {
        Like::zeros(&a, shape)
    }

    #[pyfunction]
    fn full(
        a: Prototype<Bound<'_, PyAny>>,
        shape: [usize; 2],
        element: u8,
    ) -> PyResult<Like<ViewMut<[u8; 3], 2>>> {
        Like::full(&a, shape, [element, 2, 3])
    }

    /// Sevens, while the argument is a slice that nothing may change.
    #[pyfunction]
    fn fill_beside_slice(
        a: Prototype<View<f32, 2, Undisturbed>>,
        zeros: bool,
    ) -> PyResult<Zeros<2>> {
        let [rows, columns] = a.shape();
        let before = a.to_vec()?;
        let result = if zeros {
            Like::zeros(&a, [rows, columns])
        } else {
            Like::full(&a, [rows, columns], 7.0)
        };
        assert_eq!(a.as_slice()?, before);
        result
    }

    /// The numbers from 1 to `count`; without `exact`, from an iterator that does not say how many it has.
    #[pyfunction]
    fn from_elements(
        a: Prototype<Bound<'_, PyAny>>,
        shape: [usize; 2],
        count: u16,
        exact: bool,
    ) -> PyResult<Zeros<2>> {
        let numbers = (1..=count).map(f32::from);
        if exact {
            Like::from_elements(&a, shape, numbers)
        } else {
            Like::from_elements(&a, shape, numbers.filter(|_| true))
        }
    }

    /// Each element is its row and column; the memory is zeroed at first.
    #[pyfunction]
    fn table(a: Prototype<View<f32, 2>>) -> PyResult<(Zeros<2>, usize)> {
        let [rows, columns] = a.shape();
        let mut table = Like::zeros(&a, [rows, columns])?;
        assert!(table.iter().all(|number| number == 0.0), "zeros");
        assert!(table.is_contiguous(), "row-major");
        for row in 0..rows {
            for column in 0..columns {
                table.set([row, column], (10 * row + column) as f32);
            }
        }
        let address = table.as_ptr().addr();
        Ok((table, address))
    }

    /// Zeros of elements with several items.
    #[pyfunction]
    fn pixels(a: Prototype<Bound<'_, PyAny>>) -> PyResult<Like<ViewMut<[u8; 3], 2>>> {
        let mut pixels = Like::zeros(&a, [2, 2])?;
        pixels.set([1, 0], [1, 2, 3]);
        Ok(pixels)
    }

    #[pyfunction]
    fn flags(a: Prototype<Bound<'_, PyAny>>) -> PyResult<Like<ViewMut<bool, 1>>> {
        let mut flags = Like::zeros(&a, [3])?;
        flags.set([2], true);
        Ok(flags)
    }

    #[pyfunction]
    fn scalar(a: Prototype<Bound<'_, PyAny>>) -> PyResult<Like<ViewMut<f64, 0>>> {
        let mut scalar = Like::zeros(&a, [])?;
        scalar.set([], 4.5);
        Ok(scalar)
    }

    /// Allocates, fills, and drops zeros; returns the error of a slice.
    #[pyfunction]
    fn dropped(a: Prototype<Bound<'_, PyAny>>) -> PyResult<String> {
        let mut zeros: Like<ViewMut<f32, 1>> = Like::zeros(&a, [8])?;
        zeros.fill(1.0);
        let array: &mut ArrayMut<f32, [i64; 1]> = &mut zeros;
        let error = array.as_mut_slice().map(|_| ()).unwrap_err();
        Ok(error.to_string())
    }

    /// Allocates on a thread that is not attached, while this one is detached.
    #[pyfunction]
    fn in_background(
        py: Python<'_>,
        a: Prototype<View<f32, 2, MayOverlap>>,
    ) -> PyResult<Like<ViewMut<f32, 2, MayOverlap>>> {
        py.detach(|| {
            let fill = || {
                let mut zeros: Like<ViewMut<f32, 2, MayOverlap>> = Like::zeros(&a, [2, 2])?;
                zeros.fill(3.0);
                Ok(zeros)
            };
            std::thread::scope(|scope| scope.spawn(fill).join().expect("no panic"))
        })
    }
}
