//! Compares the fast paths with `describe_general`, for all combinations of small numbers.

use alloc::vec::Vec;

use super::*;
use crate::layout::shape::HOLE;
use crate::loan::{OwnLayout, access::Access};
use crate::{DataType, Device, DeviceType, Element, Loan, Parts};

mod random;

const SOME: &str = "a fast path must accept some of these tensors, and not all";

fn parts(parts: Parts<'_>) -> Annotation {
    parts.annotation.expect("possible parts")
}

fn assert_same(fast: &Descriptor<'_>, general: &Descriptor<'_>, annotation: &Annotation) {
    let found = [fast, general].map(|it| {
        let dims = (it.shape().to_vec(), it.strides().to_vec());
        let memory = (it.data.addr(), it.byte_offset, it.dtype, it.device);
        let policies = (it.legacy, it.release, it.stream, it.allocation);
        (memory, dims, it.read_only, it.access, policies)
    });
    assert_eq!(found[0], found[1], "{annotation:?}");
}

/// Compares `describe_shaped` with the result of `describe_general`, which may be an error.
fn assert_same_shaped(
    annotation: &Annotation,
    memory: &LentMemory,
    general: Result<&Descriptor<'_>, &Error>,
) {
    match (annotation.clone().describe_shaped(memory.clone()), general) {
        (Ok(shaped), Ok(general)) => assert_same(&shaped, general, annotation),
        (shaped, general) => assert_eq!(shaped.err().as_ref(), general.err(), "{memory:?}"),
    }
}

/// How many annotations each function described.
#[derive(Default)]
struct Described {
    packed: usize,
    shaped: usize,
    placed: usize,
    general: usize,
}

impl Described {
    /// Compares the results of the functions for one annotation. Returns whether `place_tensor` accepts it, and the general result.
    fn compare_results<'a>(
        &mut self,
        annotation: &Annotation,
        memory: &LentMemory,
    ) -> (bool, Result<Descriptor<'a>, Error>) {
        let general = annotation.clone().describe_general(memory.clone());
        if annotation.has_only_shape(memory) {
            assert_same_shaped(annotation, memory, general.as_ref());
            self.shaped += 1;
        }
        let wrong = "a fast path accepted what `describe_general` refuses";
        if annotation.locate_packed(memory).is_some() {
            let packed = annotation.clone().describe_over(memory.clone());
            let packed = packed.expect("`locate_packed` accepted it");
            assert_same(&packed, general.as_ref().expect(wrong), annotation);
            self.packed += 1;
        }
        let is_placed = annotation.place_tensor(memory).is_some();
        if is_placed {
            let placed = annotation.clone().describe_placed(memory.clone());
            let placed = placed.expect("`place_tensor` accepted it");
            assert_same(&placed, general.as_ref().expect(wrong), annotation);
            self.placed += 1;
        }
        self.general += usize::from(general.is_ok());
        (is_placed, general)
    }

    /// Compares the results, and checks that a fast path describes all common tensors.
    fn compare(&mut self, annotation: &Annotation, memory: &LentMemory) {
        let (is_placed, general) = self.compare_results(annotation, memory);
        if let Ok(general) = &general {
            let has_items = !general.shape().contains(&0);
            let has_any_bits = (annotation.reading).is_none_or(|it| it.any_bits);
            let given = annotation.shape.as_deref().unwrap_or_default();
            let holes = given.iter().filter(|&&extent| extent == HOLE).count();
            let is_covered = has_items
                && holes <= 1
                && general.shape().len() <= INLINE
                && general.dtype.itemsize_bits() % 8 == 0
                && (has_any_bits || general.dtype == memory.dtype);
            // Left to `describe_general`: an order for data that has its own strides.
            let has_order_twice =
                memory.layout.is_some() && matches!(annotation.strides, StrideRule::Order(_));
            let covers = is_placed || has_order_twice;
            assert!(covers || !is_covered, "{annotation:?} over {memory:?}");
            let has_own_layout = annotation.shape.is_some() || memory.layout.is_some();
            let is_plain = annotation.reading.is_none()
                && matches!(annotation.strides, StrideRule::None)
                && (annotation.offset, annotation.byte_offset) == (0, 0)
                && memory.device.device_type.is_addressable();
            if has_items && is_plain && !has_own_layout {
                assert!(annotation.locate_packed(memory).is_some(), "{memory:?}");
            }
        }
    }

    /// Compares the results for memory of several types, lengths, accesses and devices, and for data with its own layout.
    fn compare_all(&mut self, annotation: &Annotation) {
        for len in [0, 1, 4, 6, 7, 9, 32] {
            self.compare_over(annotation, &[0_u8; 32][..len]);
            self.compare_over(annotation, &[[0_u16; 3]; 32][..len]);
            self.compare_over(annotation, &[[[0.5_f64; 2]; 1]; 32][..len]);
            self.compare_over(annotation, &[true; 32][..len]);
        }
    }

    fn compare_over<T: Element>(&mut self, annotation: &Annotation, elements: &[T]) {
        let memory = Loan::from(elements).memory;
        self.compare(annotation, &memory);
        let access = Access::Exclusive.for_elements::<T>();
        let memory = LentMemory { access, ..memory };
        self.compare(annotation, &memory);
        let access = Access::Exclusive;
        self.compare(
            annotation,
            &LentMemory {
                access,
                ..memory.clone()
            },
        );
        let layout = |shape: &[i64], strides: &[i64], first| LentMemory {
            layout: Some(OwnLayout {
                shape: Dims::from(shape),
                strides: Dims::from(strides),
                first,
            }),
            ..memory.clone()
        };
        let len = size_to_i64(elements.len());
        self.compare(annotation, &layout(&[len], &[1], 0));
        self.compare(annotation, &layout(&[3, 2], &[2, 1], 0));
        self.compare(annotation, &layout(&[2, 3], &[1, 2], 1));
        self.compare(annotation, &layout(&[2, 2], &[0, -1], 2));
        let device = Device::new(DeviceType::VULKAN, 0);
        self.compare(annotation, &LentMemory { device, ..memory });
    }
}

