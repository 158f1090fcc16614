//! Cases in which a planted bug was not noticed by any other test (`cargo xtask mutants core`).

#![expect(
    unsafe_code,
    reason = "makes foreign tensors by hand, and loans of addresses that are not read"
)]

mod made;

use core::fmt::Debug;
use core::panic::AssertUnwindSafe;
use core::ptr::{NonNull, without_provenance_mut};
use std::panic::catch_unwind;
use std::sync::Arc;

use dlpack_core::element::Plain;
use dlpack_core::layout::Dims;
use dlpack_core::{
    AsOrder, Buffer, DLPack, DataType, Descriptor, Device, DeviceType, Error, ExportRequest,
    FromDLPack, Layout, Loan, Managed, Order, Parts, SharedBuffer, StreamHandle, Version, binding,
};
use made::{F32, Foreign, I32, U8, dtype};

const U16: dlpack_core::abi::DLDataType = dtype(1, 16, 1);
const U32: dlpack_core::abi::DLDataType = dtype(1, 32, 1);
const U64: dlpack_core::abi::DLDataType = dtype(1, 64, 1);
const F4: dlpack_core::abi::DLDataType = dtype(17, 4, 1);

/// Imports a tensor whose shape and strides have the length that it says. Its memory outlives it, or is not read.
fn import(foreign: &Foreign) -> Result<Managed, Error> {
    // SAFETY: shape and strides are valid; all callers keep the memory, or do not read it.
    unsafe { Managed::from_raw(foreign.versioned()) }
}

/// An address without memory.
fn nowhere(address: usize) -> *mut u8 {
    without_provenance_mut(address)
}

/// LAY-22: items may reach the first and the last address of the address space, and no further.
#[cfg(target_pointer_width = "64")]
#[test]
fn the_first_and_the_last_address_are_the_limit() {
    let fits = |address: usize, byte_offset, dtype, shape: &[i64], strides: &[i64]| {
        let foreign = Foreign {
            byte_offset,
            ..Foreign::new(nowhere(address), dtype, shape).strides(strides)
        };
        let found = import(&foreign).map(drop);
        assert_eq!(foreign.deleted.times(), 1);
        found.is_ok()
    };
    // Down to address 0.
    for (dtype, bytes) in [(U8, 1), (I32, 4)] {
        let items = 64 / i64::from(bytes);
        assert!(fits(64, 0, dtype, &[items + 1], &[-1]));
        assert!(!fits(64, 0, dtype, &[items + 2], &[-1]));
        assert!(fits(32, 32, dtype, &[items + 1], &[-1]));
        assert!(!fits(32, 32, dtype, &[items + 2], &[-1]));
    }
    // Up to the last address.
    let last = usize::MAX - 15;
    for (dtype, items) in [(U8, 15), (I32, 3), (F4, 30)] {
        assert!(fits(last, 0, dtype, &[items], &[1]), "{dtype:?}");
        assert!(!fits(last, 0, dtype, &[items + 1], &[1]), "{dtype:?}");
        assert!(fits(last - 16, 16, dtype, &[items], &[1]), "{dtype:?}");
        assert!(!fits(last - 16, 16, dtype, &[items + 1], &[1]), "{dtype:?}");
    }
    // In both directions together they span at most the size of one allocation.
    let (middle, far) = (1 << 63, 1 << 62);
    assert!(fits(middle, 0, U8, &[2, 2], &[far / 2, -far / 2]));
    assert!(!fits(middle, 0, U8, &[2, 2], &[far, -far]));
}

/// Shared memory of a foreign producer is read and written in words of any size, whatever its alignment.
#[test]
fn shared_foreign_memory_of_any_alignment() {
    fn adopted<T: Plain + Copy + PartialEq + Debug>(
        values: [T; 3],
        dtype: dlpack_core::abi::DLDataType,
    ) {
        let mut memory = values;
        let foreign = Foreign::new(memory.as_mut_ptr().cast(), dtype, &[3]);
        let tensor = import(&foreign).unwrap().shared();
        assert_eq!(tensor.view().to_vec::<T>().unwrap(), values);
        let buffer = SharedBuffer::<T>::from_dlpack(tensor).unwrap();
        buffer.set(0, values[2]);
        assert_eq!(buffer.get(0), values[2]);
    }
    adopted([1_u8, 2, 3], U8);
    adopted([1_u16, 2, 3], U16);
    adopted([1_u32, 2, 3], U32);
    adopted([1_u64, 2, 3], U64);
    adopted([1.5_f32, 2.5, 3.5], F32);

    // At the least aligned address of each kind, the value is read by bytes or by halves.
    let mut memory = [0_u64; 4];
    let start: *mut u8 = memory.as_mut_ptr().cast();
    for (address, value) in (0..32_u8).enumerate() {
        // SAFETY: inside `memory`.
        unsafe { start.wrapping_add(address).write(value) };
    }
    for gap in 0..8_u8 {
        let data = start.wrapping_add(gap.into());
        let tensor = import(&Foreign::new(data, U64, &[2])).unwrap().shared();
        let bytes = core::array::from_fn(|at| gap + u8::try_from(at).unwrap());
        let found = tensor.view().to_vec::<u64>().unwrap();
        assert_eq!(found[0], u64::from_ne_bytes(bytes), "{gap}");
        let copy = ExportRequest {
            copy: Some(true),
            ..ExportRequest::versioned()
        };
        let copied = tensor.into_dlpack_with(&copy).unwrap();
        assert_eq!(copied.view().to_vec::<u64>().unwrap(), found, "{gap}");
    }
}

