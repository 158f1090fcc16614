//! Compares annotations over memory with a naive model: the crate accepts exactly the tensors that stay inside, and reads exactly
//! their items.
//!
//! `DLPACK_CASES` sets the number of random cases, `DLPACK_SEED` the seed of the first.

#![expect(unsafe_code, reason = "reads back the bytes of exported tensors")]

mod dice;
mod oracle;

use dice::Dice;
use dlpack_core::__private0::List;
use dlpack_core::{
    DLPack, Descriptor, Element, Error, ExportRequest, Loan, LoanMut, Managed, Parts, TensorRef,
};
use oracle::{Case, KINDS, Kind, Reason, Strides, Tensor};
use std::sync::Arc;

const SIZE: usize = 256;

#[repr(align(16))]
struct Aligned([u8; SIZE]);

/// Each byte differs from its neighbours.
static MEMORY: Aligned = {
    let mut bytes = [0; SIZE];
    let mut at = 0_u8;
    loop {
        bytes[at as usize] = at.wrapping_mul(37).wrapping_add(11);
        if at == u8::MAX {
            break Aligned(bytes);
        }
        at += 1;
    }
};

/// A struct whose annotation is a random case.
#[derive(Clone, Debug)]
struct Annotated {
    case: Case,
    shift: usize,
}

impl Annotated {
    fn new(shift: usize, mut case: Case) -> Self {
        case.address = MEMORY.0.as_ptr().addr() + shift;
        Self { case, shift }
    }

    fn bytes(&self) -> &'static [u8] {
        &MEMORY.0[self.shift..self.shift + self.case.len]
    }

    /// The bytes of all items, found by an index walk.
    fn items(&self, tensor: &Tensor) -> Vec<u8> {
        let itemsize = self.case.kind.item_bits / 8;
        let size = usize::try_from(itemsize).unwrap();
        (tensor.places().into_iter())
            .flat_map(|place| {
                let from = i128::try_from(tensor.first).unwrap() + place * itemsize;
                let from = usize::try_from(from).unwrap();
                self.bytes()[from..from + size].iter().copied()
            })
            .collect()
    }
}

impl DLPack for Annotated {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.case.parts().describe(Loan::from(self.bytes()))
    }
}

/// Compares the crate with the model. Returns `true` if both accept.
fn check(annotated: &Annotated) -> bool {
    let case = &annotated.case;
    match (case.verdict(), annotated.describe()) {
        (Ok(tensor), Ok(found)) => {
            same(case, &tensor, found.shape(), found.strides());
            let address = if tensor.is_empty() {
                0
            } else {
                case.address + tensor.first
            };
            assert_eq!(found.as_ptr().addr(), address, "{case:?}");
            assert_eq!(found.byte_offset(), 0, "{case:?}");
            drop(found);
            check_items(annotated, &tensor);
            true
        }
        (Err(against), Err(error)) => {
            let named = Reason::of(&error).is_some_and(|reason| against.contains(&reason));
            assert!(named, "{case:?}\n{error:?}, not one of {against:?}");
            false
        }
        (expected, found) => panic!("{case:?}\nfound {found:?}\nexpected {expected:?}"),
    }
}

fn same(case: &Case, tensor: &Tensor, shape: &[i64], strides: &[i64]) {
    let equal = |expected: &[i128], found: &[i64]| {
        expected.len() == found.len()
            && expected
                .iter()
                .zip(found)
                .all(|(&e, &f)| i128::from(f) == e)
    };
    assert!(
        equal(&tensor.shape, shape) && equal(&tensor.strides, strides),
        "{case:?}\nfound {shape:?} {strides:?}\nexpected {tensor:?}"
    );
}

