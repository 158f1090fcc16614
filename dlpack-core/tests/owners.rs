//! Every way in which an export starts and ends: its owner is dropped once, and all memory is freed, whatever fails or panics.
#![expect(unsafe_code, reason = "calls deleters as C code does")]

mod allocator;
mod made;

use allocator::{ALLOCATIONS, LIVE, with_budget};
use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use dlpack_core::abi::{
    DLManagedTensor, DLManagedTensorVersioned, DLPACK_FLAG_BITMASK_IS_COPIED,
    DLPACK_FLAG_BITMASK_READ_ONLY,
};
use dlpack_core::binding::{self, Offer, ShareCall, export_with, text};
use dlpack_core::import::FromList;
use dlpack_core::layout::Dims;
use dlpack_core::{
    Buffer, DLPack, DLPackTensors, DataType, Descriptor, Device, DeviceType, Error, ExportRequest,
    FromDLPack, Loan, Managed, Parts, Record, SharedBuffer, Version,
};
use std::panic::catch_unwind;
use std::sync::Arc;

/// Runs `work`. Returns its result, the number of its allocations, and the change of allocated bytes on this thread.
fn counted<R>(work: impl FnOnce() -> R) -> (R, usize, isize) {
    install_hook();
    let (allocations, live) = (ALLOCATIONS.get(), LIVE.get());
    let result = work();
    (result, ALLOCATIONS.get() - allocations, LIVE.get() - live)
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Installs, once for all threads, a hook that prints no panics of quiet threads.
fn install_hook() {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
}

/// Runs `work` without printing its panics, because a message would allocate on this thread.
fn quietly<R>(work: impl FnOnce() -> R) -> R {
    QUIET.set(true);
    let result = work();
    QUIET.set(false);
    result
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Describe {
    Fine,
    Fails,
    Panics,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum OnDrop {
    Fine,
    Panics,
    PanicsWithTrouble,
}

/// A panic payload whose own `Drop` panics.
struct Trouble;
impl Drop for Trouble {
    fn drop(&mut self) {
        std::panic::panic_any(());
    }
}

/// An owner with its elements inline.
struct Owner {
    values: [f32; 6],
    describe: Describe,
    on_drop: OnDrop,
    drops: Arc<AtomicUsize>,
}

impl DLPack for Owner {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let rows = match self.describe {
            Describe::Fine => 2,
            Describe::Fails => 3,
            Describe::Panics => std::panic::panic_any("describe"),
        };
        let shape = Dims::from([rows, 3]);
        Parts::new().shape(shape).describe(self.values.lend())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
        match self.on_drop {
            OnDrop::Fine => {}
            OnDrop::Panics => std::panic::panic_any(String::from("the owner's drop")),
            OnDrop::PanicsWithTrouble => std::panic::panic_any(Trouble),
        }
    }
}

#[derive(Default)]
struct Drops(Arc<AtomicUsize>);

impl Drops {
    fn owner(&self) -> Owner {
        Owner {
            values: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            describe: Describe::Fine,
            on_drop: OnDrop::Fine,
            drops: Arc::clone(&self.0),
        }
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

const COPY: ExportRequest = ExportRequest {
    copy: Some(true),
    ..ExportRequest::versioned()
};
const LEGACY: ExportRequest = ExportRequest {
    stream: None,
    max_version: None,
    dl_device: None,
    copy: None,
};
const LEGACY_COPY: ExportRequest = ExportRequest {
    copy: Some(true),
    ..LEGACY
};

/// Calls the deleter, as C code does.
fn delete(tensor: NonNull<DLManagedTensorVersioned>) {
    // SAFETY: the tensor is live, and no other code has it.
    let deleter = unsafe { (*tensor.as_ptr()).deleter }.expect("never null");
    // SAFETY: the deleter is called once, and the tensor is not used afterwards.
    unsafe { deleter(tensor.as_ptr()) };
}

/// Calls the deleter of a legacy tensor, as C code does.
fn delete_legacy(tensor: NonNull<DLManagedTensor>) {
    // SAFETY: the tensor is live, and no other code has it.
    let deleter = unsafe { (*tensor.as_ptr()).deleter }.expect("never null");
    // SAFETY: the deleter is called once, and the tensor is not used afterwards.
    unsafe { deleter(tensor.as_ptr()) };
}

/// CAP-08, CAP-10, CAP-18: each way to release a tensor drops the owner once and frees all memory; faults 8, 12, 13.
#[test]
fn every_release_drops_the_owner_once() {
    type End = fn(Owner) -> Result<(), Error>;
    let ends: [(&str, End); 11] = [
        ("dropped", |owner| owner.into_dlpack().map(drop)),
        ("deleted by C", |owner| {
            owner.into_dlpack().map(|m| delete(m.into_raw()))
        }),
        ("deleted by C, legacy", |owner| {
            owner.into_dlpack()?.into_legacy().map(delete_legacy)
        }),
        ("taken back", |owner| {
            let raw = owner.into_dlpack()?.into_raw();
            // SAFETY: `into_raw` just returned the pointer, and this is its only use.
            unsafe { Managed::from_raw(raw) }.map(drop)
        }),
        ("taken back, legacy", |owner| {
            let legacy = owner.into_dlpack()?.into_legacy()?;
            // SAFETY: `into_legacy` just returned the pointer, and this is its only use.
            unsafe { Managed::from_legacy(legacy) }.map(drop)
        }),
        ("shared", |owner| Arc::new(owner).to_dlpack().map(drop)),
        ("shared, deleted by C", |owner| {
            Arc::new(owner).to_dlpack().map(|m| delete(m.into_raw()))
        }),
        ("copied", |owner| owner.into_dlpack_with(&COPY).map(drop)),
        ("shared and copied", |owner| {
            Arc::new(owner).to_dlpack_with(&COPY).map(drop)
        }),
        ("legacy", |owner| owner.into_dlpack_with(&LEGACY).map(drop)),
        ("passed on twice", |owner| {
            owner
                .into_dlpack()?
                .into_dlpack_with(&LEGACY)?
                .into_dlpack_with(&COPY)
                .map(drop)
        }),
    ];
    for (name, end) in ends {
        let drops = Drops::default();
        let (result, _, left) = counted(|| end(drops.owner()));
        assert_eq!(result, Ok(()), "{name}");
        assert_eq!(drops.count(), 1, "{name}");
        assert_eq!(left, 0, "{name}: bytes left behind");
    }
}

/// CAP-21, ERR-11: an export that fails, at whatever step, drops the owner that it got, keeps no reference to a shared one, and
/// frees all memory; faults 3, 8, 9.
#[test]
fn a_failed_export_leaks_nothing() {
    let other_device = ExportRequest {
        dl_device: Some(Device::cuda(0)),
        ..ExportRequest::versioned()
    };
    let bad_stream = ExportRequest {
        stream: Some(7),
        ..ExportRequest::versioned()
    };
    for (describe, request) in [
        (Describe::Fails, ExportRequest::versioned()),
        (Describe::Fails, COPY),
        (Describe::Fails, LEGACY),
        (Describe::Fine, other_device),
        (Describe::Fine, bad_stream),
    ] {
        let drops = Drops::default();
        let owner = || {
            let mut owner = drops.owner();
            owner.describe = describe;
            owner
        };
        let (failed, _, left) = counted(|| owner().into_dlpack_with(&request).map(drop).is_err());
        assert_eq!(
            (failed, drops.count(), left),
            (true, 1, 0),
            "{describe:?} {request:?}"
        );

        let shared = Arc::new(owner());
        let (failed, _, left) = counted(|| shared.to_dlpack_with(&request).map(drop).is_err());
        assert_eq!(
            (failed, drops.count(), left),
            (true, 1, 0),
            "{describe:?} {request:?}"
        );
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}

/// Own faults 14: if the numbers or the text of an error cannot be allocated, the error is `OutOfMemory`.
#[test]
fn an_error_needs_no_memory() {
    struct Strided([f32; 6]);
    impl DLPack for Strided {
        fn describe(&self) -> Result<Descriptor<'_>, Error> {
            let parts = Parts::new().shape([2_u64, 2]);
            parts.strides([3, 1]).describe(self.0.lend())
        }
    }
    struct Endless([f32; 6]);
    impl DLPack for Endless {
        fn describe(&self) -> Result<Descriptor<'_>, Error> {
            let parts = Parts::new().shape([1_u64 << 62, 1 << 62]);
            parts.describe(self.0.lend())
        }
    }
    let strided = Strided([0.0; 6]).into_dlpack().unwrap();
    let endless = Arc::new(Endless([0.0; 6]));
    let refusals: [(usize, &dyn Fn() -> Error); 4] = [
        (1, &|| endless.describe().unwrap_err()),
        (1, &|| endless.to_dlpack().unwrap_err()),
        (2, &|| Endless([0.0; 6]).into_dlpack().unwrap_err()),
        (2, &|| strided.view().as_slice::<f32>().unwrap_err()),
    ];
    for (needed, refuse) in refusals {
        let is_no_memory = |error: &Error| matches!(error, Error::OutOfMemory { .. });
        for budget in 0..=needed {
            let error = with_budget(budget, refuse);
            assert_eq!(is_no_memory(&error), budget < needed, "{error}");
        }
        let error = refuse();
        let texts = (0..10).map(|budget| with_budget(budget, || text(&error)));
        let mut texts = texts.skip_while(|text| text.as_ref().is_err_and(is_no_memory));
        assert!(with_budget(0, || text(&error)).is_err());
        assert_eq!(texts.next(), Some(Ok(error.to_string())));
    }
}

/// ERR-11, ERR-12, STC-09: a request that is refused allocates nothing and takes no reference.
#[test]
fn a_refused_request_allocates_nothing() {
    let drops = Drops::default();
    let shared = Arc::new(drops.owner());
    let forbidden = ExportRequest {
        copy: Some(false),
        ..LEGACY
    };
    for (request, expected) in [
        (forbidden, Error::LegacyReadOnly),
        (
            ExportRequest {
                stream: Some(7),
                ..COPY
            },
            Error::BadStream {
                found: 7,
                device: Device::CPU,
            },
        ),
        (
            ExportRequest {
                dl_device: Some(Device::rocm(0)),
                ..COPY
            },
            Error::UnreachableDevice {
                data: Device::CPU,
                requested: Device::rocm(0),
            },
        ),
    ] {
        let (error, allocations, _) = counted(|| shared.to_dlpack_with(&request).unwrap_err());
        assert_eq!((error, allocations), (expected, 0));
        assert_eq!((Arc::strong_count(&shared), drops.count()), (1, 0));
    }
}

/// ERR-05, CAP-21: an export that runs out of memory at any of its allocations fails and leaks nothing; faults 8, 9, 70.
#[test]
fn out_of_memory_at_every_allocation() {
    type Way = fn(&Arc<Owner>, Owner) -> Result<Managed, Error>;
    let ways: [(&str, Way, usize); 8] = [
        ("moved", |_, owner| owner.into_dlpack(), 1),
        (
            "moved, legacy",
            |_, owner| owner.into_dlpack_with(&LEGACY),
            3,
        ),
        ("moved, copied", |_, owner| owner.into_dlpack_with(&COPY), 3),
        ("shared", |shared, _| shared.to_dlpack(), 1),
        (
            "shared, asked",
            |shared, _| shared.to_dlpack_with(&ExportRequest::versioned()),
            1,
        ),
        (
            "shared, copied",
            |shared, _| shared.to_dlpack_with(&COPY),
            2,
        ),
        (
            "shared, legacy",
            |shared, _| shared.to_dlpack_with(&LEGACY),
            2,
        ),
        (
            "legacy copy",
            |shared, _| shared.to_dlpack_with(&LEGACY_COPY),
            2,
        ),
    ];
    for (name, way, needed) in ways {
        for budget in 0..=needed {
            let drops = Drops::default();
            let shared = Arc::new(drops.owner());
            let owner = drops.owner();
            let (result, _, left) = counted(|| {
                let result = with_budget(budget, || way(&shared, owner));
                result.map(drop)
            });
            if budget < needed {
                assert!(
                    matches!(result, Err(Error::OutOfMemory { .. })),
                    "{name}, {budget}: {result:?}"
                );
            } else {
                assert_eq!(result, Ok(()), "{name}, {budget}");
            }
            assert_eq!(left, 0, "{name}, {budget}");
            assert_eq!(
                drops.count(),
                1,
                "{name}, {budget}: the owner that was given"
            );
            assert_eq!(Arc::strong_count(&shared), 1, "{name}, {budget}");
        }
    }
}

#[derive(FromDLPack)]
struct Back<S: FromList> {
    #[dlpack(data)]
    _values: Vec<f32>,
    #[dlpack(shape)]
    _shape: S,
}

#[derive(FromDLPack)]
struct Adopted {
    #[dlpack(data)]
    _values: SharedBuffer<f32>,
    #[dlpack(shape)]
    _shape: Box<[i64]>,
    #[dlpack(strides)]
    _strides: Vec<i64>,
}

fn back<T: FromDLPack>(tensor: Managed) -> Result<(), Error> {
    T::from_dlpack(tensor).map(drop)
}

/// ERR-05, CAP-21, own faults 15: an import that runs out of memory at any of its allocations, or at the text of its error, fails
/// and leaks nothing.
#[test]
fn out_of_memory_at_every_allocation_of_an_import() {
    type Way = fn(Managed) -> Result<(), Error>;
    let ways: [(&str, Way, usize); 15] = [
        ("vector", back::<Vec<f32>>, 1),
        ("box", back::<Box<[f32]>>, 1),
        ("array", back::<[f32; 6]>, 1),
        ("buffer", back::<SharedBuffer<f32>>, 1),
        ("list", back::<Back<Vec<u16>>>, 2),
        ("boxed list", back::<Back<Box<[i64]>>>, 2),
        ("short list", back::<Back<[usize; 2]>>, 2),
        ("tuple", back::<Back<(u8, u8)>>, 1),
        ("adopted", back::<Adopted>, 3),
        ("no such type", back::<Vec<f64>>, 0),
        ("no such axes", back::<Vec<[f32; 2]>>, 1),
        ("no such rank", back::<Back<[i64; 3]>>, 0),
        ("no such length", back::<[f32; 5]>, 0),
        ("again", |tensor| tensor.into_dlpack().map(drop), 0),
        (
            "no slice",
            |tensor| tensor.shared().view().as_slice::<f32>().map(drop),
            0,
        ),
    ];
    for strided in [false, true] {
        for (name, way, needed) in ways {
            let needed = needed + usize::from(!strided);
            let (mut expected, mut failures) = (None, 0);
            for budget in (0..=needed).rev() {
                let drops = Drops::default();
                let raw = drops.owner().into_dlpack().unwrap().into_raw();
                if !strided {
                    // SAFETY: the struct is valid, and no other code has it; before DLPack 1.2 strides could be null.
                    unsafe { (*raw.as_ptr()).dl_tensor.strides = core::ptr::null_mut() };
                }
                let (result, _, left) = counted(|| {
                    with_budget(budget, || {
                        // SAFETY: `into_raw` returned the pointer, and this is its only use.
                        unsafe { Managed::from_raw(raw) }.and_then(way)
                    })
                });
                assert!(left <= 0 && drops.count() == 1, "{name}, {budget}: {left}");
                if matches!(result, Err(Error::OutOfMemory { .. })) {
                    failures += 1;
                } else {
                    assert_eq!(expected.get_or_insert(result.clone()), &result, "{name}");
                }
            }
            assert_eq!(failures, needed, "{name}, {strided}: {expected:?}");
        }
    }
}

/// Own faults 15: the allocation of an `Arc` cannot report a failure, so the same size is allocated on trial first.
#[test]
fn an_arc_is_allocated_on_trial_first() {
    for (budget, there) in [(0, false), (1, false), (3, true)] {
        let tensor = Drops::default().owner().into_dlpack().unwrap();
        let arc = with_budget(budget, || Arc::<[f32]>::from_dlpack(tensor));
        assert_eq!(arc.is_ok_and(|items| items[5] == 6.0), there, "{budget}");
    }
}

/// XAP-17, own faults 3, 15: if memory runs out before the tensor of an offer has a taker, its caller owns it again. Otherwise it
/// is released after the last taker.
#[test]
fn an_offer_without_memory() {
    for (budget, takes) in [(0, None), (1, Some(0)), (2, Some(1)), (3, Some(2))] {
        for accepted in [false, true] {
            let drops = Drops::default();
            let raw = drops.owner().into_dlpack().unwrap().into_raw();
            let ((), _, left) = counted(|| {
                let taken = with_budget(budget, || {
                    // SAFETY: `into_raw` returned the pointer; the tensor is used again only if the offer had no takers.
                    let offer = unsafe { Offer::of(raw) }.ok()?;
                    let taken: [Option<Managed>; 2] = [(); 2].map(|()| offer.take().ok());
                    assert_eq!(offer.takers(), taken.iter().flatten().count());
                    if accepted {
                        offer.accept();
                    }
                    Some(taken)
                });
                let found = taken.as_ref().map(|taken| taken.iter().flatten().count());
                assert_eq!(found, takes);
                let ours = found.is_none_or(|takes| takes == 0 && !accepted);
                assert_eq!(drops.count() == 1, !ours && found == Some(0));
                for tensor in taken.into_iter().flatten().flatten() {
                    assert_eq!(drops.count(), 0);
                    assert_eq!(tensor.view().to_vec::<f32>().unwrap()[5], 6.0);
                }
                assert_eq!(drops.count() == 0, ours);
                if ours {
                    delete(raw);
                }
            });
            // The block was allocated before the count, so its release makes the number negative.
            assert!(
                left < 0 && drops.count() == 1,
                "{budget}, {accepted}: {left}"
            );
        }
    }
}

/// ERR-05, LAY-15: a copy of more elements than fit in memory, which a stride of 0 makes possible, fails and does not abort;
/// faults 63, 70.
#[test]
fn more_elements_than_memory_has() {
    struct Endless([f32; 1]);
    impl DLPack for Endless {
        fn describe(&self) -> Result<Descriptor<'_>, Error> {
            let parts = Parts::new().shape([1_u64 << 50]);
            parts.strides([0]).describe(self.0.lend())
        }
    }
    let no_memory = |result: Result<(), Error>| {
        assert!(
            matches!(result, Err(Error::OutOfMemory { bytes }) if bytes >= 4 << 50),
            "{result:?}"
        );
    };
    let ((), _, left) = counted(|| {
        no_memory(Endless([1.0]).into_dlpack_with(&COPY).map(drop));
        no_memory(Endless([1.0]).into_dlpack_with(&LEGACY).map(drop));
        let endless = Endless([1.0]).into_dlpack().unwrap();
        assert_eq!(endless.view().iter::<f32>().unwrap().len(), 1 << 50);
        no_memory(endless.view().to_vec::<f32>().map(drop));
        no_memory(Vec::<f32>::from_dlpack(endless).map(drop));
    });
    assert_eq!(left, 0);
}

/// Own faults 13: none of so many elements is checked before memory for all of them is allocated. From overlapping axes with
/// equal strides the crate cannot compute how often they repeat an item.
#[test]
fn more_bools_than_memory_has() {
    struct Endless(Vec<bool>);
    impl DLPack for Endless {
        fn describe(&self) -> Result<Descriptor<'_>, Error> {
            let parts = Parts::new().shape([1_u64 << 20, 1 << 20]);
            parts.strides([1, 1]).describe(self.0.lend())
        }
    }
    let tensor = || Endless(vec![true; 1 << 21]).into_dlpack().unwrap();
    let no_memory = |error| matches!(error, Some(Error::OutOfMemory { .. }));
    assert!(no_memory(tensor().view().to_vec::<bool>().err()));
    assert!(no_memory(Vec::<bool>::from_dlpack(tensor()).err()));
    assert!(no_memory(Box::<[bool]>::from_dlpack(tensor()).err()));
}

/// CAP-12, CAP-10: one block holds the struct, shape, strides and owner; a copy allocates its memory, too; the deleter frees all
/// of it; faults 14, 15.
#[test]
fn an_export_is_one_allocation_and_is_freed() {
    let vector = vec![1.0_f32; 64];
    let size = isize::try_from(vector.len() * size_of::<f32>()).unwrap();
    let (managed, allocations, _) = counted(|| vector.into_dlpack().unwrap());
    assert_eq!(allocations, 1, "moved");
    let ((), _, freed) = counted(|| drop(managed));
    assert!(freed < -size, "the block and the vector: {freed}");

    let shared = Arc::new([[0_u8; 5]; 4]);
    for (name, request, most) in [
        ("versioned", ExportRequest::versioned(), 1),
        ("copied", COPY, 2),
        ("copied for a legacy consumer", LEGACY, 2),
    ] {
        let (managed, allocations, taken) = counted(|| shared.to_dlpack_with(&request).unwrap());
        assert_eq!(allocations, most, "{name}");
        let ((), none, freed) = counted(|| drop(managed));
        assert_eq!((none, taken + freed), (0, 0), "{name}");
    }
    let (managed, allocations, taken) = counted(|| shared.to_dlpack().unwrap());
    assert_eq!(allocations, 1, "shared");
    let raw = managed.into_raw();
    let ((), _, freed) = counted(|| delete(raw));
    assert_eq!(taken + freed, 0);

    // Conversions between the two forms of a tensor allocate nothing, for either struct.
    let ((), allocations, left) = counted(|| {
        let raw = shared.to_dlpack().unwrap().into_raw();
        // SAFETY: `into_raw` just returned the pointer, and this is its only use.
        let managed = unsafe { Managed::from_raw(raw) }.unwrap();
        assert_eq!(managed.view().shape(), [4, 5]);
        delete(managed.into_raw());
    });
    assert_eq!((allocations, left), (1, 0));
    let ((), allocations, left) = counted(|| {
        let writable = [0_u8; 9].into_dlpack().unwrap();
        delete_legacy(writable.into_legacy().unwrap());
    });
    assert_eq!((allocations, left), (1, 0));

    // Six axes still fit in the block; seven need another allocation.
    struct Ranked(usize);
    impl DLPack for Ranked {
        fn describe(&self) -> Result<Descriptor<'_>, Error> {
            let ones = [1_i64; 64];
            let parts = Parts::new().shape(&ones[..self.0]);
            parts.describe(Loan::from(&[7_u8][..]))
        }
    }
    for rank in 0..=64 {
        let shared = Arc::new(Ranked(rank));
        let (managed, allocations, taken) = counted(|| shared.to_dlpack().unwrap());
        assert!(
            if rank <= 6 {
                allocations == 1
            } else {
                allocations <= 8
            },
            "{rank}: {allocations}"
        );
        assert_eq!(managed.view().shape().len(), rank);
        let ((), _, freed) = counted(|| drop(managed));
        assert_eq!(taken + freed, 0, "{rank}");
    }
}