#[derive(DLPack)]
#[dlpack(elem = u8)]
struct Narrowed {
    #[dlpack(data)]
    words: SharedBuffer<u32>,
}

/// Own faults 16: memory that is shared in words of 4 bytes is also read, adopted and copied as bytes.
#[test]
fn shared_words_are_read_as_bytes() {
    let words = SharedBuffer::copied_from(&[1_u32.to_le(), 2_u32.to_le()]).unwrap();
    let bytes = [1, 0, 0, 0, 2, 0, 0, 0];
    let narrowed = Arc::new(Narrowed { words });
    let tensor = narrowed.to_dlpack().unwrap();
    assert_eq!(tensor.view().to_vec::<u8>().unwrap(), bytes);
    let adopted = SharedBuffer::<u8>::from_dlpack(tensor).unwrap();
    assert_eq!(adopted.to_vec(), bytes);
    let request = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let copied = narrowed.to_dlpack_with(&request).unwrap();
    assert_eq!(copied.view().as_slice::<u8>().unwrap(), bytes);
}

#[derive(DLPack)]
#[dlpack(elem = bool)]
struct Truths {
    #[dlpack(data)]
    bytes: Vec<u8>,
}

/// DTY-02: bytes are reinterpreted as `bool` only after each was checked.
#[test]
fn only_valid_bytes_are_reinterpreted_as_bools() {
    assert!(Truths { bytes: vec![0, 1] }.describe().is_ok());
    let error = Truths { bytes: vec![0, 7] }.describe().map(drop);
    assert_eq!(error, Err(Error::NotBool { found: 7 }));
}

/// A loan and an annotation must name the same stream.
#[test]
fn a_loan_and_its_annotation_name_one_stream() {
    // SAFETY: no driver gets the handles.
    let [one, other] = [0x1000, 0x2000].map(|handle| unsafe { StreamHandle::from_raw(handle) });
    let described = |given| {
        // SAFETY: no code reads the memory.
        let loan = unsafe { Loan::from_raw_parts(nowhere(256).cast::<f32>(), 4, Device::cuda(0)) };
        let described = Parts::new().stream(given).describe(loan.with_stream(one));
        described.map(|described| described.stream() == Some(one.into()))
    };
    assert_eq!(described(one), Ok(true));
    let error = described(other).unwrap_err();
    let expected = Error::StreamConflict {
        data: 0x1000,
        given: 0x2000,
    };
    assert_eq!(error, expected);
    // SAFETY: no driver gets the context.
    let in_context = |context| unsafe { one.in_context(context) };
    let described = |data, given| {
        // SAFETY: no code reads the memory.
        let loan = unsafe { Loan::from_raw_parts(nowhere(256).cast::<f32>(), 4, Device::cuda(0)) };
        Parts::new()
            .stream(given)
            .describe(loan.with_stream(data))
            .map(drop)
    };
    assert_eq!(described(in_context(0x9000), in_context(0x9000)), Ok(()));
    assert!(described(in_context(0x9000), in_context(0x8000)).is_err());
}

/// A list with its own layout: two rows of three.
struct Rows(Vec<u8>);

impl Buffer for Rows {
    fn lend(&self) -> Loan<'_> {
        Loan::from(&self.0[..]).with_layout(Dims::from([2, 3]), Dims::from([3, 1]), 0)
    }
}

