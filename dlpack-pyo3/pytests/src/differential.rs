//! Typed views of every data type, which read and write an array by each of their methods. `campaign/differential.py` compares
//! the results with NumPy.

use dlpack_core::array::{Array, ArrayMut, Rank};
use dlpack_core::element::Plain;
use dlpack_core::layout::Dims;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A number or a `bool`, and its bytes.
pub(crate) trait Scalar: Plain {
    fn append_bytes(self, bytes: &mut Vec<u8>);
}

macro_rules! scalars {
    ($($scalar:ty: |$value:ident| $bits:expr;)*) => {$(
        impl Scalar for $scalar {
            fn append_bytes(self, bytes: &mut Vec<u8>) {
                let $value = self;
                bytes.extend_from_slice(&$bits);
            }
        }
    )*};
}

scalars! {
    bool: |value| [u8::from(value)];
    i8: |value| value.to_ne_bytes();
    i16: |value| value.to_ne_bytes();
    i32: |value| value.to_ne_bytes();
    i64: |value| value.to_ne_bytes();
    u8: |value| value.to_ne_bytes();
    u16: |value| value.to_ne_bytes();
    u32: |value| value.to_ne_bytes();
    u64: |value| value.to_ne_bytes();
    half::f16: |value| value.to_ne_bytes();
    half::bf16: |value| value.to_ne_bytes();
    f32: |value| value.to_ne_bytes();
    f64: |value| value.to_ne_bytes();
    num_complex::Complex<f32>: |value| [value.re.to_ne_bytes(), value.im.to_ne_bytes()].concat();
    num_complex::Complex<f64>: |value| [value.re.to_ne_bytes(), value.im.to_ne_bytes()].concat();
}

impl<T: Scalar> Scalar for [T; 3] {
    fn append_bytes(self, bytes: &mut Vec<u8>) {
        self.into_iter().for_each(|value| value.append_bytes(bytes));
    }
}

fn bytes_of<T: Scalar>(elements: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    elements
        .into_iter()
        .for_each(|element| element.append_bytes(&mut bytes));
    bytes
}

/// Methods that fixed ranks and `Dims` have with different signatures.
trait List: Rank {
    fn shape_of<T: Plain>(array: &Array<T, Self>) -> Vec<usize>;
    fn get<T: Plain>(array: &Array<T, Self>, index: &[usize]) -> Option<T>;
    fn at<T: Plain>(array: &Array<T, Self>, index: &[usize]) -> T;
    fn set<T: Plain>(array: &mut ArrayMut<T, Self>, index: &[usize], element: T);
}

impl List for Dims {
    fn shape_of<T: Plain>(array: &Array<T, Self>) -> Vec<usize> {
        let extents = array.shape().iter();
        extents
            .map(|&extent| usize::try_from(extent).expect("checked"))
            .collect()
    }

    fn get<T: Plain>(array: &Array<T, Self>, index: &[usize]) -> Option<T> {
        array.get(index)
    }

    fn at<T: Plain>(array: &Array<T, Self>, index: &[usize]) -> T {
        array.at(index)
    }

    fn set<T: Plain>(array: &mut ArrayMut<T, Self>, index: &[usize], element: T) {
        array.set(index, element);
    }
}

macro_rules! ranks {
    ($($rank:literal)*) => {$(
        impl List for [i64; $rank] {
            fn shape_of<T: Plain>(array: &Array<T, Self>) -> Vec<usize> {
                array.shape().to_vec()
            }

            fn get<T: Plain>(array: &Array<T, Self>, index: &[usize]) -> Option<T> {
                array.get(<[usize; $rank]>::try_from(index).expect("as many as axes"))
            }

            fn at<T: Plain>(array: &Array<T, Self>, index: &[usize]) -> T {
                array.at(<[usize; $rank]>::try_from(index).expect("as many as axes"))
            }

            fn set<T: Plain>(array: &mut ArrayMut<T, Self>, index: &[usize], element: T) {
                array.set(<[usize; $rank]>::try_from(index).expect("as many as axes"), element);
            }
        }
    )*};
}

ranks! { 1 2 3 }