/// CAP-13, CAP-15, CAP-19: any thread may release a tensor; the owner is dropped on that thread; faults 10, 31, 32.
#[test]
fn dropped_on_another_thread() {
    let drops = Drops::default();
    let managed = drops.owner().into_dlpack().unwrap();
    std::thread::spawn(move || drop(managed)).join().unwrap();
    assert_eq!(drops.count(), 1);

    let raw = drops.owner().into_dlpack().unwrap().into_raw();
    // The pointer in a form that may move to another thread.
    let raw = AtomicPtr::new(raw.as_ptr());
    std::thread::spawn(move || delete(NonNull::new(raw.into_inner()).unwrap()))
        .join()
        .unwrap();
    assert_eq!(drops.count(), 2);

    // The exporting thread has ended before the last tensor is dropped.
    let shared = Arc::new(drops.owner());
    let exports: Vec<Managed> =
        std::thread::spawn(move || (0..4).map(|_| shared.to_dlpack().unwrap()).collect())
            .join()
            .unwrap();
    assert_eq!(drops.count(), 2);
    std::thread::scope(|scope| {
        for export in exports {
            scope.spawn(move || {
                assert_eq!(
                    export.view().to_vec::<f32>().unwrap(),
                    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
                );
            });
        }
    });
    assert_eq!(drops.count(), 3);
}