#[derive(DLPack)]
#[dlpack(shape = [_, 4])]
struct WiderRows(#[dlpack(data)] Rows);

/// An annotation of data that has its own layout must repeat that layout; if it does not, the error contains both.
#[test]
fn an_annotation_must_repeat_the_layout_of_its_data() {
    let rows = Rows(vec![0; 6]);
    let what = |parts: Parts<'static>| match parts.describe(rows.lend()) {
        Err(Error::LayoutConflict { what, data, given }) => Some((what, data, given)),
        Err(error) => panic!("{error}"),
        Ok(described) => {
            assert_eq!(described.strides(), [3, 1]);
            None
        }
    };
    assert_eq!(what(Parts::new().strides([3, 1])), None);
    assert_eq!(what(Parts::new().order(Order::C)), None);
    let other = |what| Some((what, vec![3, 1], vec![1, 2]));
    assert_eq!(what(Parts::new().strides([1, 2])), other("strides"));
    assert_eq!(what(Parts::new().column_major()), other("order"));

    let error = WiderRows(rows).describe().map(drop).unwrap_err();
    let expected = Error::LayoutConflict {
        what: "shape",
        data: vec![2, 3],
        given: vec![-1, 4],
    };
    assert_eq!(error, expected);
}

static BYTES: [u8; 24] = [0; 24];

#[derive(DLPack)]
#[dlpack(
    // SAFETY: the pointer is that of all bytes of an immutable static, and no driver gets it.
    unsafe(data = BYTES.as_ptr(), len = BYTES.len())
)]
struct Somewhere {
    #[dlpack(device)]
    device: Device,
    #[dlpack(shape)]
    shape: Vec<usize>,
    #[dlpack(offset)]
    offset: usize,
}

/// DEV-03, DEV-14, DEV-19: only device types of DLPack 1.3 are exported, and memory that the CPU can read has the index 0, whether
/// the data or the key `device` names the device.
#[test]
fn devices_of_exports() {
    for number in [-7, 0, 1, 2, 3, 5, 6, 8, 10, 11, 13, 18, 19, 20, 21, 99] {
        let device = Device::new(DeviceType(number), 5);
        let index = if [1, 3, 11, 13].contains(&number) {
            0
        } else {
            5
        };
        let found = Device::new(DeviceType(number), index);
        let is_unknown = [-7, 0, 5, 6, 19, 20, 21, 99].contains(&number);
        let check = |described: Result<Descriptor<'_>, Error>| {
            let described = described.map(|described| described.device());
            let refused = Err(Error::UnknownDevice { found });
            assert_eq!(described, if is_unknown { refused } else { Ok(found) });
        };
        let layouts = [
            Parts::new(),
            Parts::new().shape([4, 6]),
            Parts::new().offset(4),
            Parts::new().shape([2, 3]).strides([3_i64, 1]),
            Parts::new().shape([1; 8]),
            Parts::new().shape([0, 2]),
        ];
        for parts in layouts {
            // SAFETY: the bytes are those of an immutable static, and no driver gets their address.
            let loan = unsafe { Loan::from_raw_parts(BYTES.as_ptr(), BYTES.len(), device) };
            check(parts.describe(loan));
        }
        for (shape, offset) in [(vec![24], 0), (vec![2, 3], 4), (vec![1; 8], 0)] {
            let somewhere = Somewhere {
                device,
                shape,
                offset,
            };
            check(somewhere.describe());
        }
    }
}

/// How a clone of a `Turncoat` differs from its original.
#[derive(Clone, Copy)]
enum Turn {
    Nothing,
    Writing,
    Device,
    Stream,
}

struct Turncoat {
    memory: SharedBuffer<u8>,
    device: Device,
    turn: Turn,
    has_turned: bool,
}

impl Clone for Turncoat {
    fn clone(&self) -> Self {
        Self {
            memory: self.memory.clone(),
            has_turned: true,
            ..*self
        }
    }
}

impl Buffer for Turncoat {
    fn lend(&self) -> Loan<'_> {
        let turn = if self.has_turned {
            self.turn
        } else {
            Turn::Nothing
        };
        let (start, len) = (self.memory.as_ptr(), self.memory.len());
        // SAFETY: the handle keeps the memory, and no driver gets its address.
        let reading = |device| unsafe { Loan::from_raw_parts(start, len, device) };
        // SAFETY: the handle keeps the memory, which is accessed only through the loan, and no driver gets its address.
        let writing = |device| unsafe { Loan::from_raw_parts_mut(start, len, device) };
        // SAFETY: no driver gets the handle.
        let stream = |handle| unsafe { StreamHandle::from_raw(handle) };
        match turn {
            Turn::Nothing => writing(self.device).with_stream(stream(0x1000)),
            Turn::Writing => reading(self.device).with_stream(stream(0x1000)),
            Turn::Device => writing(Device::new(DeviceType::ROCM, 1)).with_stream(stream(0x1000)),
            Turn::Stream => writing(self.device).with_stream(stream(0x2000)),
        }
    }
}

#[derive(DLPack)]
struct Turning {
    #[dlpack(data, owner)]
    owner: Turncoat,
}