/// Exports and reads every item by each function.
fn check_items(annotated: &Annotated, tensor: &Tensor) {
    let few = tensor.is_empty() || tensor.shape.iter().product::<i128>() <= 64;
    if !few || annotated.case.kind.item_bits % 8 != 0 {
        return;
    }
    let expected = if tensor.is_empty() {
        vec![]
    } else {
        annotated.items(tensor)
    };
    let case = &annotated.case;

    let shared = Arc::new(annotated.clone()).to_dlpack().unwrap();
    let view = shared.view();
    same(case, tensor, view.shape(), view.strides());
    let read = match case.kind.name {
        "u8" | "u8, as lent" => Some((view.to_vec::<u8>().unwrap(), iterated(&view))),
        "[u8; 3]" => Some((view.to_vec::<[u8; 3]>().unwrap().concat(), iterated(&view))),
        "u16" => {
            let bytes = |values: Vec<u16>| values.iter().flat_map(|v| v.to_ne_bytes()).collect();
            let iterated = view.iter::<u16>().unwrap().collect();
            Some((bytes(view.to_vec().unwrap()), bytes(iterated)))
        }
        "f64" => {
            let bytes = |values: Vec<f64>| values.iter().flat_map(|v| v.to_ne_bytes()).collect();
            let iterated = view.iter::<f64>().unwrap().collect();
            Some((bytes(view.to_vec().unwrap()), bytes(iterated)))
        }
        _ => None,
    };
    if let Some((gathered, iterated)) = read {
        assert_eq!(gathered, expected, "{case:?}");
        assert_eq!(iterated, expected, "{case:?}");
    }

    let request = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let copy = annotated.clone().into_dlpack_with(&request).unwrap();
    assert_eq!(contents(&copy), expected, "{case:?}");
}

fn iterated(view: &TensorRef<'_>) -> Vec<u8> {
    let items = view.iter::<u8>().unwrap();
    let len = items.len();
    let items: Vec<u8> = items.collect();
    assert_eq!(items.len(), len, "the iterator knows its length");
    items
}

/// The bytes of a contiguous tensor.
fn contents(tensor: &Managed) -> Vec<u8> {
    let view = tensor.view();
    assert!(view.is_contiguous());
    if view.as_ptr().is_null() {
        assert_eq!(view.len_bytes(), 0);
        return vec![];
    }
    // SAFETY: the tensor is contiguous and live, so it has `len_bytes` bytes from its address on.
    unsafe { core::slice::from_raw_parts(view.as_ptr(), view.len_bytes()) }.to_vec()
}

fn random_number(dice: &mut Dice) -> i64 {
    match dice.below(400) {
        0 => i64::MAX - dice.between(0, 2),
        1 => dice.between(0, 6) - i64::MAX,
        2 => 1 << dice.below(63),
        3 => -(1 << dice.below(63)),
        _ => dice.between(-4, 4),
    }
}

fn random_extent(dice: &mut Dice) -> i64 {
    match dice.below(300) {
        0 => dice.between(-5, -1),
        1 => i64::MAX - dice.between(0, 2),
        2 => 1 << dice.below(63),
        3..=8 => i64::MIN, // written `_`
        9..=30 => 0,
        31..=99 => 1,
        _ => dice.between(1, 5),
    }
}

fn random_case(dice: &mut Dice) -> Annotated {
    let rank = match dice.below(100) {
        0 => 60 + dice.below(8),
        1..=5 => 5 + dice.below(4),
        _ => dice.below(5),
    };
    let kind = dice.one_of(KINDS);
    let shape = (0..rank).map(|_| random_extent(dice)).collect();
    let shape = (dice.below(12) != 0).then_some(shape);
    let list = |dice: &mut Dice, scale: i64| -> Vec<i64> {
        let axes = shape.as_ref().map_or(1, Vec::len) + usize::from(dice.below(60) == 0);
        let stride = |dice: &mut Dice| match dice.below(40) {
            0 => i64::MIN, // written `_`
            1 => random_number(dice),
            _ => random_number(dice).saturating_mul(scale),
        };
        (0..axes).map(|_| stride(dice)).collect()
    };
    let strides = match dice.below(8) {
        0 | 1 => Strides::Packed,
        2 => Strides::ColumnMajor,
        3..=5 => Strides::Elements(list(dice, 1)),
        _ => {
            let bytes = i64::try_from(kind.item_bits).unwrap() / 8;
            Strides::Bytes(list(dice, bytes.max(1)))
        }
    };
    let offset = |dice: &mut Dice, most: i64| match dice.below(60) {
        0 => random_number(dice),
        1..=25 => dice.between(0, most),
        _ => 0,
    };
    let aligned = dice.below(3) != 0;
    let shift = if aligned { 0 } else { dice.below(17) };
    let case = Case {
        address: 0,
        len: if dice.below(4) == 0 {
            dice.below(24)
        } else {
            120 + dice.below(120)
        },
        kind,
        shape,
        strides,
        offset: offset(dice, 12),
        byte_offset: if aligned {
            offset(dice, 3).saturating_mul(16)
        } else {
            offset(dice, 40)
        },
    };
    Annotated::new(shift, case)
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().expect("a number"))
}