/// Every index of an array of this shape, the last axis fastest.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut found = vec![vec![]];
    for &extent in shape {
        let longer = |index: Vec<usize>| {
            (0..extent).map(move |at| {
                let mut index = index.clone();
                index.push(at);
                index
            })
        };
        found = found.into_iter().flat_map(longer).collect();
    }
    found
}

fn unknown(method: &str) -> PyErr {
    PyValueError::new_err(format!("no method `{method}`"))
}

/// Reads the elements by `method`; `numbers` are its arguments.
fn read_elements<T: Scalar, L: List>(
    array: &Array<T, L>,
    method: &str,
    numbers: &[usize],
) -> PyResult<Vec<u8>> {
    let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
    Ok(match method {
        "iter" => bytes_of(array),
        "iter from the middle" => {
            let (mut items, len) = (array.iter(), array.len());
            assert_eq!(items.len(), len, "the length of the iterator");
            let mut bytes = bytes_of(items.by_ref().take(len / 2));
            if let Some(element) = items.next() {
                element.append_bytes(&mut bytes);
            }
            items.fold((), |(), element| element.append_bytes(&mut bytes));
            bytes
        }
        "get" => {
            let shape = L::shape_of(array);
            assert!(
                shape.is_empty() || L::get(array, &shape).is_none(),
                "an index beyond the end"
            );
            bytes_of(
                indices(&shape)
                    .iter()
                    .map(|index| L::get(array, index).expect("inside")),
            )
        }
        "at" => bytes_of(
            indices(&L::shape_of(array))
                .iter()
                .map(|index| L::at(array, index)),
        ),
        "to_vec" => bytes_of(array.to_vec()?),
        "copy_to_slice" => {
            let Some(first) = array.iter().next() else {
                array.copy_to_slice(&mut [])?;
                return Ok(Vec::new());
            };
            let mut elements = vec![first; array.len()];
            array.copy_to_slice(&mut elements)?;
            bytes_of(elements)
        }
        "as_slice" => bytes_of(array.as_slice()?.iter().copied()),
        "rows" => bytes_of(array.rows().flat_map(|row| row.iter().collect::<Vec<_>>())),
        "axis" => {
            let parts = array.axis(number(0))?;
            bytes_of(parts.flat_map(|part| part.iter().collect::<Vec<_>>()))
        }
        "index" => bytes_of(array.index(number(0), number(1))?.to_vec()?),
        "slice" => bytes_of(array.slice(number(0), number(1)..number(2))?.to_vec()?),
        "permute" => bytes_of(array.permute(numbers)?.iter()),
        "transpose" => bytes_of(array.transpose().to_vec()?),
        "reshape" => bytes_of(array.reshape([array.len()])?.iter()),
        _ => return Err(unknown(method)),
    })
}

/// Writes `new` into the elements by `method`, whose arguments are `numbers`. Returns the old bytes, if the method returns them.
fn write_elements<T: Scalar, L: List>(
    array: &mut ArrayMut<T, L>,
    method: &str,
    numbers: &[usize],
    new: &Array<T, Dims>,
) -> PyResult<Vec<u8>> {
    let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
    let elements = new.to_vec()?;
    match method {
        "update" => {
            let (mut old, mut elements) = (Vec::new(), elements.into_iter());
            array.update_in_order(|element| {
                element.append_bytes(&mut old);
                elements.next().expect("as many as are updated")
            });
            return Ok(old);
        }
        "fill" => {
            if let Some(element) = elements.first() {
                array.fill(*element);
            }
        }
        "set" => {
            for (index, element) in indices(&L::shape_of(array)).iter().zip(elements) {
                L::set(array, index, element);
            }
        }
        "copy_from_slice" => array.copy_from_slice(&elements)?,
        "copy_from" => array.copy_from(new)?,
        "rows_mut" => {
            let mut rest = &elements[..];
            for mut row in array.rows_mut() {
                let (elements, others) = rest.split_at(row.len());
                row.copy_from_slice(elements)?;
                rest = others;
            }
        }
        "index_mut" => {
            let mut rest = &elements[..];
            for at in 0..L::shape_of(array)[number(0)] {
                let mut part = array.index_mut(number(0), at)?;
                let (elements, others) = rest.split_at(part.len());
                part.copy_from_slice(elements)?;
                rest = others;
            }
        }
        "slice_mut" => {
            let mut part = array.slice_mut(number(0), number(1)..number(2))?;
            part.copy_from_slice(&elements)?;
        }
        "permute_mut" => array.permute_mut(numbers)?.copy_from_slice(&elements)?,
        "as_mut_slice" => array.as_mut_slice()?.copy_from_slice(&elements),
        _ => return Err(unknown(method)),
    }
    Ok(Vec::new())
}