/// Own faults 4: a clone that lends less than the original did cannot keep the tensor.
#[test]
fn a_clone_must_lend_what_its_original_lent() {
    let shared = |turn, device| {
        let memory = SharedBuffer::zeroed(4).unwrap();
        let has_turned = false;
        let owner = Turncoat {
            memory,
            device,
            turn,
            has_turned,
        };
        let tensor = Arc::new(Turning { owner }).to_dlpack();
        tensor.map(|tensor| assert!(!tensor.view().is_read_only()))
    };
    let elsewhere = Err(Error::OwnerElsewhere);
    assert_eq!(shared(Turn::Nothing, Device::CPU), Ok(()));
    assert_eq!(shared(Turn::Writing, Device::CPU), elsewhere);
    assert_eq!(shared(Turn::Device, Device::CPU), elsewhere);
    // Without streams on the device, it does not matter which stream is named.
    assert_eq!(shared(Turn::Stream, Device::CPU), Ok(()));
    assert_eq!(shared(Turn::Stream, Device::cuda(0)), elsewhere);
}

#[derive(FromDLPack, Debug)]
struct Narrow {
    #[dlpack(data)]
    _pairs: Vec<[u16; 2]>,
    #[dlpack(shape)]
    _rows: [u8; 1],
}

#[derive(FromDLPack, Debug)]
struct Steps {
    #[dlpack(data)]
    _pairs: SharedBuffer<[u16; 2]>,
    #[dlpack(byte_strides)]
    _steps: [usize; 1],
}

/// ERR-01, CPY-01: an error says what was found, in its unit, and what was expected.
#[test]
fn errors_of_imports_and_copies_say_what_was_expected() {
    let memory = [0_u16; 8];
    let start = memory.as_ptr().cast_mut().cast();
    let import = |foreign: Foreign| import(&foreign);

    let packed = import(Foreign::new(start, F4, &[2, 2]).strides(&[4, 1])).unwrap();
    let copy = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let error = packed.into_dlpack_with(&copy).unwrap_err().to_string();
    let text = "items of float4_e2m1fn share bytes, so they can be copied from a contiguous tensor only: found shape [2, 2] with strides \
        [4, 1]";
    assert_eq!(error, text);

    let long = import(Foreign::new(start, U16, &[300, 2]).strides(&[0, 1])).unwrap();
    let error = Narrow::from_dlpack(long).unwrap_err().to_string();
    assert_eq!(error, "a field of type `u8` cannot hold the extent 300");

    // Three items of two bytes to the next element, which has two items.
    let steps = import(Foreign::new(start, U16, &[2, 2]).strides(&[3, 1])).unwrap();
    let error = Steps::from_dlpack(steps).unwrap_err().to_string();
    let text = "axis 0 has a stride of 6 bytes; expected a multiple of the item size, 4 bytes";
    assert_eq!(error, text);

    let far = Foreign {
        byte_offset: u64::MAX,
        ..Foreign::new(start, U16, &[1])
    };
    let error = import(far).unwrap_err().to_string();
    assert!(error.ends_with("(18446744073709551615)"), "{error}");

    let stride = Parts::new().shape([1]).strides([i64::MIN]);
    let error = stride.describe(memory.lend()).unwrap_err().to_string();
    let text = "the stride of axis 0 is -9223372036854775808; expected a number between -(2^63 - 1) and 2^63 - 1";
    assert_eq!(error, text);
}

/// The numbers in an error are those that the user wrote, or those that the rules computed from them.
#[test]
fn errors_name_the_right_numbers() {
    let bytes = [0_u8; 4];
    let error = |parts: Parts<'static>| parts.describe(bytes.lend()).map(drop).unwrap_err();
    assert_eq!(
        error(Parts::new().offset(10)),
        Error::BadOffset { found: 10 }
    );
    assert_eq!(
        error(Parts::new().offset(-2)),
        Error::BadOffset { found: -2 }
    );
    let outside = error(Parts::new().shape([3]).strides([-2]).offset(1));
    let (first, end, len) = (-3, 2, 4);
    assert_eq!(outside, Error::OutOfBounds { first, end, len });
    let found = i128::from(i64::MIN);
    let stride = error(Parts::new().shape([1]).strides([i64::MIN]));
    assert_eq!(stride, Error::BadStride { axis: 0, found });

    let short = error(Parts::new().shape([2, 3]));
    let text = "shape [2, 3] needs 6 elements, the data has 4";
    assert_eq!(short.to_string(), text);
    let rows = [[0_u8; 3]; 4];
    let rows = Parts::new().shape([5]).describe(rows.lend()).map(drop);
    let text = "shape [5] needs 5 elements, the data has 4";
    assert_eq!(rows.unwrap_err().to_string(), text);
    let packed = error(Parts::new().shape([2, 3]).elem::<u16>());
    let text = "shape [2, 3] needs 6 elements, the data has 2";
    assert_eq!(packed.to_string(), text);

    let given = error(Parts::new().shape([2, 3]).strides([1, 2]));
    assert_eq!(given, short);

    let axes = |axes: &[usize]| {
        let tensor = [[[0_u8; 4]; 3]; 2].into_dlpack().unwrap();
        tensor.permute(axes).unwrap_err().to_string()
    };
    let text = "axis 5 does not exist: the tensor has 3 axes, counted from 0";
    assert_eq!(axes(&[0, 1, 5]), text);
    let text = "axis 1 is listed twice; list each once of the 3 axes, counted from 0";
    assert_eq!(axes(&[0, 1, 1]), text);

    let tensor = vec![[[0_u8; 4]; 3]; 2].into_dlpack().unwrap();
    let (axis, found, needed) = (2, 4, "5".to_owned());
    let error = tensor.view().to_vec::<[[u8; 5]; 3]>().unwrap_err();
    assert_eq!(
        error,
        Error::Extent {
            axis,
            found,
            needed
        }
    );
}