/// ABI-10, ERR-06: a panic of the owner's `Drop` does not leave the deleter, which frees all memory; faults 6, 49.
#[test]
fn a_panic_in_drop_does_not_leave_the_deleter() {
    for on_drop in [OnDrop::Panics, OnDrop::PanicsWithTrouble] {
        let drops = Drops::default();
        let owner = || {
            let mut owner = drops.owner();
            owner.on_drop = on_drop;
            owner
        };
        type End = fn(Managed);
        let ends: [End; 3] = [
            drop,
            |managed| delete(managed.into_raw()),
            |managed| delete_legacy(managed.into_legacy().unwrap()),
        ];
        for (number, end) in ends.into_iter().enumerate() {
            let ((), _, left) = counted(|| quietly(|| end(owner().into_dlpack().unwrap())));
            assert_eq!((drops.count(), left), (number + 1, 0), "{on_drop:?}");
        }
    }
}

/// ABI-10: a panic of the owner's `Drop` does not leave the deleter while another panic unwinds either; faults 6, 49.
#[test]
fn a_panic_in_drop_during_another_panic() {
    let drops = Drops::default();
    let ((), _, left) = counted(|| {
        let outer = quietly(|| {
            catch_unwind(AssertUnwindSafe(|| {
                let mut owner = drops.owner();
                owner.on_drop = OnDrop::Panics;
                let _held = owner.into_dlpack().unwrap();
                std::panic::panic_any(17_u64);
            }))
        });
        assert_eq!(
            outer.unwrap_err().downcast_ref(),
            Some(&17_u64),
            "the first panic goes on"
        );
    });
    assert_eq!((drops.count(), left), (1, 0));
}

