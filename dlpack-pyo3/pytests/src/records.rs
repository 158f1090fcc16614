//! Records of many layouts: as arguments, as results, in classes, and with a layout that Python chooses.
#![allow(dead_code, reason = "fields are read by NumPy alone")]
#![allow(non_snake_case, reason = "letters that stand for types in a format")]
#![expect(unsafe_code, reason = "gives the promise of a view")]

use dlpack_core::array::ArrayElement;
use dlpack_core::binding::Records as Rows;
use dlpack_core::element::{FieldKind, FieldLayout, RecordLayout};
use dlpack_core::{DLPackTensors, DataType, Descriptor, Error};
use dlpack_pyo3::view::{Contiguous, MayOverlap, Promise};
use dlpack_pyo3::{
    DLPack, Element, Numpy, Record, Records, TensorNames, View, ViewDyn, ViewMut, ViewMutDyn,
    dlpack_pymethods,
};
use half::f16;
use num_complex::{Complex32, Complex64};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::types::PyTuple;
use pyo3::{IntoPyObjectExt, prelude::*};

use crate::alive::Alive;

/// No other code writes in these tests.
struct Alone;
// SAFETY: the tests that use it have one thread.
unsafe impl Promise for Alone {}

/// The structs, and a function that does a test's operation with one of them.
macro_rules! layouts {
    ($($(#[$derive:meta])* $name:ident ($($repr:tt)*) { $($(#[$key:meta])* $field:ident: $ty:ty,)* })*) => {
        $(
            #[derive(Record, Clone, Copy)]
            $(#[$derive])*
            #[repr($($repr)*)]
            struct $name { $($(#[$key])* $field: $ty,)* }
        )*

        /// The names of all layouts.
        #[pyfunction]
        pub(crate) fn record_layouts() -> Vec<&'static str> {
            vec![$(stringify!($name)),*]
        }

        /// The result of `operate` with records of a layout.
        #[pyfunction]
        #[pyo3(signature = (layout, operation, *arrays))]
        pub(crate) fn on_records<'py>(
            layout: &str,
            operation: &str,
            arrays: &Bound<'py, PyTuple>,
        ) -> PyResult<Bound<'py, PyAny>> {
            match layout {
                $(stringify!($name) => operate::<$name>(operation, arrays),)*
                _ => Err(PyKeyError::new_err(layout.to_owned())),
            }
        }
    };
}

fn operate<'py, T: Record + ArrayElement + Copy>(
    operation: &str,
    arrays: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = arrays.py();
    let array = arrays.get_item(0)?;
    match operation {
        "len" => array.extract::<View<T, 1>>()?.len().into_bound_py_any(py),
        "read" => {
            let view: View<T, 1> = array.extract()?;
            Numpy(Records(view.to_vec()?)).into_bound_py_any(py)
        }
        "iterate" => {
            let view: ViewDyn<T> = array.extract()?;
            let mut records = Vec::new();
            view.iter().for_each(|record| records.push(record));
            Numpy(Records(records)).into_bound_py_any(py)
        }
        "contiguous" => {
            let view: View<T, 1, Contiguous> = array.extract()?;
            Numpy(Records(view.iter().collect())).into_bound_py_any(py)
        }
        "promise" => {
            let view: View<T, 1, Alone> = array.extract()?;
            Numpy(Records(view.iter().collect())).into_bound_py_any(py)
        }
        "matrix" => {
            let view: View<T, 2> = array.extract()?;
            let transposed: Vec<T> = view.transpose().iter().collect();
            Numpy(Records(transposed)).into_bound_py_any(py)
        }
        // Into the second array.
        "copy" => {
            let (from, mut to) = arrays.extract::<(View<T, 1>, ViewMut<T, 1>)>()?;
            to.copy_from(&from)?;
            py.None().into_bound_py_any(py)
        }
        "reverse" => {
            let mut to: ViewMut<T, 1> = array.extract()?;
            let from: View<T, 1, MayOverlap> = arrays.get_item(1)?.extract()?;
            let len = from.len();
            for index in 0..len {
                to.set([index], from.at([len - 1 - index]));
            }
            py.None().into_bound_py_any(py)
        }
        "update" => {
            let mut to: ViewMutDyn<T> = array.extract()?;
            to.update(|record| record);
            py.None().into_bound_py_any(py)
        }
        _ => Err(PyValueError::new_err(operation.to_owned())),
    }
}

layouts! {
    Trade (C) { price: f64, size: u32, bid: bool, }
    Padded (C) { a: i8, b: f64, c: i8, }
    Packed (C, packed) { a: i8, b: f64, c: i8, }
    PackedByTwo (C, packed(2)) { a: i8, b: f64, c: i8, }
    Aligned (C, align(32)) { a: u8, b: u16, }
    One (C) { x: f64, }
    Transparent (transparent) { x: i16, }
    Byte (C) { x: u8, }
    Bools (C) { a: bool, b: [bool; 3], c: bool, }
    Unsigned (C) { a: u8, b: u16, c: u32, d: u64, }
    Signed (C) { a: i8, b: i16, c: i32, d: i64, }
    Floats (C) { a: f16, b: f32, c: f64, }
    Complexes (C) { a: Complex32, b: Complex64, }
    Sizes (C) { a: usize, b: isize, }
    Vector (C) { at: [f32; 3], id: u32, }
    Matrix (C) { id: u16, at: [[f64; 3]; 2], }
    Cube (C) { at: [[[i16; 2]; 3]; 4], end: u8, }
    OneByOne (C) { at: [[f32; 1]; 1], }
    Empty (C) { a: u32, none: [f64; 0], b: u32, }
    Inner (C) { x: f64, y: i8, }
    Outer (C) { a: u8, #[dlpack(nested)] inner: Inner, b: u16, }
    Outers (C) { a: u8, #[dlpack(nested)] inner: [Inner; 2], b: u16, }
    OuterMatrix (C) { a: u8, #[dlpack(nested)] inner: [[Inner; 3]; 2], }
    Deep (C) { #[dlpack(nested)] outer: Outer, #[dlpack(nested)] outers: [Outers; 2], z: bool, }
    Deeper (C) { #[dlpack(nested)] deep: [Deep; 2], x: u16, }
    Deepest (C) { a: i8, #[dlpack(nested)] deeper: Deeper, }
    PackedInner (C, packed) { x: f64, y: i8, }
    PackedOuter (C, packed) { a: u8, #[dlpack(nested)] inner: PackedInner, b: u16, }
    PackedPadded (C, packed) { a: u8, #[dlpack(nested)] inner: Inner, b: u16, }
    PaddedPacked (C) { a: u16, #[dlpack(nested)] inner: [PackedInner; 2], b: f64, }
    OnlyNested (C) { #[dlpack(nested)] inner: Inner, }
    Raw (C) { r#type: u8, r#fn: f32, }
    NotAscii (C) { größe: f64, 数: u8, }
    Gaps (C) { a: u8, b: u64, c: u8, d: u32, e: u8, f: u16, g: u8, }
    TailPadding (C) { a: u64, b: u8, }
    Long (C) { a: [u8; 300], b: f64, }
    Many (C) { a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8, i: u8, j: u8, k: u8, l: u16, }
    Tick (C, packed) { time: i64, price: f32, flags: [u8; 3], buy: bool, }
    Header (C) { magic: [u8; 4], version: u16, count: u64, }
    #[derive(Element)]
    Point (C) { x: f32, y: f32, }
    Body (C) { at: Point, mass: f64, }
    Bodies (C) { #[dlpack(nested)] at: [Point; 2], mass: f64, }
    SingleNames (C) { T: f32, x: f32, B: u8, }
    Underscored (C) { _a: f32, __b: u8, }
}

/// One list of records, which Python sees as a structured array and as columns.
#[pyclass(module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Tape {
    #[dlpack(columns)]
    trades: Vec<Trade>,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Tape {
    #[new]
    fn new(count: u32) -> Self {
        let trade = |size| Trade {
            price: f64::from(size) + 0.5,
            size,
            bid: size % 2 == 1,
        };
        Self {
            trades: (0..count).map(trade).collect(),
            _alive: Alive::new(),
        }
    }

    fn push(&mut self) {
        let last = self.trades.last().copied();
        self.trades.extend(last);
    }
}

/// Records with fields that Python does not see.
#[derive(Record)]
#[repr(C)]
pub(crate) struct Hidden {
    seen: u16,
    #[dlpack(skip)]
    hidden: Option<Box<u8>>,
    last: f32,
}

#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
pub(crate) struct Mixed {
    #[dlpack(columns)]
    rows: Vec<Hidden>,
}

#[dlpack_pymethods]
#[pymethods]
impl Mixed {
    #[new]
    fn new(count: u8) -> Self {
        let row = |seen: u8| Hidden {
            seen: seen.into(),
            hidden: Some(Box::new(seen)),
            last: seen.into(),
        };
        Self {
            rows: (0..count).map(row).collect(),
        }
    }
}

/// Records with a `Drop` that Python does not see, so they are read-only.
#[pyfunction]
pub(crate) fn hidden_records(count: u8) -> Numpy<Records<Hidden>> {
    Numpy(Records(Mixed::new(count).rows))
}

/// Has a field without a NumPy data type.
#[derive(Record, Clone, Copy)]
#[repr(C)]
pub(crate) struct Wide {
    narrow: u8,
    wide: u128,
}

#[pyfunction]
pub(crate) fn wide_records() -> Numpy<Records<Wide>> {
    Numpy(Records(vec![Wide { narrow: 1, wide: 2 }]))
}

/// Keeps a view of records.
#[pyclass(frozen, module = "dlpack_probe")]
pub(crate) struct KeptRecords(View<Trade, 1, MayOverlap>);

#[pymethods]
impl KeptRecords {
    #[new]
    fn new(trades: View<Trade, 1, MayOverlap>) -> Self {
        Self(trades)
    }

    fn sizes(&self) -> Vec<u32> {
        self.0.iter().map(|trade| trade.size).collect()
    }
}

/// Bytes as records with a layout from Python.
#[pyclass(frozen, module = "dlpack_probe")]
pub(crate) struct Described {
    bytes: Vec<u8>,
    layout: &'static RecordLayout,
}

impl DLPackTensors for Described {
    const NAMES: &'static [&'static str] = &[];
    const HAS_RECORDS: bool = true;

    fn describe_tensor(&self, name: &str) -> Result<Descriptor<'_>, Error> {
        let name = name.to_owned();
        Err(Error::NoSuchTensor { name, known: &[] })
    }

    fn records(&self) -> Option<Rows<'_>> {
        Rows::of_bytes(&self.bytes, self.layout)
    }
}

#[pymethods]
impl Described {
    /// `fields` are names, offsets, types and shapes; a type is the name of a number type, or size and fields of a record.
    #[new]
    fn new(bytes: Vec<u8>, size: usize, fields: &Bound<'_, PyAny>) -> PyResult<Self> {
        let layout = layout_of(size, fields)?;
        Ok(Self { bytes, layout })
    }

    #[classattr]
    #[allow(non_upper_case_globals, reason = "the name in Python")]
    const __dlpack_tensors__: TensorNames<Self> = TensorNames::new();
}

/// A layout that is never freed, like those of classes.
fn layout_of(size: usize, fields: &Bound<'_, PyAny>) -> PyResult<&'static RecordLayout> {
    let mut list = Vec::new();
    for field in fields.try_iter()? {
        let (name, offset, kind, shape): (String, usize, Bound<'_, PyAny>, Vec<usize>) =
            field?.extract()?;
        let kind = match kind.extract::<String>() {
            Ok(number) => FieldKind::Number(number_of(&number)?),
            Err(_) => {
                let (size, fields): (usize, Bound<'_, PyAny>) = kind.extract()?;
                FieldKind::Record(layout_of(size, &fields)?)
            }
        };
        let field = FieldLayout::at_run_time(name.leak(), offset, kind, &shape);
        list.push(field.ok_or_else(|| PyValueError::new_err("no field"))?);
    }
    let layout = RecordLayout::at_run_time(size, list.leak());
    let layout = layout.ok_or_else(|| PyValueError::new_err("a field is outside"))?;
    Ok(Box::leak(Box::new(layout)))
}

fn number_of(name: &str) -> PyResult<DataType> {
    let numbers = [
        DataType::BOOL,
        DataType::I8,
        DataType::I16,
        DataType::I32,
        DataType::I64,
        DataType::U8,
        DataType::U16,
        DataType::U32,
        DataType::U64,
        DataType::F16,
        DataType::F32,
        DataType::F64,
        DataType::C64,
        DataType::C128,
        DataType::BF16,
    ];
    let mut numbers = numbers.into_iter();
    let found = numbers.find(|number| number.to_string() == name);
    found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
}