/// LAY-01, LAY-08, LAY-13, LAY-14, LAY-15, LAY-18, LAY-19, LAY-20, LAY-22, DTY-11: a million random annotations. Each is refused
/// for a reason of the model, or accepted with the model's shape and strides and then read item by item; faults 64, 65, 66, 67.
#[test]
fn random_annotations() {
    let cases = setting("DLPACK_CASES", if cfg!(miri) { 300 } else { 1_000_000 });
    let seed = setting("DLPACK_SEED", 0x5eed);
    let mut accepted = 0_u64;
    for number in 0..cases {
        let annotated = random_case(&mut Dice(seed.wrapping_add(number)));
        let outcome = std::panic::catch_unwind(|| check(&annotated));
        let Ok(fine) = outcome else {
            panic!(
                "to repeat: DLPACK_SEED={} DLPACK_CASES=1",
                seed.wrapping_add(number)
            );
        };
        accepted += u64::from(fine);
    }
    println!("{accepted} of {cases} accepted");
    // A generator of only valid or only invalid cases would prove nothing.
    if cases >= 1000 {
        let share = accepted * 100 / cases;
        assert!((20..80).contains(&share), "{accepted} of {cases} accepted");
    }
}

fn kind(name: &str) -> Kind {
    *KINDS.iter().find(|kind| kind.name == name).expect("a kind")
}

fn small_kinds() -> impl Iterator<Item = Kind> {
    (KINDS.iter().copied())
        .filter(|kind| ["u8", "u8, as lent", "u16", "float4", "[u8; 3]"].contains(&kind.name))
}