/// As in a user's module.
#[pyo3::pymodule]
pub(crate) mod differential {
    use std::borrow::Cow;

    use dlpack_pyo3::view::{Contiguous, Convert, Promise};
    use dlpack_pyo3::{
        DLPack, FromDLPack as _, Numpy, Record, SharedBuffer, View, ViewDyn, ViewMut, ViewMutDyn,
        dlpack_pymethods, from_dlpack,
    };
    use half::{bf16, f16};
    use num_complex::Complex;

    use super::*;
    use crate::alive::Alive;

    /// The campaign has one thread, and passes arrays that no other code has.
    struct Undisturbed;
    // SAFETY: the campaign has one thread and passes arrays that no other code has; the functions here keep no view and call no
    // Python.
    #[expect(unsafe_code, reason = "what a user writes")]
    unsafe impl Promise for Undisturbed {}

    type Bytes = Cow<'static, [u8]>;

    /// Calls `$function` with the Rust type of a data type that has this name in NumPy.
    macro_rules! by_dtype {
        ($name:expr, $function:ident($($argument:expr),*)) => {
            match $name {
                "bool" => $function::<bool>($($argument),*),
                "int8" => $function::<i8>($($argument),*),
                "int16" => $function::<i16>($($argument),*),
                "int32" => $function::<i32>($($argument),*),
                "int64" => $function::<i64>($($argument),*),
                "uint8" => $function::<u8>($($argument),*),
                "uint16" => $function::<u16>($($argument),*),
                "uint32" => $function::<u32>($($argument),*),
                "uint64" => $function::<u64>($($argument),*),
                "float16" => $function::<f16>($($argument),*),
                "bfloat16" => $function::<bf16>($($argument),*),
                "float32" => $function::<f32>($($argument),*),
                "float64" => $function::<f64>($($argument),*),
                "complex64" => $function::<Complex<f32>>($($argument),*),
                "complex128" => $function::<Complex<f64>>($($argument),*),
                name => Err(PyValueError::new_err(format!("no data type `{name}`"))),
            }
        };
    }

    fn read_as<T: Scalar>(
        object: &Bound<'_, PyAny>,
        view: &str,
        method: &str,
        numbers: &[usize],
    ) -> PyResult<Vec<u8>> {
        match view {
            "1" => read_elements(&*object.extract::<View<T, 1>>()?, method, numbers),
            "2" => read_elements(&*object.extract::<View<T, 2>>()?, method, numbers),
            "3" => read_elements(&*object.extract::<View<T, 3>>()?, method, numbers),
            "promised" => read_elements(
                &*object.extract::<ViewDyn<T, Undisturbed>>()?,
                method,
                numbers,
            ),
            "contiguous" => read_elements(
                &*object.extract::<ViewDyn<T, Contiguous>>()?,
                method,
                numbers,
            ),
            "convert" => read_elements(&*object.extract::<ViewDyn<T, Convert>>()?, method, numbers),
            "threes" => read_elements(&*object.extract::<ViewDyn<[T; 3]>>()?, method, numbers),
            "tensor" => {
                let tensor = from_dlpack(object)?;
                match method {
                    "iter" => Ok(bytes_of(tensor.view().iter::<T>()?)),
                    _ => Ok(bytes_of(tensor.view().to_vec::<T>()?)),
                }
            }
            "vec" => Ok(bytes_of(Vec::<T>::from_dlpack(from_dlpack(object)?)?)),
            "ndarray" => {
                let view = object.extract::<ViewDyn<T, Undisturbed>>()?;
                Ok(bytes_of(view.as_ndarray()?.iter().copied()))
            }
            _ => read_elements(&*object.extract::<ViewDyn<T>>()?, method, numbers),
        }
    }