/// CAP-21: a panic of `describe` unwinds through the export and leaks nothing; faults 8, 49.
#[test]
fn a_panic_in_describe_leaks_nothing() {
    let drops = Drops::default();
    let owner = || {
        let mut owner = drops.owner();
        owner.describe = Describe::Panics;
        owner
    };
    for request in [ExportRequest::versioned(), COPY, LEGACY] {
        let before = drops.count();
        let ((), _, left) = counted(|| {
            let outcome = quietly(|| {
                catch_unwind(AssertUnwindSafe(|| {
                    owner().into_dlpack_with(&request).map(drop)
                }))
            });
            assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"describe"));
        });
        assert_eq!((drops.count() - before, left), (1, 0));

        let shared = Arc::new(owner());
        let ((), _, left) = counted(|| {
            let outcome = quietly(|| {
                catch_unwind(AssertUnwindSafe(|| {
                    shared.to_dlpack_with(&request).map(drop)
                }))
            });
            assert!(outcome.is_err());
        });
        assert_eq!((Arc::strong_count(&shared), left), (1, 0));
    }
}

/// CAP-21: if an export fails and the owner's `Drop` panics, that panic unwinds, and the block is freed.
#[test]
fn a_panic_in_drop_of_a_failed_export() {
    let drops = Drops::default();
    let ((), _, left) = counted(|| {
        let mut owner = drops.owner();
        (owner.on_drop, owner.describe) = (OnDrop::Panics, Describe::Fails);
        let outcome = quietly(|| catch_unwind(AssertUnwindSafe(|| owner.into_dlpack().map(drop))));
        assert!(outcome.unwrap_err().is::<String>());
    });
    assert_eq!((drops.count(), left), (1, 0));
}