/// An empty tensor has no address, so it cannot be misaligned.
#[test]
fn an_empty_tensor_is_aligned_at_any_address() {
    let empty = Foreign::new(nowhere(1), I32, &[0]);
    let tensor = import(&empty).unwrap();
    assert_eq!(tensor.view().as_slice::<i32>(), Ok(&[][..]));
}

#[derive(DLPack)]
struct Deep {
    #[dlpack(data)]
    items: Vec<u8>,
    #[dlpack(shape)]
    dims: [usize; 7],
}

#[derive(DLPack)]
struct Frame {
    #[dlpack(data)]
    items: SharedBuffer<u8>,
    #[dlpack(shape, strides)]
    layout: Layout<2>,
}

/// Descriptions that skip the general path have the same result.
#[test]
fn fast_paths_describe_the_same_tensor() {
    let deep = Deep {
        items: vec![0; 128],
        dims: [2; 7],
    };
    assert_eq!(deep.describe().unwrap().shape(), [2; 7]);
    assert_eq!(deep.into_dlpack().unwrap().view().shape(), [2; 7]);

    let frame = Frame {
        items: SharedBuffer::zeroed(6).unwrap(),
        layout: Layout::column_major([2, 3]).unwrap(),
    };
    let lists = binding::lists(&frame).expect("they lie in the struct");
    assert_eq!(lists, (&[2, 3][..], &[1, 2][..]));
    assert!(binding::lists(&vec![0_u8; 3]).is_none());
    assert_eq!(frame.describe().unwrap().strides(), [1, 2]);
    assert_eq!(Dims::strides(&frame.layout).unwrap()[..], [1, 2]);

    let shared = SharedBuffer::<u8>::zeroed(2).unwrap();
    assert!(!shared.describe().unwrap().is_read_only());
    assert!(vec![0_u8; 2].describe().unwrap().is_read_only());
}

#[derive(DLPack)]
#[dlpack(
    // SAFETY: the pointer is that of the three items of a static.
    unsafe(data = self.0, len = 3)
)]
struct Constant(*const u16);

#[derive(DLPack)]
#[dlpack(
    // SAFETY: the pointer is that of the three items of a static.
    unsafe(data = self.0, len = 3)
)]
struct Unique(NonNull<u16>);

// SAFETY: the pointer is that of an immutable static.
unsafe impl Send for Constant {}
// SAFETY: the pointer is that of an immutable static.
unsafe impl Send for Unique {}

/// `unsafe(data = ..)` accepts any kind of pointer.
#[test]
fn every_kind_of_pointer_is_accepted() {
    static ITEMS: [u16; 3] = [1, 2, 3];
    let constant = Constant(ITEMS.as_ptr()).into_dlpack().unwrap();
    assert_eq!(constant.view().to_vec::<u16>().unwrap(), ITEMS);
    let unique = Unique(NonNull::from(&ITEMS).cast())
        .describe()
        .map(|described| described.as_ptr());
    assert_eq!(unique, Ok(ITEMS.as_ptr().cast()));
}

/// CPY-14: new memory is aligned, to a huge page if it is large. LAY-01: it has up to the largest number of axes, and is
/// writable.
#[test]
fn new_memory() {
    let big = Managed::zeroed(&[40 << 20], DataType::U8).unwrap();
    assert_eq!(big.view().as_ptr().addr() % (2 << 20), 0, "a huge page");
    assert!(Managed::zeroed(&[1; 64], DataType::U8).is_ok());
    let (found, most) = (65, 64);
    let error = Managed::zeroed(&[1; 65], DataType::U8).map(drop);
    assert_eq!(error, Err(Error::TooManyAxes { found, most }));
    let shared = Arc::new(Managed::zeroed(&[2], DataType::F32).unwrap());
    assert!(!shared.to_dlpack().unwrap().view().is_read_only());
}

