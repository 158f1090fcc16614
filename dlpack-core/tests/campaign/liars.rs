//! Implementations in safe code whose answers change from call to call. Whatever they answer, a tensor has only bytes of that
//! value, memory that other code may read is not written, and the value is dropped once.

use core::ops::Deref;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::panic::catch_unwind;
use std::sync::Arc;

use dlpack_core::__private0::{
    Axes, Homogeneous, SourceOf, WalkMutOf, WalkOf, describe_element_field,
};
use dlpack_core::{
    AsDevice, AsOrder, Buffer, DLPack, DataType, Descriptor, Device, DeviceType, Error,
    ExportRequest, Loan, LoanMut, Managed, Order, Parts, Writable,
};

use crate::campaign;
use crate::dice::Dice;

/// Every byte of the memory of these values. It is no valid `bool`.
const OURS: u8 = 0xA5;
const ITEM: u32 = u32::from_ne_bytes([OURS; 4]);
/// Memory that cannot be written.
static CONSTANT: [u32; 16] = [ITEM; 16];

/// Draws the answer of each call, and counts the live values.
struct Lie {
    state: AtomicU64,
    living: Arc<AtomicUsize>,
}

impl Lie {
    fn new(dice: &mut Dice, living: &Arc<AtomicUsize>) -> Self {
        living.fetch_add(1, Ordering::SeqCst);
        Self {
            state: AtomicU64::new(dice.draw()),
            living: Arc::clone(living),
        }
    }

    fn dice(&self) -> Dice {
        Dice(self.state.fetch_add(0x1234_5678_9abc, Ordering::SeqCst))
    }

    /// Shape or strides that are often valid.
    fn list(&self) -> Vec<i64> {
        let mut dice = self.dice();
        match dice.below(8) {
            0 => vec![dice.between(-9, 99); dice.below(4)],
            1 => vec![1; dice.below(70)],
            2 => vec![dice.one_of(&[i64::MAX, i64::MIN, 1 << 62]); 1 + dice.below(2)],
            _ => (0..2).map(|_| dice.between(0, 5)).collect(),
        }
    }

    fn number(&self) -> i64 {
        let mut dice = self.dice();
        dice.one_of(&[0, 0, 0, 1, 3, 16, 17, -1, i64::MAX])
    }
}

impl Drop for Lie {
    fn drop(&mut self) {
        self.living.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Clone for Lie {
    fn clone(&self) -> Self {
        Self::new(&mut self.dice(), &self.living)
    }
}

impl AsOrder for Lie {
    fn as_order(&self) -> Order {
        self.dice().one_of(&[Order::C, Order::F])
    }
}

impl AsDevice for Lie {
    fn as_device(&self) -> Device {
        let host = Device::CPU;
        self.dice().one_of(&[
            host,
            host,
            host,
            Device::cuda(0),
            Device::new(DeviceType::CUDA_HOST, 0),
        ])
    }
}

impl From<Lie> for DataType {
    fn from(lie: Lie) -> Self {
        let known = [Self::U8, Self::U32, Self::F64, Self::C128, Self::BOOL];
        let rare = [
            Self::F4_E2M1FN,
            Self::F6_E2M3FN.padded(),
            Self::new(9, 9, 0),
        ];
        let mut dice = lie.dice();
        if dice.below(3) == 0 {
            dice.one_of(&rare)
        } else {
            dice.one_of(&known)
        }
    }
}

/// Owns three lists and derefs to a part of one of them, another part at each call. A clone has lists of its own.
struct Lists<T> {
    lists: [Vec<T>; 3],
    lie: Lie,
}

impl<T: Copy> Lists<T> {
    fn new(item: T, dice: &mut Dice, living: &Arc<AtomicUsize>) -> Self {
        Self {
            lists: core::array::from_fn(|_| vec![item; dice.below(40)]),
            lie: Lie::new(dice, living),
        }
    }

    fn part(&self) -> (usize, core::ops::Range<usize>) {
        let mut dice = self.lie.dice();
        let list = dice.below(3);
        let len = self.lists[list].len();
        let start = dice.below(2) * dice.below(len + 1);
        (list, start..len)
    }
}

impl<T: Copy> Clone for Lists<T> {
    fn clone(&self) -> Self {
        let mut dice = self.lie.dice();
        let item = self.lists.iter().flatten().next();
        let list = |dice: &mut Dice| item.map_or(vec![], |item| vec![*item; dice.below(40)]);
        Self {
            lists: core::array::from_fn(|_| list(&mut dice)),
            lie: self.lie.clone(),
        }
    }
}

impl<T> Deref for Lists<T>
where
    T: Copy,
{
    type Target = [T];

    fn deref(&self) -> &[T] {
        let (list, range) = self.part();
        &self.lists[list][range]
    }
}

/// [`Lists`] as a buffer, which also decides at each call whether it lends for writing.
#[derive(Clone)]
struct Lender(Lists<u32>);

impl Buffer for Lender {
    fn lend(&self) -> Loan<'_> {
        match self.0.lie.dice().below(4) {
            0 => Loan::from(&CONSTANT[..]),
            1 => self.0.lists[0].lend(),
            _ => Loan::from(&self.0[..]),
        }
    }

    fn lend_mut(&mut self) -> LoanMut<'_> {
        let (list, range) = self.0.part();
        if range.len() % 4 == 3 {
            return LoanMut::from(self.lend());
        }
        LoanMut::from(&mut self.0.lists[list][range])
    }
}