/// CAP-12, CAP-20, CAP-26: thousands of exports of one value live at once, each with its own struct; at the end the reference
/// count is as at the start; faults 10, 27, 28.
#[test]
fn thousands_of_exports_of_one_value() {
    let many = if cfg!(miri) { 50 } else { 5000 };
    let drops = Drops::default();
    let shared = Arc::new(drops.owner());
    let ((), _, left) = counted(|| {
        let mut exports: Vec<Managed> = (0..many).map(|_| shared.to_dlpack().unwrap()).collect();
        assert_eq!(Arc::strong_count(&shared), many + 1);
        let mut raw = Vec::new();
        for (number, export) in exports.drain(..).enumerate() {
            assert_eq!(export.view().as_ptr(), shared.values.as_ptr().cast());
            if number % 3 == 0 {
                drop(export);
            } else {
                raw.push(export.into_raw());
            }
        }
        let distinct: std::collections::BTreeSet<_> = raw.iter().collect();
        assert_eq!(distinct.len(), raw.len());
        raw.into_iter().rev().for_each(delete);
    });
    assert_eq!((Arc::strong_count(&shared), left), (1, 0));
    drop(shared);
    assert_eq!(drops.count(), 1);
}

/// CAP-18: exported memory does not move when the value is dropped, resized or moved; faults 11.
#[test]
fn the_memory_outlives_the_value() {
    let shared = Arc::new(vec![1_u32, 2, 3]);
    let export = shared.to_dlpack().unwrap();
    drop(shared);
    assert_eq!(export.view().as_slice::<u32>().unwrap(), [1, 2, 3]);
    // Storage inside the value has its final address before it is described.
    let inline = Drops::default().owner().into_dlpack().unwrap();
    let boxed = Box::new(inline);
    let moved = *boxed;
    assert_eq!(
        moved.view().as_slice::<f32>().unwrap(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
}

/// A field that counts its drops.
struct Witness(Arc<AtomicUsize>);
impl Drop for Witness {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(DLPack)]
struct Held {
    #[dlpack(data, owner)]
    values: Arc<[u16]>,
    _witness: Witness,
}

/// CAP-15, CPY-01, CPY-05: a clone of the field marked `owner` keeps the memory; the struct may be dropped before the tensor;
/// faults 4, 10.
#[test]
fn only_the_owner_is_kept() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let held = Held {
        values: [1, 2, 3].into(),
        _witness: Witness(Arc::clone(&dropped)),
    };
    let values = Arc::clone(&held.values);
    let held = Arc::new(held);
    let (export, allocations, _) = counted(|| held.to_dlpack().unwrap());
    assert_eq!(allocations, 1);
    assert_eq!(
        (Arc::strong_count(&held), Arc::strong_count(&values)),
        (1, 3)
    );
    drop(held);
    assert_eq!(
        dropped.load(Ordering::SeqCst),
        1,
        "the struct is gone, the memory is not"
    );
    assert_eq!(export.view().as_slice::<u16>().unwrap(), [1, 2, 3]);
    assert!(export.view().is_read_only());
    drop(export);
    assert_eq!(Arc::strong_count(&values), 1);

    let held = Arc::new(Held {
        values: Arc::clone(&values),
        _witness: Witness(Arc::clone(&dropped)),
    });
    for (request, shares) in [
        (ExportRequest::versioned(), true),
        (COPY, false),
        (LEGACY, false),
    ] {
        let (export, _, taken) = counted(|| held.to_dlpack_with(&request).unwrap());
        assert_eq!(Arc::strong_count(&values), if shares { 3 } else { 2 });
        assert_eq!(export.view().as_ptr() == values.as_ptr().cast(), shares);
        assert_eq!(export.view().to_vec::<u16>().unwrap(), [1, 2, 3]);
        let ((), _, freed) = counted(|| drop(export));
        assert_eq!(taken + freed, 0);
        assert_eq!(Arc::strong_count(&values), 2);
    }
    let refused = ExportRequest {
        copy: Some(false),
        ..LEGACY
    };
    assert_eq!(
        held.to_dlpack_with(&refused).unwrap_err(),
        Error::LegacyReadOnly
    );
    for budget in 0..1 {
        let (result, _, left) = counted(|| with_budget(budget, || held.to_dlpack().map(drop)));
        assert!(
            matches!(result, Err(Error::OutOfMemory { .. })),
            "{result:?}"
        );
        assert_eq!((left, Arc::strong_count(&values)), (0, 2));
    }
}

/// Looks like a reference-counted handle, but a clone of it has its own memory.
struct Deep(Vec<u16>, Arc<AtomicUsize>);
impl Clone for Deep {
    fn clone(&self) -> Self {
        Self(self.0.clone(), Arc::clone(&self.1))
    }
}
impl Buffer for Deep {
    fn lend(&self) -> Loan<'_> {
        self.0.lend()
    }
}
impl Drop for Deep {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(DLPack)]
struct DeeplyHeld {
    #[dlpack(data, owner)]
    values: Deep,
    _more: u8,
}

/// CAP-18, CAP-21: an owner whose clone does not keep the exported memory is refused, and the clone is dropped.
#[test]
fn an_owner_whose_clone_has_other_memory_is_refused() {
    let drops = Arc::new(AtomicUsize::new(0));
    let held = Arc::new(DeeplyHeld {
        values: Deep(vec![1, 2], Arc::clone(&drops)),
        _more: 0,
    });
    let (error, _, left) = counted(|| held.to_dlpack().unwrap_err());
    assert_eq!((error, left), (Error::OwnerElsewhere, 0));
    assert_eq!(drops.load(Ordering::SeqCst), 1, "the clone");
    // A moved or copied export does not depend on clones of the owner.
    assert_eq!(
        held.to_dlpack_with(&COPY)
            .unwrap()
            .view()
            .to_vec::<u16>()
            .unwrap(),
        [1, 2]
    );
    let moved = Arc::into_inner(held).unwrap().into_dlpack().unwrap();
    assert_eq!(moved.view().to_vec::<u16>().unwrap(), [1, 2]);
}