/// The shapes of up to three axes with these extents, and some of six and seven axes.
fn shapes(extents: &[i64]) -> Vec<Vec<i64>> {
    let mut shapes = alloc::vec![Vec::new()];
    for rank in 0..3 {
        let longest = shapes.iter().filter(|shape: &&Vec<_>| shape.len() == rank);
        let longer = longest.flat_map(|shape| {
            extents
                .iter()
                .map(|&extent| [&shape[..], &[extent]].concat())
        });
        let longer: Vec<_> = longer.collect();
        shapes.extend(longer);
    }
    shapes.extend([6, 7].map(|rank| alloc::vec![1; rank]));
    shapes.push([&[2; 5][..], &[1]].concat());
    shapes
}

#[test]
fn fast_paths_agree_with_describe_general() {
    let mut described = Described::default();
    let mut compare = |annotation: Annotation| described.compare_all(&annotation);
    compare(parts(Parts::new()));
    compare(parts(Parts::new().read_only()));
    compare(parts(Parts::new().device(Device::CPU)));
    compare(parts(Parts::new().device(Device::cuda(0))));
    let types = [
        DataType::F32,
        DataType::BOOL,
        DataType::U16,
        DataType::F4_E2M1FN,
        DataType::F32.with_lanes(2),
    ];
    for offset in [0, 1, 2, i64::MAX] {
        compare(parts(Parts::new().offset(offset)));
        compare(parts(Parts::new().byte_offset(offset)));
        for dtype in types {
            compare(parts(Parts::new().dtype(dtype).byte_offset(offset)));
            compare(parts(Parts::new().shape([2]).dtype(dtype).offset(offset)));
        }
        compare(parts(Parts::new().elem::<[f32; 2]>().offset(offset)));
        compare(parts(Parts::new().elem::<bool>().byte_offset(offset)));
    }
    for shape in shapes(&[HOLE, 0, 1, 2, 3, i64::MAX]) {
        let shaped = |strides| Annotation {
            shape: Some(Dims::from(&shape[..])),
            strides,
            ..parts(Parts::new())
        };
        compare(shaped(StrideRule::None));
        compare(shaped(StrideRule::Order(Order::C)));
        compare(shaped(StrideRule::Order(Order::F)));
        for (offset, byte_offset) in [(0, -1), (0, 2), (1, 0), (1, 1)] {
            compare(Annotation {
                offset,
                byte_offset,
                ..shaped(StrideRule::None)
            });
        }
    }
    assert!((200..100_000).contains(&described.packed), "{SOME}");
    assert!((2_000..100_000).contains(&described.placed), "{SOME}");
    assert!((100..100_000).contains(&described.shaped), "{SOME}");
    assert!(described.general >= described.placed);
}

