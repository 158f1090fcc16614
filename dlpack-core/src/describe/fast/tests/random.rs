//! Compares the fast paths with `describe_general`, for random memory and annotations.

use super::*;
use crate::element::{F4E2M1FNx2, F6E2M3FNx4};

#[path = "../../../../tests/dice/mod.rs"]
mod dice;

use dice::Dice;

/// Draws memory and annotations.
struct Generator(Dice);

impl Generator {
    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        self.0.one_of(choices)
    }

    /// True in one of so many cases.
    fn one_in(&mut self, cases: u64) -> bool {
        self.0.draw() % cases == 0
    }

    /// Numbers for `rank` axes, most of them small.
    fn draw_dims(&mut self, rank: usize, small: &[i64], extreme: &[i64]) -> Dims {
        let extremes = self.one_in(8);
        let mut dims = Dims::zeroed(rank);
        for place in &mut *dims {
            let rare = extremes && self.one_in(2);
            *place = self.one_of(if rare { extreme } else { small });
        }
        dims
    }

    fn draw_offset(&mut self) -> i64 {
        if self.one_in(2) {
            return 0;
        }
        if self.one_in(16) {
            return self.one_of(&EXTREME);
        }
        self.one_of(&[0, 1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 48, -1, -2, -3, -8, -24])
    }

    fn draw_rank(&mut self) -> usize {
        self.one_of(&[0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8])
    }

    fn draw_extents(&mut self, rank: usize) -> Dims {
        let extreme = [HOLE, 0, -1, i64::MAX, i64::MAX / 2, 1 << 32, 1 << 61];
        self.draw_dims(rank, &[1, 1, 1, 2, 2, 3, 4, 7], &extreme)
    }

    fn draw_strides(&mut self, rank: usize) -> Dims {
        let small = [
            0, 1, 1, 2, 2, 3, 4, 6, 8, 12, 16, 24, 32, -1, -2, -4, -24, HOLE,
        ];
        self.draw_dims(rank, &small, &EXTREME)
    }

    /// Memory of elements of `T`, inside `bytes`.
    fn draw_memory<T: Element>(&mut self, bytes: &[u64]) -> LentMemory {
        let mut memory = Loan::from(&[] as &[T]).memory;
        let first = self.one_of(&[0, 0, 0, 0, 0, 0, 1, 2, 4, 8]);
        memory.data = bytes.as_ptr().cast::<u8>().cast_mut().wrapping_add(first);
        let elements = self.one_of(&[0, 1, 2, 3, 4, 6, 7, 8, 9, 12, 24, 32, 48, 64]);
        // A column of records ends with a part of an element.
        let rest = self.one_of(&[0, 0, 0, 0, 1, 2, 5]);
        memory.bytes = (elements * size_of::<T>() + rest).min(size_of_val(bytes) - first);
        if self.one_in(64) {
            memory.data = core::ptr::null_mut();
        }
        let every = [
            Access::Read,
            Access::Exclusive,
            Access::Shared,
            Access::ReadShared,
        ];
        memory.access = self.one_of(&every).for_elements::<T>();
        let devices = [
            Device::CPU,
            Device::CPU,
            Device::cuda(0),
            Device::new(DeviceType::VULKAN, 1),
            Device::new(DeviceType::TPU, 0),
        ];
        memory.device = self.one_of(&devices);
        memory.any_device = self.one_in(4);
        if self.one_in(3) {
            let rank = self.draw_rank();
            let more = usize::from(self.one_in(16));
            memory.layout = Some(OwnLayout {
                shape: self.draw_extents(rank),
                strides: self.draw_strides(rank + more),
                first: self.one_of(&[0, 0, 0, 1, 2, 3, 7, elements, usize::MAX, usize::MAX / 2]),
            });
        }
        memory
    }

    fn draw_annotation(&mut self, memory: &LentMemory) -> Annotation {
        let types = [
            DataType::F32,
            DataType::BOOL,
            DataType::U8,
            DataType::U16,
            DataType::F4_E2M1FN,
            DataType::F6_E2M3FN,
            DataType::F4_E2M1FN.padded(),
            DataType::F4_E2M1FN.with_lanes(2),
            DataType::F32.with_lanes(2),
            DataType::U8.with_lanes(3),
            DataType::U16.with_lanes(0),
            DataType::new(99, 8, 1),
            memory.dtype,
        ];
        let parts = Parts::new();
        let parts = match self.0.draw() % 16 {
            0 => parts.elem::<u8>(),
            1 => parts.elem::<bool>(),
            2 => parts.elem::<[u16; 2]>(),
            3 => parts.elem::<[[u8; 2]; 3]>(),
            4 => parts.elem::<F4E2M1FNx2>(),
            5 => parts.elem::<F6E2M3FNx4>(),
            6 => parts.elem::<[F4E2M1FNx2; 2]>(),
            7 | 8 => parts.dtype(self.one_of(&types)),
            9 => parts.elem::<[u8; 0]>(),
            _ => parts,
        };
        let mut annotation = self::parts(parts);
        let layout_rank = memory.layout.as_ref().map(|it| it.shape.len());
        let rank = match layout_rank {
            Some(rank) if !self.one_in(8) => rank,
            _ => self.draw_rank(),
        };
        if self.one_in(2) || layout_rank.is_none() && !self.one_in(8) {
            annotation.shape = Some(self.draw_extents(rank));
            if let (Some(layout), false) = (&memory.layout, self.one_in(4)) {
                annotation.shape = Some(layout.shape.clone());
            }
        }
        annotation.strides = match self.0.draw() % 8 {
            0 | 1 => StrideRule::Elements(self.draw_strides(rank)),
            2 | 3 => StrideRule::Bytes(self.draw_strides(rank)),
            4 => StrideRule::Order(Order::F),
            5 => StrideRule::Order(Order::C),
            _ => StrideRule::None,
        };
        if let (Some(layout), true) = (&memory.layout, self.one_in(3)) {
            annotation.strides = StrideRule::Elements(layout.strides.clone());
        }
        annotation.offset = self.draw_offset();
        annotation.byte_offset = self.draw_offset();
        if self.one_in(4) {
            annotation.device = Some(self.one_of(&[
                memory.device,
                memory.device,
                Device::cuda(0),
                Device::new(DeviceType(99), 0),
            ]));
        }
        annotation.read_only = self.one_in(4);
        annotation
    }
}