impl Writable for Lender {}

#[derive(DLPack)]
#[dlpack(shape = self.lie.list(), strides = self.lie.list(), offset = self.lie.number())]
struct Annotated {
    #[dlpack(data)]
    data: Lists<u32>,
    lie: Lie,
}

#[derive(DLPack)]
#[dlpack(shape = self.data.0.lie.list())]
struct Ordered {
    #[dlpack(data, writable)]
    data: Lender,
    #[dlpack(order)]
    order: Lie,
    #[dlpack(device)]
    device: Lie,
}

#[derive(DLPack)]
#[dlpack(shape = self.dtype.list())]
struct Typed {
    #[dlpack(data)]
    data: Lists<u8>,
    #[dlpack(dtype)]
    dtype: Lie,
}

#[derive(DLPack)]
#[dlpack(elem = [u16; 3])]
struct Bytes(Lists<u8>);

#[derive(DLPack)]
struct Kept {
    #[dlpack(data, owner)]
    data: Lists<u32>,
}

#[derive(DLPack)]
#[dlpack(shape = self.lie.list())]
struct KeptByLender {
    #[dlpack(data, owner)]
    data: Lender,
    lie: Lie,
}

/// Implements `DLPack` by hand, with different descriptions for reading and for writing.
struct ByHand(Lists<u32>);

impl DLPack for ByHand {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let offset = self.0.lie.number();
        Parts::new()
            .offset(offset)
            .describe(Loan::from(&self.0[..]))
    }

    fn describe_mut(&mut self) -> Result<Descriptor<'_>, Error> {
        let (list, range) = self.0.part();
        if range.is_empty() {
            return self.describe();
        }
        let shape = self.0.lie.list();
        let loan = LoanMut::from(&mut self.0.lists[list][range]);
        Parts::new().shape(shape).describe_mut(loan)
    }
}

/// An element whose field walk sometimes changes.
#[derive(Clone, Copy)]
#[repr(C)]
struct Twisted([u32; 2], u32);

static WALKS: AtomicU64 = AtomicU64::new(0);

impl Homogeneous for Twisted {
    type Scalar = u32;
    const TRAILING: Axes = Axes::of_array(3, Axes::NONE);

    fn walk_fields<'a>(&'a self, walk: WalkOf<'a, Self>) -> WalkOf<'a, Self> {
        let (pair, one) = (
            describe_element_field::<Self, [u32; 2]>(),
            describe_element_field::<Self, u32>(),
        );
        match Dice(WALKS.fetch_add(1, Ordering::SeqCst)).below(60) {
            0 => walk.field(&self.1, one).field(&self.0, pair),
            1 => walk.field(&self.0, pair).field(&CONSTANT[0], one),
            2 => walk.field(&self.0, pair),
            _ => walk.field(&self.0, pair).field(&self.1, one),
        }
    }

    fn walk_fields_mut<'a>(&'a mut self, walk: WalkMutOf<'a, Self>) -> WalkMutOf<'a, Self> {
        let (pair, one) = (
            describe_element_field::<Self, [u32; 2]>(),
            describe_element_field::<Self, u32>(),
        );
        match Dice(WALKS.fetch_add(1, Ordering::SeqCst)).below(60) {
            0 => walk.field(&mut self.1, one),
            1 => walk.field(&mut self.0, pair),
            _ => walk.field(&mut self.0, pair).field(&mut self.1, one),
        }
    }

    fn build_from(source: &mut SourceOf<'_, Self>) -> Self {
        let one = source.next(describe_element_field::<Self, u32>());
        match Dice(WALKS.fetch_add(1, Ordering::SeqCst)).below(20) {
            0 => Self([one; 2], one),
            1 => Self(
                source.next(describe_element_field::<Self, [u32; 2]>()),
                source.next(describe_element_field::<Self, u32>()),
            ),
            _ => Self(
                [one, source.next(describe_element_field::<Self, u32>())],
                one,
            ),
        }
    }
}

#[derive(DLPack)]
struct Elements {
    #[dlpack(data)]
    data: Vec<Twisted>,
    _lie: Lie,
}

