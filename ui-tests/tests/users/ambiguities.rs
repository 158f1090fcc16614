//! "Ambiguities, decided", each as a test. What is decided by refusing it stands in `ui/`.

use core::ops::Deref;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use dlpack_core::{DLPack, DLPackTensors, DataType, Error, SharedBuffer};
use ndarray::{Array2, array};

use crate::stand_ins::CudaSlice;
use crate::{exports, plain, start};

/// The field of this name is meant.
#[expect(non_upper_case_globals, reason = "to be called like a field")]
const rows: usize = 100;

#[derive(DLPack)]
#[dlpack(shape = [rows, COLS])]
struct Grid {
    #[dlpack(data)]
    values: Vec<f32>,
    rows: usize,
}

const COLS: usize = 3;

#[test]
fn a_field_beats_a_constant() {
    let values = vec![0.0; 6];
    let data = start(&values);
    exports(
        Grid { values, rows: 2 },
        &plain(data, &[2, 3], &[3, 1], DataType::F32),
    );
    assert_eq!(rows, 100);
}

#[derive(DLPack)]
#[dlpack(shape = [2], strides = [step])]
struct InElements {
    #[dlpack(data)]
    values: Vec<u32>,
    step: usize,
}

#[derive(DLPack)]
#[dlpack(shape = [2], byte_strides = [step])]
struct InBytes {
    #[dlpack(data)]
    values: Vec<u32>,
    step: usize,
}

#[test]
fn elements_and_bytes_are_never_guessed() {
    let values = vec![0; 5];
    let data = start(&values);
    exports(
        InElements { values, step: 4 },
        &plain(data, &[2], &[4], DataType::U32),
    );
    let values = vec![0; 5];
    let data = start(&values);
    exports(
        InBytes { values, step: 4 },
        &plain(data, &[2], &[1], DataType::U32),
    );
    let values = vec![0; 5];
    let partial = Error::PartialStride {
        axis: 0,
        found: 3,
        itemsize: 4,
    };
    assert_eq!(InBytes { values, step: 3 }.describe().unwrap_err(), partial);
}

#[derive(DLPack)]
#[dlpack(order = "F")]
struct Ordered {
    #[dlpack(data)]
    array: Array2<f32>,
    name: &'static str,
}

#[test]
fn an_order_against_what_the_data_knows() -> Result<(), Error> {
    let by_rows = Ordered {
        array: array![[0.0, 1.0], [2.0, 3.0]],
        name: "rows",
    };
    let conflict = Error::LayoutConflict {
        what: "order",
        data: vec![2, 1],
        given: vec![1, 2],
    };
    assert_eq!(
        by_rows.describe().unwrap_err(),
        conflict,
        "{}",
        by_rows.name
    );
    Ok(())
}

#[derive(DLPack)]
#[dlpack(elem = bool)]
struct Mask {
    #[dlpack(data)]
    bytes: Vec<u8>,
}

#[test]
fn bytes_are_no_bools_unless_they_are_said_to_be() -> Result<(), Error> {
    assert_eq!(vec![0_u8, 1].describe()?.dtype(), DataType::U8);
    assert_eq!(vec![false, true].describe()?.dtype(), DataType::BOOL);
    let bytes = vec![0, 1, 1];
    let data = start(&bytes);
    let view = Mask { bytes }.into_dlpack()?;
    assert_eq!(
        (view.view().as_ptr(), view.view().dtype()),
        (data, DataType::BOOL)
    );
    let mask = Mask { bytes: vec![0, 2] };
    assert_eq!(mask.describe().unwrap_err(), Error::NotBool { found: 2 });
    Ok(())
}

#[derive(DLPack)]
struct Sample {
    #[dlpack(tensor(shape = [_, 2]))]
    mask: Option<Vec<f32>>,
}

#[test]
fn an_absent_tensor_is_an_error_of_its_own() -> Result<(), Error> {
    let sample = |mask| Sample { mask };
    assert_eq!(sample(Some(vec![0.0; 4])).describe_mask()?.shape(), [2, 2]);
    let absent = sample(None);
    assert_eq!(
        absent.describe_tensor("mask").unwrap_err(),
        Error::Absent { name: "mask" }
    );
    Ok(())
}

#[test]
fn an_empty_tensor_has_no_address() -> Result<(), Error> {
    let empty = Grid {
        values: vec![],
        rows: 0,
    };
    let tensor = empty.into_dlpack()?;
    assert!(tensor.view().as_ptr().is_null());
    assert_eq!(tensor.view().shape(), [0, 3]);
    assert_eq!(tensor.view().strides(), [3, 1]);
    Ok(())
}