/// The flags of a tensor survive sharing and re-exports.
#[test]
fn flags_survive_reexports() {
    // A tensor with no other user may be shared. A read-only tensor does not change.
    let shared = vec![1_u8].into_dlpack().unwrap().shared();
    assert_eq!(shared.view().as_slice::<u8>(), Err(Error::MayChange));
    let read_only = Arc::new(vec![1_u8]).to_dlpack().unwrap().shared();
    assert_eq!(read_only.view().as_slice::<u8>(), Ok(&[1][..]));

    // A versioned tensor is re-exported without a new struct; a foreign legacy tensor is wrapped.
    let start = vec![1_u8].into_dlpack().unwrap().into_raw();
    // SAFETY: `into_raw` just returned the pointer, and this is its only use.
    let again = unsafe { Managed::from_raw(start) }.unwrap();
    let again = again.into_dlpack().unwrap().into_raw();
    assert_eq!(again, start);
    // SAFETY: `into_raw` returned the pointer, and this is its only use.
    drop(unsafe { Managed::from_raw(again) });

    let mut memory = [1_u8, 2];
    let mut foreign = Foreign::new(memory.as_mut_ptr(), U8, &[2]);
    for device_type in [DeviceType::CPU, DeviceType::CUDA] {
        foreign.device.device_type = device_type.0;
        let before = foreign.deleted.times();
        // Its stream is unknown, so no driver is called.
        let raw = import(&foreign).unwrap().into_legacy().unwrap();
        // SAFETY: `into_legacy` just returned the pointer, and this is its only use.
        drop(unsafe { Managed::from_legacy(raw) });
        assert_eq!(foreign.deleted.times(), before + 1);
    }
    assert_eq!(binding::unordered_stream(Device::cuda(1)), Some(-1));
    assert_eq!(binding::unordered_stream(Device::CPU), None);
}

struct Strict(Vec<u8>);

impl DLPack for Strict {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        Parts::new().legacy_refuse().describe(self.0.lend())
    }
}

/// FLG-04: the policy for legacy consumers also holds for a copy that is shared again.
#[test]
fn a_copy_keeps_the_legacy_policy() {
    let copy = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let copied = Arc::new(Strict(vec![1]).into_dlpack_with(&copy).unwrap());
    let shared = copied.to_dlpack_with(&ExportRequest::default());
    assert_eq!(shared.map(drop), Err(Error::LegacyReadOnly));
}

#[derive(FromDLPack, PartialEq, Debug)]
enum Pairs {
    Pairs(Vec<[i32; 2]>),
    Numbers(Vec<i32>),
}

/// A type that does not declare what fits it accepts any tensor.
#[derive(PartialEq, Debug)]
struct Anything;

impl FromDLPack for Anything {
    fn from_dlpack(_: Managed) -> Result<Self, Error> {
        Ok(Self)
    }
}

#[derive(FromDLPack, PartialEq, Debug)]
enum Floats {
    Floats(Vec<f32>),
    Rest(Anything),
}

#[derive(FromDLPack)]
struct Bytewise {
    #[dlpack(data)]
    pairs: SharedBuffer<[i32; 2]>,
    #[dlpack(shape)]
    dims: Box<[usize]>,
    #[dlpack(byte_strides)]
    strides: [i64; 2],
}

/// Imports into every kind of list, and into the variant that fits.
#[test]
fn imports_into_lists_and_variants() {
    let tensor = || vec![1_i32, 2].into_dlpack().unwrap();
    assert_eq!(*Box::<[i32]>::from_dlpack(tensor()).unwrap(), [1, 2]);
    assert_eq!(*Arc::<[i32]>::from_dlpack(tensor()).unwrap(), [1, 2]);
    assert_eq!(Pairs::from_dlpack(tensor()), Ok(Pairs::Numbers(vec![1, 2])));
    let pairs = vec![[1_i32, 2]].into_dlpack().unwrap();
    assert_eq!(Pairs::from_dlpack(pairs), Ok(Pairs::Pairs(vec![[1, 2]])));
    assert_eq!(Floats::from_dlpack(tensor()), Ok(Floats::Rest(Anything)));
    let floats = vec![1.5_f32].into_dlpack().unwrap();
    assert_eq!(Floats::from_dlpack(floats), Ok(Floats::Floats(vec![1.5])));

    let grid = vec![[[1_i32, 2]; 3]; 4].into_dlpack().unwrap();
    let found = Bytewise::from_dlpack(grid).unwrap();
    assert_eq!((&*found.dims, found.strides), (&[4, 3][..], [24, 8]));
    assert_eq!(found.pairs.to_vec(), [[1, 2]; 12]);
}