/// What an owner lends.
#[derive(Clone, Copy)]
struct Lending {
    start: *mut u16,
    len: usize,
    device: Device,
    writable: bool,
    has_gaps: bool,
}

/// An owner whose clone lends something else.
struct Changing {
    lending: Lending,
    change: fn(Lending) -> Lending,
    live: Arc<()>,
}

// SAFETY: the memory is that of the test, which uses it on one thread and keeps it until the end.
unsafe impl Send for Changing {}

impl Clone for Changing {
    fn clone(&self) -> Self {
        Self {
            lending: (self.change)(self.lending),
            change: self.change,
            live: Arc::clone(&self.live),
        }
    }
}

impl Buffer for Changing {
    fn lend(&self) -> Loan<'_> {
        let Lending {
            start, len, device, ..
        } = self.lending;
        let loan = if self.lending.writable {
            // SAFETY: the memory of the test has these elements, and no code reads or writes them through the tensor.
            unsafe { Loan::from_raw_parts_mut(start, len, device) }
        } else {
            // SAFETY: as above.
            unsafe { Loan::from_raw_parts(start, len, device) }
        };
        if self.lending.has_gaps {
            return loan.with_layout(Dims::from([2]), Dims::from([2]), 0);
        }
        loan
    }
}

/// Only exports of this crate in the versioned struct, with few axes, on a device without streams, have the fast path for objects that
/// wrap a tensor.
#[test]
fn other_tensors_are_not_described_on_the_fast_path() {
    let mut memory = [0_u16; 4];
    let lent_on = |device| Changing {
        lending: Lending {
            start: memory.as_mut_ptr(),
            len: 4,
            device,
            writable: false,
            has_gaps: false,
        },
        change: |lending| lending,
        live: Arc::new(()),
    };
    let mut exports = [Device::CPU, Device::cuda(0)].map(lent_on).into_iter();
    let is_fast = |tensor: &Managed| binding::describe_export(tensor).is_some();
    let mut next = || exports.next().unwrap();
    assert!(is_fast(&next().into_dlpack().unwrap()));
    assert!(!is_fast(&next().into_dlpack().unwrap()), "CUDA has streams");
    assert!(!is_fast(&[0_u8].into_dlpack_with(&LEGACY).unwrap()));
    for (axes, expected) in [(6, true), (7, false)] {
        let tensor = Managed::zeroed(&vec![1; axes], DataType::U8).unwrap();
        assert_eq!(is_fast(&tensor), expected, "{axes} axes");
    }
    // SAFETY: the address comes from `into_raw`, and is used only here.
    let foreign = unsafe { Managed::from_raw([0_u8].into_dlpack().unwrap().into_raw()) }.unwrap();
    assert!(!is_fast(&foreign));
}

#[derive(DLPack)]
struct HeldByChanging {
    #[dlpack(data, owner)]
    values: Changing,
    #[dlpack(shape)]
    shape: [usize; 1],
    #[dlpack(offset)]
    offset: usize,
}

/// CAP-21: the fast path for owners returns the tensor by address, and compares the clone's memory with the tensor as the general
/// path does.
#[test]
fn a_clone_that_lends_other_memory_is_refused_on_the_fast_path() {
    let mut memory = [1_u16, 2, 3, 4, 5, 6];
    let start = memory.as_mut_ptr();
    let share_on = |device, change: fn(Lending) -> Lending, offset: usize| {
        let live = Arc::new(());
        let lending = Lending {
            start,
            len: 4,
            device,
            writable: true,
            has_gaps: false,
        };
        let held = HeldByChanging {
            values: Changing {
                lending,
                change,
                live: Arc::clone(&live),
            },
            shape: [4 - offset],
            offset,
        };
        let mut call = ShareCall {
            by_address: true,
            outcome: None,
        };
        let (tensor, allocations, _) = counted(|| binding::share(&held, None, &mut call));
        let is_shared = tensor.is_some();
        assert_eq!(Arc::strong_count(&live), 2 + usize::from(is_shared));
        match call.outcome {
            None => assert!(is_shared && allocations == 1),
            Some(outcome) => assert_eq!(outcome.unwrap_err(), Error::OwnerElsewhere),
        }
        drop(tensor);
        assert_eq!(Arc::strong_count(&live), 2);
        is_shared
    };
    let later = |it: Lending| Lending {
        start: it.start.wrapping_add(1),
        ..it
    };
    let shorter = |it: Lending| Lending { len: 3, ..it };
    let elsewhere = |it: Lending| Lending {
        device: Device::new(DeviceType::CUDA_HOST, 0),
        ..it
    };
    // The offset moves the address in host memory; other devices have a handle, and the offset beside it.
    let opencl = Device::new(DeviceType::OPENCL, 0);
    for (device, offset) in [(Device::CPU, 0), (Device::CPU, 1), (opencl, 0), (opencl, 1)] {
        let share = |change, offset| share_on(device, change, offset);
        assert!(share(|it| it, offset));
        assert!(share(|it| Lending { len: 5, ..it }, offset));
        assert!(!share(shorter, offset));
        assert!(!share(elsewhere, offset));
        assert!(!share(
            |it| Lending {
                writable: false,
                ..it
            },
            offset
        ));
        assert!(!share(
            |it| Lending {
                has_gaps: true,
                ..it
            },
            offset
        ));
    }
    assert!(!share_on(Device::CPU, later, 0));
    assert!(
        share_on(Device::CPU, later, 1),
        "the tensor begins later too"
    );
}

#[cfg(feature = "ndarray")]
#[derive(DLPack)]
struct HeldByAPart {
    #[dlpack(data)]
    values: ndarray::ArcArray1<u16>,
    #[dlpack(owner)]
    part: ndarray::ArcArray1<u16>,
}