    /// The bytes of the elements of an array, read through a kind of view by one of its methods.
    #[pyfunction]
    #[pyo3(signature = (object, dtype, view, method, *numbers))]
    fn read(
        object: &Bound<'_, PyAny>,
        dtype: &str,
        view: &str,
        method: &str,
        numbers: Vec<usize>,
    ) -> PyResult<Bytes> {
        by_dtype!(dtype, read_as(object, view, method, &numbers)).map(Cow::Owned)
    }

    fn write_as<T: Scalar>(
        object: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
        view: &str,
        method: &str,
        numbers: &[usize],
    ) -> PyResult<Vec<u8>> {
        let new = &*new.extract::<ViewDyn<T>>()?;
        match view {
            "1" => write_elements(
                &mut *object.extract::<ViewMut<T, 1>>()?,
                method,
                numbers,
                new,
            ),
            "2" => write_elements(
                &mut *object.extract::<ViewMut<T, 2>>()?,
                method,
                numbers,
                new,
            ),
            "3" => write_elements(
                &mut *object.extract::<ViewMut<T, 3>>()?,
                method,
                numbers,
                new,
            ),
            "promised" => {
                let mut array = object.extract::<ViewMutDyn<T, Undisturbed>>()?;
                write_elements(&mut array, method, numbers, new)
            }
            _ => write_elements(
                &mut *object.extract::<ViewMutDyn<T>>()?,
                method,
                numbers,
                new,
            ),
        }
    }

    /// Writes the elements of `new` into an array, through a kind of view by one of its methods.
    #[pyfunction]
    #[pyo3(signature = (object, new, dtype, view, method, *numbers))]
    fn write(
        object: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
        dtype: &str,
        view: &str,
        method: &str,
        numbers: Vec<usize>,
    ) -> PyResult<Bytes> {
        by_dtype!(dtype, write_as(object, new, view, method, &numbers)).map(Cow::Owned)
    }

    fn own<'py, T: Scalar>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let array = object.extract::<ViewDyn<T, Undisturbed>>()?;
        Numpy(array.as_ndarray()?.to_owned()).into_pyobject(object.py())
    }

    /// A NumPy array over a copy that ndarray made, in ndarray's order.
    #[pyfunction]
    fn to_owned<'py>(object: &Bound<'py, PyAny>, dtype: &str) -> PyResult<Bound<'py, PyAny>> {
        by_dtype!(dtype, own(object))
    }

    /// One row of [`Journal`], as `numpy.dtype({..}, align=True)` lays it out.
    #[derive(Record, Clone, Copy)]
    #[repr(C)]
    struct Line {
        time: u64,
        price: f64,
        level: f32,
        count: i32,
        size: u16,
        side: i8,
        kind: u8,
    }

    /// Columns of records that were read from an array of bytes.
    #[pyclass(frozen, module = "dlpack_probe.differential")]
    #[derive(DLPack)]
    struct Journal {
        #[dlpack(columns)]
        lines: Vec<Line>,
        _alive: Alive,
    }

    #[dlpack_pymethods]
    #[pymethods]
    impl Journal {
        #[new]
        fn new(rows: Vec<(u64, f64, f32, i32, u16, i8, u8)>) -> Self {
            let line = |(time, price, level, count, size, side, kind)| Line {
                time,
                price,
                level,
                count,
                size,
                side,
                kind,
            };
            Self {
                lines: rows.into_iter().map(line).collect(),
                _alive: Alive::new(),
            }
        }
    }

    /// Fields with setters: two copy the elements, in C and in Fortran order, one adopts the memory.
    #[pyclass(module = "dlpack_probe.differential")]
    #[derive(DLPack)]
    struct Fields {
        #[dlpack(tensor(set, shape = [rows, _]))]
        copied: Vec<f64>,
        #[dlpack(tensor(set, shape = [rows, _], order = "F"))]
        ordered: Vec<i32>,
        #[dlpack(tensor(set, owner))]
        adopted: SharedBuffer<f64>,
        rows: usize,
        _alive: Alive,
    }

    #[dlpack_pymethods]
    #[pymethods]
    impl Fields {
        #[new]
        fn new(rows: usize) -> PyResult<Self> {
            Ok(Self {
                copied: vec![0.0; rows],
                ordered: vec![0; rows],
                adopted: SharedBuffer::zeroed(0)?,
                rows,
                _alive: Alive::new(),
            })
        }
    }
}