#[test]
fn given_strides_agree_with_describe_general() {
    let mut described = Described::default();
    for shape in shapes(&[HOLE, 0, 1, 3]) {
        let of_rank = |strides: &&Vec<i64>| strides.len() == shape.len();
        for strides in shapes(&[HOLE, i64::MAX, -2, 0, 1, 2, 4])
            .iter()
            .filter(of_rank)
        {
            let too_many = [&strides[..], &[0]].concat();
            for strides in [&strides[..], &too_many[..]] {
                for rule in [StrideRule::Elements, StrideRule::Bytes] {
                    for offset in [0, 4] {
                        let annotation = Annotation {
                            shape: Some(Dims::from(&shape[..])),
                            strides: rule(Dims::from(strides)),
                            offset,
                            ..parts(Parts::new())
                        };
                        described.compare_over(&annotation, &[[0_u16; 2]; 9]);
                    }
                }
            }
        }
    }
    assert!(described.packed < described.placed);
    // In items this stride has the value of the placeholder, which no tensor can have.
    let too_long = parts(Parts::new().shape([1]).strides([i64::MIN / 2]));
    described.compare_over(&too_long, &[[0_u16; 2]; 9]);
    // Strides that repeat what the shape already implies.
    let rows = parts(Parts::new().shape([2, 3]).strides([3, 1]));
    let numbers = [0_u16; 9];
    let memory = Loan::from(&numbers[..]).memory;
    assert!(rows.locate_packed(&memory).is_some());
    described.compare_over(&rows, &numbers);
    assert!((2_000..100_000).contains(&described.placed), "{SOME}");
}

#[test]
fn misaligned_memory_is_left_to_describe_general() {
    let numbers = [0_u64; 3];
    let mut memory = Loan::from(&numbers[..]).memory;
    memory.data = memory.data.wrapping_add(4);
    let bare = parts(Parts::new());
    assert!(bare.locate_packed(&memory).is_none());
    assert!(bare.place_tensor(&memory).is_none());
    let general = bare.clone().describe_general(memory.clone());
    assert!(
        matches!(general, Err(Error::Misaligned { .. })),
        "{general:?}"
    );
    assert_same_shaped(&bare, &memory, general.as_ref());
}

#[test]
fn describe_shaped_refuses_what_describe_general_refuses() {
    let bare = parts(Parts::new());
    let numbers = [0_u64; 3];
    let memory = Loan::from(&numbers[..]).memory;
    let torn = LentMemory {
        bytes: 12,
        ..memory.clone()
    };
    let null = LentMemory {
        data: core::ptr::null_mut(),
        ..memory.clone()
    };
    for memory in [torn, null] {
        assert!(bare.has_only_shape(&memory));
        let general = bare.clone().describe_general(memory.clone());
        assert!(general.is_err());
        assert_same_shaped(&bare, &memory, general.as_ref());
    }
    let layout = Some(OwnLayout {
        shape: Dims::from([3]),
        strides: Dims::from([1]),
        first: 0,
    });
    let with_layout = LentMemory {
        layout,
        ..memory.clone()
    };
    assert!(!bare.has_only_shape(&with_layout));
    assert!(!parts(Parts::new().strides([1])).has_only_shape(&memory));
    assert!(parts(Parts::new().shape([3])).has_only_shape(&memory));
    assert!(!parts(Parts::new().elem::<u8>()).has_only_shape(&memory));
    assert!(!parts(Parts::new().offset(1)).has_only_shape(&memory));
}