#[derive(DLPack)]
struct CopiedOwner {
    #[dlpack(data, owner)]
    slice: CudaSlice<f32>,
}

#[test]
fn a_clone_that_copies_is_no_owner() {
    let owner = CopiedOwner {
        slice: CudaSlice::new(vec![0.0; 4]),
    };
    assert_eq!(
        Arc::new(owner).to_dlpack().unwrap_err(),
        Error::OwnerElsewhere
    );
}

#[derive(DLPack)]
struct Simulation {
    #[dlpack(tensor(owner, shape = [_, 2]))]
    state: SharedBuffer<f32>,
    #[dlpack(tensor, owner)]
    mask: Option<Arc<[u8]>>,
    #[dlpack(tensor)]
    rewards: Vec<f32>,
}

/// Inside `tensor(..)` and beside it, `owner` says the same.
#[test]
fn a_tensor_by_name_has_an_owner() -> Result<(), Error> {
    let simulation = Arc::new(Simulation {
        state: SharedBuffer::zeroed(4)?,
        mask: Some(Arc::new([1, 2])),
        rewards: vec![0.5],
    });
    let state = simulation.to_dlpack_tensor("state")?;
    let mask = simulation.to_dlpack_tensor("mask")?;
    assert_eq!(
        Arc::strong_count(&simulation),
        1,
        "only handles were cloned"
    );
    assert_eq!(Arc::strong_count(simulation.mask.as_ref().unwrap()), 2);
    let rewards = simulation.to_dlpack_tensor("rewards")?;
    assert_eq!(Arc::strong_count(&simulation), 2);
    drop((simulation, rewards));
    assert_eq!(state.view().shape(), [2, 2]);
    assert!(!state.view().is_read_only());
    assert_eq!(mask.view().as_slice::<u8>()?, [1, 2]);
    Ok(())
}

#[test]
fn an_absent_owner_is_absent() {
    let (state, mask) = (SharedBuffer::zeroed(2).unwrap(), None);
    let rewards = Vec::new();
    let simulation = Arc::new(Simulation {
        state,
        mask,
        rewards,
    });
    let refused = simulation.to_dlpack_tensor("mask").unwrap_err();
    assert_eq!(refused, Error::Absent { name: "mask" });
}

/// Keeps bytes that it finds in two steps, as a memory map behind an `Arc`.
struct Map(Box<[u8]>);

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

#[derive(DLPack)]
struct Mapped {
    #[dlpack(data, owner)]
    map: Arc<Map>,
    #[dlpack(tensor)]
    whole: Arc<Map>,
}

#[test]
fn an_arc_of_what_derefs_is_data_and_an_owner() -> Result<(), Error> {
    let map = Arc::new(Map(Box::new([1, 2, 3])));
    let data = start(&map);
    let whole = Arc::clone(&map);
    let mapped = Arc::new(Mapped { map, whole });
    let tensor = mapped.to_dlpack()?;
    assert_eq!(Arc::strong_count(&mapped), 1, "only the handle was cloned");
    assert_eq!(mapped.describe_whole()?.as_ptr(), data);
    drop(mapped);
    assert_eq!(tensor.view().as_ptr(), data);
    assert!(tensor.view().is_read_only(), "others may have the map");
    assert_eq!(tensor.view().as_slice::<u8>()?, [1, 2, 3]);
    Ok(())
}

/// Lends one list after the other.
struct Fickle([Vec<u8>; 2], AtomicUsize);

impl Deref for Fickle {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0[self.1.fetch_add(1, Ordering::Relaxed) % 2]
    }
}

#[derive(DLPack)]
struct Doubtful {
    #[dlpack(tensor(owner))]
    fickle: Arc<Fickle>,
    #[dlpack(tensor(name = "plain"))]
    data: Arc<Fickle>,
}

/// What was described is exported only if the clone lends that; and whatever is lent, its lender is kept.
#[test]
fn a_map_that_lends_something_else_each_time_is_no_owner() -> Result<(), Error> {
    let fickle = || Arc::new(Fickle([vec![1; 3], vec![2; 5]], AtomicUsize::new(0)));
    let (fickle, data) = (fickle(), fickle());
    let doubtful = Arc::new(Doubtful { fickle, data });
    let refused = doubtful.to_dlpack_tensor("fickle").unwrap_err();
    assert_eq!(refused, Error::OwnerElsewhere);
    let tensors = [(); 2].map(|()| doubtful.to_dlpack_tensor("plain"));
    drop(doubtful);
    let [one, other] = tensors;
    assert_eq!(one?.view().as_slice::<u8>()?, [1; 3]);
    assert_eq!(other?.view().as_slice::<u8>()?, [2; 5]);
    Ok(())
}