/// A tensor is column-major if it has those strides, except for axes of size 1.
#[test]
fn the_order_follows_from_the_strides() {
    let column_major = |shape: [usize; 3], strides: [i64; 3]| {
        struct Lent(Vec<u8>, [usize; 3], [i64; 3]);
        impl DLPack for Lent {
            fn describe(&self) -> Result<Descriptor<'_>, Error> {
                let parts = Parts::new().shape(self.1).strides(self.2);
                parts.describe(self.0.lend())
            }
        }
        let tensor = Lent(vec![0; 24], shape, strides).into_dlpack().unwrap();
        tensor.view().is_column_major()
    };
    assert!(column_major([2, 3, 4], [1, 2, 6]));
    assert!(!column_major([2, 3, 4], [1, 2, 5]));
    assert!(column_major([2, 1, 4], [1, 9, 2]));
    assert!(!column_major([3, 2, 4], [1, 2, 6]));
}

/// The text of errors and of `{:?}`.
#[test]
fn everything_can_be_printed() {
    assert_eq!(
        format!("{:?}", DeviceType::CUDA),
        DeviceType::CUDA.to_string()
    );
    assert_eq!(
        format!("{:?}", Device::cuda(1)),
        Device::cuda(1).to_string()
    );
    assert!(Device::cuda(1).to_string().contains('1'));
    assert_eq!(format!("{:?}", DataType::F32), "float32");
    let unknown = DataType::new(99, 5, 2).to_string();
    assert_eq!(unknown, "(code 99, 5 bits)x2");
    assert_eq!(Version::new(1, 3).to_string(), "1.3");
    let layout = Layout::row_major([2, 3]).unwrap();
    assert_eq!(
        format!("{layout:?}"),
        "Layout { shape: [2, 3], strides: [3, 1] }"
    );
    let dims = Dims::extents(&[2, 3]).unwrap();
    assert_eq!(format!("{dims:?}"), "[2, 3]");
    assert_ne!(dims, Dims::extents(&[2, 4]).unwrap());
    let buffer = SharedBuffer::<u8>::zeroed(5).unwrap();
    assert!(format!("{buffer:?}").contains("len: 5"));
    let tensor = vec![1_u8].into_dlpack().unwrap();
    assert!(format!("{tensor:?}").starts_with("Managed("));
}

/// The getters of data types and orders.
#[test]
fn types_and_orders_by_value() {
    let dtype = DataType::new(2, 16, 3);
    assert_eq!((dtype.code(), dtype.bits(), dtype.lanes()), (2, 16, 3));
    assert_eq!(dtype.with_lanes(0).itemsize(), None);
    assert_eq!(
        (Order::F.as_order(), (&&Order::F).as_order()),
        (Order::F, Order::F)
    );
}

/// Elements inside of elements are verified one by one: a wrong implementation is also found inside an array.
#[test]
fn arrays_of_elements_are_verified() {
    use dlpack_core::__private0::{
        Axes, Homogeneous, SourceOf, WalkMutOf, WalkOf, describe_element_field,
    };

    #[derive(Clone, PartialEq, Debug)]
    struct Liar(f32);

    impl Homogeneous for Liar {
        type Scalar = f32;
        const TRAILING: Axes = Axes::of_array(1, Axes::NONE);
        fn walk_fields<'a>(&'a self, walk: WalkOf<'a, Self>) -> WalkOf<'a, Self> {
            walk
        }
        fn walk_fields_mut<'a>(&'a mut self, walk: WalkMutOf<'a, Self>) -> WalkMutOf<'a, Self> {
            walk
        }
        fn build_from(source: &mut SourceOf<'_, Self>) -> Self {
            Self(source.next(describe_element_field::<Self, f32>()))
        }
    }

    /// Its walk names a field of another value first.
    struct Twice([f32; 2]);

    impl Homogeneous for Twice {
        type Scalar = f32;
        const TRAILING: Axes = Axes::of_array(2, Axes::NONE);
        fn walk_fields<'a>(&'a self, walk: WalkOf<'a, Self>) -> WalkOf<'a, Self> {
            let [_, second] = &self.0;
            walk.field(second, describe_element_field::<Self, f32>())
                .field(second, describe_element_field::<Self, f32>())
        }
        fn walk_fields_mut<'a>(&'a mut self, walk: WalkMutOf<'a, Self>) -> WalkMutOf<'a, Self> {
            let [first, second] = &mut self.0;
            walk.field(second, describe_element_field::<Self, f32>())
                .field(first, describe_element_field::<Self, f32>())
        }
        fn build_from(source: &mut SourceOf<'_, Self>) -> Self {
            Self([source.next(describe_element_field::<Self, f32>()), 0.0])
        }
    }

    let panics = |look: &dyn Fn()| {
        let payload = catch_unwind(AssertUnwindSafe(look)).expect_err("a lie");
        let message = payload.downcast_ref::<&str>().copied();
        assert!(message.is_some_and(|text| text.contains("are not the value")));
    };
    let nested = || [[Liar(1.0)]];
    panics(&|| drop(vec![[Liar(1.0)]].into_dlpack()));
    panics(&|| drop(nested().lend()));
    panics(&|| drop(nested().lend_mut()));
    panics(&|| drop([Twice([1.0, 2.0])].lend()));
    panics(&|| drop([Twice([1.0, 2.0])].lend_mut()));
    #[cfg(feature = "ndarray")]
    {
        use ndarray::Array1;
        panics(&|| drop(Array1::from_vec(vec![Liar(1.0)]).lend()));
        panics(&|| drop(Array1::from_vec(vec![Liar(1.0)]).lend_mut()));
    }
    #[cfg(feature = "nalgebra")]
    {
        use nalgebra::{Point, SMatrix};
        let matrix = || [SMatrix::<Liar, 1, 1>::from_fn(|_, _| Liar(1.0))];
        panics(&|| drop(matrix().lend()));
        panics(&|| drop(matrix().lend_mut()));
        let point = || [Point::<Liar, 1>::from_slice(&[Liar(1.0)])];
        panics(&|| drop(point().lend()));
        panics(&|| drop(point().lend_mut()));
    }
}