/// Strides and offsets. Products and sums of them overflow.
const EXTREME: [i64; 10] = [
    i64::MAX,
    i64::MIN + 1,
    i64::MIN / 2,
    i64::MAX / 2,
    1 << 32,
    -(1 << 32),
    (1 << 60) + 1,
    -(1 << 60),
    i64::MAX - 7,
    1000,
];

/// Any combination of memory and annotation. Unlike the lists above, it contains elements that share bytes, partial elements, up
/// to eight axes and numbers that overflow.
#[test]
fn random_descriptions_agree_with_describe_general() {
    let (mut described, mut random) = (Described::default(), Generator(Dice(1)));
    let bytes = [0x0100_0001_0000_0100_u64; 600];
    // Miri is slow.
    let cases: usize = if cfg!(miri) { 300 } else { 30_000 };
    for _ in 0..cases {
        let memory = match random.0.draw() % 12 {
            0 => random.draw_memory::<u8>(&bytes),
            1 => random.draw_memory::<bool>(&bytes),
            2 | 3 => random.draw_memory::<u16>(&bytes),
            4 => random.draw_memory::<[u16; 3]>(&bytes),
            5 => random.draw_memory::<[[f64; 2]; 1]>(&bytes),
            6 => random.draw_memory::<F4E2M1FNx2>(&bytes),
            7 => random.draw_memory::<F6E2M3FNx4>(&bytes),
            8 => random.draw_memory::<[F6E2M3FNx4; 2]>(&bytes),
            9 => random.draw_memory::<[u32; 0]>(&bytes),
            10 => random.draw_memory::<u128>(&bytes),
            _ => random.draw_memory::<f32>(&bytes),
        };
        let annotation = random.draw_annotation(&memory);
        let _ = described.compare_results(&annotation, &memory);
    }
    assert!(
        (cases / 300..cases / 2).contains(&described.packed),
        "{SOME}"
    );
    assert!(
        (cases / 30..cases / 2).contains(&described.placed),
        "{SOME}"
    );
    assert!(described.general >= described.placed);
}