/// CAP-21: an owner with gaps between its items keeps a tensor of exactly these items, but no tensor with bytes in a gap.
#[cfg(feature = "ndarray")]
#[test]
fn an_owner_with_gaps() {
    let values = ndarray::ArcArray1::from_vec(vec![1_u16, 2, 3, 4, 5]);
    let every_second = values.clone().slice_move(ndarray::s![..;2]);
    let first_three = values.clone().slice_move(ndarray::s![..3]);
    let held = |values, part: &ndarray::ArcArray1<u16>| {
        let part = part.clone();
        Arc::new(HeldByAPart { values, part }).to_dlpack()
    };
    let kept = held(every_second.clone(), &every_second).unwrap();
    assert_eq!(kept.view().to_vec::<u16>().unwrap(), [1, 3, 5]);
    // The same number of items from the same address on, but other items.
    let error = held(first_three, &every_second).unwrap_err();
    assert_eq!(error, Error::OwnerElsewhere);
}

#[derive(DLPack)]
#[dlpack(via = [self.0[0], self.0[1] * 2.0])]
struct Computed(Vec<f32>);

#[derive(DLPack)]
#[dlpack(via = self.0.clone())]
struct Lent(Arc<Vec<f32>>);

#[derive(DLPack)]
#[dlpack(via = self.0.clone())]
struct LentShared(SharedBuffer<f32>);

/// CPY-01, CPY-02, CPY-04, CPY-05, CPY-06, CPY-07: a tensor that is computed for a request is used only by the consumer and
/// flagged as a copy, in one allocation; a tensor that `via` lends is not.
#[test]
fn tensors_made_on_request() {
    let shared = Arc::new(Computed(vec![1.0, 2.0]));
    for (request, version, flags) in [
        (
            ExportRequest::versioned(),
            Some(Version::CURRENT),
            DLPACK_FLAG_BITMASK_IS_COPIED,
        ),
        (COPY, Some(Version::CURRENT), DLPACK_FLAG_BITMASK_IS_COPIED),
        (LEGACY, None, 0),
        (LEGACY_COPY, None, 0),
    ] {
        let (made, allocations, taken) = counted(|| shared.to_dlpack_with(&request).unwrap());
        let view = made.view();
        assert_eq!(allocations, 1);
        assert_eq!(view.to_vec::<f32>().unwrap(), [1.0, 4.0]);
        assert_eq!(view.version(), version);
        if version.is_some() {
            assert_eq!((view.is_copied(), view.is_read_only()), (flags != 0, false));
        }
        let ((), _, freed) = counted(|| drop(made));
        assert_eq!(taken + freed, 0);
        assert_eq!(
            Arc::strong_count(&shared),
            1,
            "nothing of the struct is kept"
        );
    }
    let never = ExportRequest {
        copy: Some(false),
        ..ExportRequest::versioned()
    };
    let (result, _, left) = counted(|| shared.to_dlpack_with(&never).map(drop));
    assert!(
        matches!(result, Err(Error::CopyForbidden { .. })),
        "{result:?}"
    );
    assert_eq!(left, 0);
    let (result, _, left) = counted(|| with_budget(0, || shared.to_dlpack().map(drop)));
    assert!(
        matches!(result, Err(Error::OutOfMemory { .. })),
        "{result:?}"
    );
    assert_eq!(left, 0);
    assert!(
        Computed(vec![1.0, 2.0])
            .into_dlpack()
            .unwrap()
            .view()
            .is_copied()
    );

    // Memory that other code also has is not flagged as a copy, whatever type lends it.
    let memory = Arc::new(vec![1.0, 2.0]);
    let lent = Arc::new(Lent(Arc::clone(&memory)));
    for request in [ExportRequest::versioned(), never] {
        let export = lent.to_dlpack_with(&request).unwrap();
        assert!(export.view().is_read_only() && !export.view().is_copied());
        assert_eq!(export.view().as_ptr(), memory.as_ptr().cast());
    }
    let copied = lent.to_dlpack_with(&COPY).unwrap();
    assert!(!copied.view().is_read_only() && copied.view().is_copied());
    assert_ne!(copied.view().as_ptr(), memory.as_ptr().cast());
    drop((lent, copied));
    assert_eq!(Arc::strong_count(&memory), 1);

    let memory = SharedBuffer::copied_from(&[1.0, 2.0]).unwrap();
    let lent = Arc::new(LentShared(memory.clone()));
    let export = lent.to_dlpack().unwrap();
    assert!(!export.view().is_copied() && !export.view().is_read_only());
    let copied = lent.to_dlpack_with(&COPY).unwrap();
    assert!(copied.view().is_copied());
    assert_ne!(copied.view().as_ptr(), memory.as_ptr().cast_const().cast());
}

#[derive(DLPack)]
enum Audio {
    Mono(Vec<f32>),
    Stereo {
        #[dlpack(data)]
        samples: Vec<[i16; 2]>,
        _witness: Witness,
    },
    #[dlpack(skip)]
    Silence,
}

/// CAP-10, CAP-21: an enum is exported as its variant: moved, shared, copied; a skipped variant is an error that leaks nothing.
#[test]
fn enums() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let stereo = || Audio::Stereo {
        samples: vec![[1, -1], [2, -2]],
        _witness: Witness(Arc::clone(&dropped)),
    };
    let ((), _, left) = counted(|| {
        for request in [ExportRequest::versioned(), COPY, LEGACY] {
            let export = stereo().into_dlpack_with(&request).unwrap();
            assert_eq!(export.view().shape(), [2, 2]);
            assert_eq!(export.view().to_vec::<i16>().unwrap(), [1, -1, 2, -2]);
        }
        let mono = Audio::Mono(vec![0.5]).into_dlpack().unwrap();
        assert_eq!(mono.view().as_slice::<f32>().unwrap(), [0.5]);
        let export = Arc::new(stereo()).to_dlpack_with(&LEGACY).unwrap();
        assert_eq!(
            export.view().to_vec::<[i16; 2]>().unwrap(),
            [[1, -1], [2, -2]]
        );
    });
    assert_eq!((dropped.load(Ordering::SeqCst), left), (4, 0));
    let skipped = Error::Skipped {
        name: "Audio",
        variant: "Silence",
    };
    let (error, _, left) = counted(|| Audio::Silence.into_dlpack().unwrap_err());
    assert_eq!((error, left), (skipped, 0));
}

#[derive(Record)]
#[repr(C)]
struct Trade {
    price: f64,
    size: u32,
    side: i32,
}

#[derive(DLPack)]
struct Market {
    #[dlpack(tensor(shape = [_, 2]))]
    quotes: Vec<f32>,
    #[dlpack(tensor)]
    depth: Vec<i64>,
    #[dlpack(columns)]
    trades: Vec<Trade>,
    _witness: Witness,
}