/// Calls `check` with every tensor of at most two axes of sizes below 4, with small strides and offsets.
fn for_all_small(mut check: impl FnMut(&Annotated)) {
    // Under Miri and valgrind, where each case is slow, fewer cases are requested.
    let quick = cfg!(miri) || setting("DLPACK_CASES", u64::MAX) < 1000;
    let (most, span, ends) = if quick { (2, 1, 2) } else { (4, 3, 8) };
    for kind in small_kinds().take(if cfg!(miri) { 2 } else { 5 }) {
        for len in 0..=ends {
            for offset in 0..=4 {
                let mut with = |shape: &[i64], strides: &[i64]| {
                    let case = Case {
                        address: 0,
                        len,
                        kind,
                        shape: Some(shape.to_vec()),
                        strides: Strides::Elements(strides.to_vec()),
                        offset,
                        byte_offset: 0,
                    };
                    check(&Annotated::new(0, case));
                };
                with(&[], &[]);
                for a in 0..most {
                    for s in -span..=span {
                        with(&[a], &[s]);
                        for b in 0..most {
                            for t in -span..=span {
                                with(&[a, b], &[s, t]);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// LAY-14, LAY-15, LAY-18, LAY-22: every small tensor without gaps; faults 64.
#[test]
fn all_small_annotations() {
    let (mut all, mut accepted) = (0, 0);
    for_all_small(|annotated| {
        all += 1;
        accepted += usize::from(check(annotated));
    });
    assert!(
        accepted * 20 > all && accepted * 2 < all,
        "{accepted} of {all}"
    );
}

/// LAY-16: a tensor that repeats an item is never writable, and one without gaps or overlaps is; faults 29.
#[test]
fn overlapping_tensors_are_read_only() {
    let mut memory = Aligned(MEMORY.0);
    let (mut writable, mut cautious) = (0, 0);
    for_all_small(|annotated| {
        let case = &annotated.case;
        let Ok(tensor) = case.verdict() else { return };
        let loan = LoanMut::from(&mut memory.0[..case.len]);
        let Ok(found) = case.parts().describe_mut(loan) else {
            // The address differs from the one that the model judged.
            return;
        };
        let mut places = tensor.places();
        places.sort_unstable();
        let overlaps = places.windows(2).any(|two| two[0] == two[1]);
        assert!(!overlaps || found.is_read_only(), "writable: {case:?}");
        let axes = tensor.shape.iter().filter(|&&extent| extent > 1).count();
        if !overlaps && found.is_read_only() {
            // Axes that interleave without overlap may be treated as overlapping; a single axis cannot.
            assert!(axes > 1 && !tensor.is_empty(), "read-only: {case:?}");
            cautious += 1;
        }
        writable += usize::from(!found.is_read_only());
    });
    assert!(
        writable > 10 * cautious,
        "{writable} writable, {cautious} read-only for caution"
    );

    for (shape, strides) in [
        (&[3_i64, 4, 5][..], &[20_i64, 5, 1][..]),
        (&[5, 4, 3], &[1, 5, 20]),
        (&[4, 3, 5], &[5, 20, 1]),
        (&[2, 2, 2], &[40, 10, 2]),
        (&[1, 1], &[0, 0]),
        (&[1, 5], &[0, 1]),
        (&[0, 5], &[0, 0]),
        (&[], &[]),
    ] {
        let parts = Parts::new().shape(shape).strides(strides);
        let found = parts.describe_mut(LoanMut::from(&mut memory.0[..]));
        assert!(!found.unwrap().is_read_only(), "{shape:?} {strides:?}");
    }
}

/// LAY-05, LAY-18, LAY-19, LAY-22, LAY-02: shape and strides that follow from the types describe the same tensor as the same
/// values in an annotation, or fail with the same error; faults 63, 64.
#[test]
fn inferred_and_given_layouts_agree() {
    fn compare<T: Element + Copy>(item: T) {
        let extents = [0, 1, 2, 3, 8, 1 << 32, i64::MAX, -1, -2, i64::MIN];
        let facts = |found: Result<Descriptor<'_>, Error>| {
            found.map(|found| {
                let lists = (found.shape().to_vec(), found.strides().to_vec());
                (
                    lists,
                    found.as_ptr(),
                    found.dtype(),
                    found.is_read_only(),
                    found.len_bytes(),
                )
            })
        };
        let (mut fine, mut refused) = (0, 0);
        for len in [0, 1, 2, 4, 6, 8, 9] {
            let mut items = vec![item; len];
            let mut check = |shape: Option<&[i64]>| {
                let unsaid = || {
                    shape.map_or(Parts::new(), |shape| {
                        Parts::new().shape(List(Ok(shape.into())))
                    })
                };
                let said = || unsaid().elem::<T>();
                let short = facts(unsaid().describe(Loan::from(&items[..])));
                let long = facts(said().describe(Loan::from(&items[..])));
                assert_eq!(short, long, "{shape:?} over {len}");
                *(if short.is_ok() {
                    &mut fine
                } else {
                    &mut refused
                }) += 1;
                let short = facts(unsaid().describe_mut(LoanMut::from(&mut items[..])));
                let long = facts(said().describe_mut(LoanMut::from(&mut items[..])));
                assert_eq!(short, long, "{shape:?} over {len}, to write");
            };
            check(None);
            check(Some(&[]));
            for a in extents {
                check(Some(&[a]));
                for b in extents {
                    check(Some(&[a, b]));
                    for c in extents {
                        check(Some(&[a, b, c]));
                    }
                    check(Some(&[1, 2, a, 1, b, 1, 2]));
                }
            }
        }
        assert!(fine > 100 && refused > 100);
    }
    compare(1_u8);
    compare(1_u16);
    compare(1.0_f64);
    compare(true);
    compare(1_i128);
    compare([1_u8, 2, 3]);
    compare([0_u8; 0]);
}

/// LAY-03, LAY-05, LAY-18: a tensor without axes has one item; an empty tensor has a null address and contiguous strides,
/// whatever the annotation says; faults 55, 56.
#[test]
fn scalars_and_empty_tensors() {
    let scalar = Parts::new()
        .shape([0_u8; 0])
        .describe(Loan::from(&[7_u16, 8][..]))
        .unwrap();
    assert_eq!((scalar.shape(), scalar.len_bytes()), (&[][..], 2));
    assert!(
        Parts::new()
            .shape([0_u8; 0])
            .describe(Loan::from(&[0_u16; 0][..]))
            .is_err()
    );

    let max = i64::MAX;
    for (shape, strides, expected) in [
        (&[0_i64][..], &[-99_i64][..], &[1_i64][..]),
        (&[0, 3], &[5, 7], &[3, 1]),
        (&[3, 0], &[max, -max], &[1, 1]),
        (&[3, 0, 2], &[0, 0, 0], &[2, 2, 1]),
        (&[max, max, 0], &[1, 1, 1], &[max, 1, 1]),
    ] {
        let parts = Parts::new().shape(shape).strides(strides);
        let loan = [0_u32; 1];
        let found = parts.describe(Loan::from(&loan[..])).unwrap();
        assert_eq!((found.shape(), found.strides()), (shape, expected));
        assert!(found.as_ptr().is_null(), "{shape:?}");
        assert_eq!(found.len_bytes(), 0);
    }
}

/// LAY-19, LAY-22: arithmetic near the limits of an `i64` does not overflow, and no invalid number is accepted; faults 63, 64,
/// 66, 67.
#[test]
fn huge_numbers() {
    const BIG: i64 = 1 << 32;
    const MAX: i64 = i64::MAX;
    let u16s = kind("u16");
    for (shape, strides, offset, byte_offset) in [
        (vec![BIG, BIG, 16, 4], Strides::Packed, 0, 0),
        (
            vec![BIG, BIG, 16, 4],
            Strides::Elements(vec![0, 0, 0, 0]),
            0,
            0,
        ),
        (vec![MAX], Strides::Packed, 0, 0),
        (vec![MAX], Strides::Elements(vec![0]), 0, 0),
        (vec![MAX], Strides::Elements(vec![2]), 0, 0),
        (vec![2, 2], Strides::Elements(vec![MAX, MAX]), 0, 0),
        (vec![2, 2], Strides::Elements(vec![MAX, -MAX]), 0, 0),
        (vec![2], Strides::Elements(vec![-MAX]), MAX, 0),
        (vec![2], Strides::Bytes(vec![-MAX + 1]), 0, 0),
        (vec![1], Strides::Packed, MAX, MAX),
        (vec![1], Strides::Packed, 0, -1),
        (vec![1], Strides::Packed, -1, 2),
        (vec![-5, -2], Strides::Packed, 9, 0),
        (vec![-1, -1], Strides::Elements(vec![0, 0]), 0, 0),
        (vec![-1, 0], Strides::Packed, 0, 0),
        (vec![1; 65], Strides::Packed, 0, 0),
    ] {
        let case = Case {
            address: 0,
            len: 64,
            kind: u16s,
            shape: Some(shape),
            strides,
            offset,
            byte_offset,
        };
        assert!(
            !check(&Annotated::new(0, case.clone())),
            "accepted: {case:?}"
        );
    }
    // Each stride alone leads out of the address space, and is never applied.
    let alone = Case {
        address: 0,
        len: 64,
        kind: u16s,
        shape: Some(vec![1, 1]),
        strides: Strides::Elements(vec![MAX, -MAX]),
        offset: 31,
        byte_offset: 0,
    };
    assert!(check(&Annotated::new(0, alone)));
}

/// DTY-11, DTY-12: items of less than a byte are stored from the low bits on, so that a byte has two of them, and a tensor starts
/// at a byte; faults 73.
#[test]
fn small_values_share_bytes() {
    use dlpack_core::DataType;

    let bytes = [0x21_u8, 0x43, 0x65];
    let fp4 = || Parts::new().dtype(DataType::F4_E2M1FN);
    let found = fp4().describe(Loan::from(&bytes[..])).unwrap();
    assert_eq!((found.shape(), found.len_bytes()), (&[6][..], 3));
    assert!(fp4().shape([7]).describe(Loan::from(&bytes[..])).is_err());
    let odd = fp4().shape([5]).describe(Loan::from(&bytes[..])).unwrap();
    assert_eq!(odd.len_bytes(), 3);
    assert_eq!(
        fp4()
            .offset(1)
            .shape([2])
            .describe(Loan::from(&bytes[..]))
            .unwrap_err(),
        Error::PartialOffset { bits: 4 }
    );
    let second = fp4()
        .offset(2)
        .shape([4])
        .describe(Loan::from(&bytes[..]))
        .unwrap();
    assert_eq!(second.as_ptr(), &raw const bytes[1]);
    let padded = Parts::new().dtype(DataType::F4_E2M1FN.padded());
    assert_eq!(
        padded.describe(Loan::from(&bytes[..])).unwrap().shape(),
        [3]
    );

    // Items of six bits: four of them fill three bytes.
    let fp6 = Parts::new().dtype(DataType::F6_E2M3FN);
    assert_eq!(fp6.describe(Loan::from(&bytes[..])).unwrap().shape(), [4]);

    #[derive(Clone, Debug)]
    struct Pairs([u8; 3]);
    impl DLPack for Pairs {
        fn describe(&self) -> Result<Descriptor<'_>, Error> {
            Parts::new()
                .dtype(DataType::F4_E2M1FN)
                .describe(Loan::from(&self.0[..]))
        }
    }
    let request = ExportRequest {
        copy: Some(true),
        ..ExportRequest::versioned()
    };
    let copy = Pairs(bytes).into_dlpack_with(&request).unwrap();
    assert_eq!(contents(&copy), bytes);
    assert!(copy.view().is_copied());
}