/// LAY-22, FLG-05, CAP-20: a tensor of a value whose answers change.
#[test]
fn lying_implementations() {
    campaign("lying implementations", 20_000, |dice| {
        let living = Arc::default();
        let came_out = one(dice, &living);
        assert_eq!(living.load(Ordering::SeqCst), 0, "dropped once");
        came_out
    });
}

fn one(dice: &mut Dice, living: &Arc<AtomicUsize>) -> bool {
    let data = Lists::new(ITEM, dice, living);
    let bytes = Lists::new(OURS, dice, living);
    let (lie, other) = (Lie::new(dice, living), Lie::new(dice, living));
    match dice.below(9) {
        0 => export(Annotated { data, lie }, dice),
        1 => {
            let (data, order, device) = (Lender(data), lie, other);
            export(
                Ordered {
                    data,
                    order,
                    device,
                },
                dice,
            )
        }
        2 => export(
            Typed {
                data: bytes,
                dtype: lie,
            },
            dice,
        ),
        3 => export(Bytes(bytes), dice),
        4 => export(Kept { data }, dice),
        5 => export(
            KeptByLender {
                data: Lender(data),
                lie,
            },
            dice,
        ),
        6 => export(ByHand(data), dice),
        7 => export(Lender(data), dice),
        _ => {
            let data = vec![Twisted([ITEM; 2], ITEM); dice.below(9)];
            export(Elements { data, _lie: lie }, dice)
        }
    }
}

/// Exports the value by one of five functions, and checks the tensor if there is one.
fn export<T: DLPack + Sync + 'static>(mut value: T, dice: &mut Dice) -> bool {
    let request = ExportRequest {
        copy: dice.one_of(&[None, None, Some(true), Some(false)]),
        ..if dice.below(4) == 0 {
            ExportRequest::default()
        } else {
            ExportRequest::versioned()
        }
    };
    // A panic about the value, such as one about an incomplete element, counts as a refusal.
    let caught = |act: &mut dyn FnMut() -> Result<Managed, Error>| {
        catch_unwind(AssertUnwindSafe(act)).ok()?.ok()
    };
    match dice.below(5) {
        0 | 1 => {
            let mut value = Some(value);
            let act = &mut || value.take().expect("once").into_dlpack_with(&request);
            let tensor = caught(act);
            tensor.map(|tensor| check(tensor, dice)).is_some()
        }
        2 => catch_unwind(AssertUnwindSafe(|| value.describe_mut().is_ok())).unwrap_or(false),
        _ => {
            let shared = Arc::new(value);
            let mut tensors = [(); 2].map(|()| caught(&mut || shared.to_dlpack_with(&request)));
            if dice.below(2) == 0 {
                drop(shared);
            }
            let tensors = tensors.iter_mut().filter_map(Option::take);
            let each = tensors.map(|tensor| {
                let view = tensor.view();
                let alone = view.is_read_only() || view.is_copied();
                assert!(alone, "others may read it");
                check(tensor, dice);
            });
            each.count() != 0
        }
    }
}

/// Reads every byte of a tensor, and writes it if it is writable.
fn check(tensor: Managed, dice: &mut Dice) {
    let view = tensor.view();
    if !view.device().device_type.is_host_readable() {
        return;
    }
    let bits = usize::from(view.dtype().bits()) * usize::from(view.dtype().lanes());
    let is_padded = view.dtype().is_padded();
    let bits = if is_padded { 8 } else { bits };
    let items: i64 = view.shape().iter().product();
    // The largest number of items: three axes of 99 that all repeat one item.
    assert!((0..=99 * 99 * 99).contains(&items), "as long as its memory");
    if items > 0 {
        assert_ne!(view.dtype(), DataType::BOOL, "no byte of it is a bool");
    }
    let mut places = vec![0_i64];
    for (&extent, &stride) in view.shape().iter().zip(view.strides()) {
        places = (places.iter())
            .flat_map(|at| (0..extent).map(move |index| at + index * stride))
            .collect();
    }
    for place in places {
        let place = isize::try_from(place).expect("in memory");
        let bits = isize::try_from(bits).expect("a small item");
        for byte in (place * bits).div_euclid(8)..=(place * bits + bits - 1).div_euclid(8) {
            let at = view.as_ptr().wrapping_offset(byte).cast::<u8>();
            // SAFETY: `at` is an item of the tensor, which is live and in host memory.
            assert_eq!(unsafe { at.read() }, OURS, "memory of the liar's own");
            if !view.is_read_only() {
                // SAFETY: `at` is an item of the live tensor in host memory, and the tensor is writable.
                unsafe { at.cast_mut().write(OURS) };
            }
        }
    }
    // Elements are built by code of their type, which may panic.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        tensor.view().to_vec::<Twisted>().is_ok()
    }));
    if dice.below(2) == 0 {
        // SAFETY: `into_raw` just returned the pointer, and this is its only use.
        drop(unsafe { Managed::from_raw(tensor.into_raw()) });
    }
}