/// CAP-12, CAP-18, CAP-26, FLG-05: several tensors of one struct, columns among them, each keep it until the last of them is
/// dropped.
#[test]
fn tensors_by_name() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let market = Arc::new(Market {
        quotes: vec![1.0, 2.0, 3.0, 4.0],
        depth: vec![7, 8, 9],
        trades: vec![
            Trade {
                price: 1.5,
                size: 10,
                side: -1,
            },
            Trade {
                price: 2.5,
                size: 20,
                side: 1,
            },
        ],
        _witness: Witness(Arc::clone(&dropped)),
    });
    let ((), _, left) = counted(|| {
        let exports: Vec<(&str, Managed)> = (Market::NAMES.iter())
            .map(|&name| (name, market.to_dlpack_tensor(name).unwrap()))
            .collect();
        assert_eq!(Arc::strong_count(&market), exports.len() + 1);
        for (name, export) in &exports {
            let view = export.view();
            assert!(view.is_read_only() && !view.is_copied(), "{name}");
            match *name {
                "quotes" => assert_eq!(view.shape(), [2, 2]),
                "depth" => assert_eq!(view.to_vec::<i64>().unwrap(), [7, 8, 9]),
                "price" => assert_eq!(
                    (view.strides(), view.to_vec()),
                    (&[2][..], Ok(vec![1.5, 2.5]))
                ),
                "size" => assert_eq!(
                    (view.strides(), view.to_vec()),
                    (&[4][..], Ok(vec![10_u32, 20]))
                ),
                "side" => assert_eq!(view.to_vec(), Ok(vec![-1_i32, 1])),
                other => panic!("{other}"),
            }
        }
    });
    assert_eq!((Arc::strong_count(&market), left), (1, 0));
    for (request, kept) in [(COPY, 1), (LEGACY, 1), (ExportRequest::versioned(), 2)] {
        let export = market.to_dlpack_tensor_with("size", &request).unwrap();
        assert_eq!(export.view().to_vec::<u32>().unwrap(), [10, 20]);
        assert_eq!(Arc::strong_count(&market), kept);
    }
    let (error, _, _) = counted(|| market.to_dlpack_tensor("volume").unwrap_err());
    assert!(matches!(error, Error::NoSuchTensor { .. }), "{error:?}");
    assert_eq!(Arc::strong_count(&market), 1);
    drop(market);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

/// FLG-02, FLG-04, FLG-05: a shared export is read-only, a moved one is not, unless the type says so; `legacy = "refuse"` refuses
/// legacy consumers.
#[test]
fn flags_follow_ownership() {
    #[derive(DLPack)]
    #[dlpack(legacy = "refuse")]
    struct Strict(#[dlpack(data)] Vec<u8>);
    #[derive(DLPack)]
    struct Locked(#[dlpack(data, readonly)] Vec<u8>);

    let flags = |managed: Managed| {
        let raw = managed.into_raw();
        // SAFETY: the struct is valid until its deleter is called.
        let flags = unsafe { (*raw.as_ptr()).flags };
        delete(raw);
        flags
    };
    assert_eq!(flags(vec![1_u8].into_dlpack().unwrap()), 0);
    assert_eq!(
        flags(Arc::new(vec![1_u8]).to_dlpack().unwrap()),
        DLPACK_FLAG_BITMASK_READ_ONLY
    );
    assert_eq!(
        flags(Arc::new(vec![1_u8]).into_dlpack().unwrap()),
        DLPACK_FLAG_BITMASK_READ_ONLY
    );
    assert_eq!(
        flags(Locked(vec![1]).into_dlpack().unwrap()),
        DLPACK_FLAG_BITMASK_READ_ONLY
    );
    assert_eq!(
        flags(Locked(vec![1]).into_dlpack_with(&COPY).unwrap()),
        DLPACK_FLAG_BITMASK_IS_COPIED
    );
    let buffer = SharedBuffer::<u8>::zeroed(1).unwrap();
    assert_eq!(flags(Arc::new(buffer).to_dlpack().unwrap()), 0);

    let strict = Arc::new(Strict(vec![1]));
    assert_eq!(
        strict.to_dlpack_with(&LEGACY).unwrap_err(),
        Error::LegacyReadOnly
    );
    let refused = strict.to_dlpack().unwrap().into_legacy();
    assert_eq!(refused.map(drop).unwrap_err(), Error::LegacyReadOnly);
    delete_legacy(
        strict
            .to_dlpack_with(&LEGACY_COPY)
            .unwrap()
            .into_legacy()
            .unwrap(),
    );
    delete_legacy(
        Strict(vec![1])
            .into_dlpack_with(&LEGACY)
            .unwrap()
            .into_legacy()
            .unwrap(),
    );
    let copied = Arc::new(Locked(vec![5]))
        .to_dlpack()
        .unwrap()
        .into_legacy()
        .unwrap();
    // SAFETY: `into_legacy` returned the pointer, and this is its last use.
    let copied = unsafe { Managed::from_legacy(copied) }.unwrap();
    assert_eq!(copied.view().to_vec::<u8>().unwrap(), [5]);
    assert_eq!(Arc::strong_count(&strict), 1);
}

/// A reshaped tensor keeps shape and strides in its block if they fit. Longer ones are one allocation, which is freed when
/// shorter ones replace them, or with the tensor.
#[test]
fn lists_of_a_reshaped_tensor_are_allocated_only_if_they_exceed_the_block() {
    let memory = Arc::new([1_u8; 4]);
    let ((), _, left) = counted(|| {
        for room in 1..=3 {
            let shape = &[4_usize, 1, 1][..room];
            let mut whole = Parts::new().shape(shape).describe(memory.lend()).unwrap();
            // SAFETY: the owner keeps the memory.
            let tensor = unsafe {
                export_with(Arc::clone(&memory), &mut whole, &ExportRequest::versioned())
            };
            let mut tensor = tensor.unwrap();
            for rank in [room, room + 1, 1, room, room + 2, room + 1] {
                let mut shape = [1; 5];
                shape[rank - 1] = 4;
                let (reshaped, allocations, _) = counted(|| tensor.reshape(&shape[..rank]));
                tensor = reshaped.unwrap();
                let expected = usize::from(rank > room);
                assert_eq!(allocations, expected, "from {room} axes to {rank}");
                assert_eq!(tensor.view().to_vec::<u8>().unwrap(), [1; 4]);
            }
        }
    });
    assert_eq!(left, 0, "bytes are lost");
}

#[test]
fn strides_that_were_computed_are_freed_with_their_tensor() {
    let (strides, _, left) = counted(|| {
        let mut memory = [0_u8; 6];
        let mut foreign = made::Foreign::new(memory.as_mut_ptr(), made::U8, &[2, 3]);
        foreign.strides = None;
        // SAFETY: a valid struct over `memory`, which outlives the tensor.
        let tensor = unsafe { Managed::from_raw(foreign.versioned()) }.unwrap();
        <[i64; 2]>::try_from(tensor.view().strides()).unwrap()
    });
    assert_eq!((strides, left), ([3, 1], 0));
}