/// An enum selects its variant by the data type and rank of the array types of ndarray and nalgebra.
#[cfg(all(feature = "ndarray", feature = "nalgebra"))]
#[test]
fn arrays_fit_by_type_and_rank() {
    #[derive(FromDLPack, PartialEq, Debug)]
    enum Array {
        Nested(nalgebra::DMatrix<[f32; 2]>),
        Matrix(nalgebra::DMatrix<f32>),
        Line(ndarray::ArcArray1<f64>),
        Rest(Anything),
    }
    let fits = |tensor: Result<Managed, Error>| match Array::from_dlpack(tensor.unwrap()) {
        Ok(Array::Nested(matrix)) => format!("nested {:?}", matrix.shape()),
        Ok(Array::Matrix(matrix)) => format!("matrix {:?}", matrix.shape()),
        Ok(Array::Line(line)) => format!("line {}", line.len()),
        Ok(Array::Rest(Anything)) => "rest".to_owned(),
        Err(error) => error.to_string(),
    };
    let matrix = vec![[1.5_f32; 3]; 2];
    assert_eq!(fits(matrix.into_dlpack()), "matrix (2, 3)");
    let nested = vec![[[1.5_f32; 2]; 3]; 2];
    assert_eq!(fits(nested.into_dlpack()), "nested (2, 3)");
    assert_eq!(fits(vec![1.5_f64; 4].into_dlpack()), "line 4");
    assert_eq!(fits(vec![1.5_f32; 4].into_dlpack()), "rest");
    assert_eq!(fits(vec![[1.5_f64; 2]; 4].into_dlpack()), "rest");
    assert_eq!(fits(vec![[1_i32; 2]; 4].into_dlpack()), "rest");
    assert_eq!(fits(vec![1_i32; 4].into_dlpack()), "rest");
}

/// An ndarray array that is imported in column-major order has that order.
#[cfg(feature = "ndarray")]
#[test]
fn arrays_in_the_order_of_the_struct() {
    #[derive(FromDLPack)]
    #[dlpack(order = "F")]
    struct Matrix(#[dlpack(data)] ndarray::Array2<i32>);

    let tensor = vec![[1_i32, 2, 3]; 2].into_dlpack().unwrap();
    let Matrix(array) = Matrix::from_dlpack(tensor).unwrap();
    assert_eq!(array.strides(), [1, 2]);
    assert_eq!(array, ndarray::array![[1, 2, 3], [1, 2, 3]]);
}

#[test]
fn an_error_about_a_stream_lists_the_streams_of_the_device() {
    for (device, streams) in [
        (Device::cuda(0), "a CUstream"),
        (Device::rocm(0), "a hipStream_t"),
        (Device::CPU, "none, or -1"),
    ] {
        let message = Error::BadStream { found: 5, device }.to_string();
        assert!(message.contains(streams), "{message}");
    }
}

/// The size that the data determines, beside an axis without indices.
#[test]
fn no_elements_fill_any_hole_beside_an_empty_axis() {
    #[derive(DLPack)]
    #[dlpack(shape = [_, columns])]
    struct Empty {
        #[dlpack(data)]
        items: Vec<u8>,
        columns: usize,
    }
    let items = Vec::new();
    let empty = Empty { items, columns: 0 };
    assert_eq!(empty.describe().unwrap().shape(), [0, 0]);
    let items = vec![1];
    let full = Empty { items, columns: 0 };
    assert!(matches!(
        full.describe(),
        Err(Error::NotInferable {
            elements: 1,
            others: 0
        })
    ));
}
