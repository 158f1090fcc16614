//! The dtype of each element type, and its round trip through a tensor (DTY-01 to DTY-05, DTY-11 to DTY-13, FLG-07).

#![expect(
    unsafe_code,
    reason = "reads the exported struct, as a consumer does; makes tensors that another producer could make"
)]

use core::fmt::Debug;
use core::ptr::{NonNull, null_mut};

use dlpack_core::abi::{
    DLDataType, DLDevice, DLManagedTensorVersioned, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED,
    DLPackVersion, DLTensor,
};
use dlpack_core::element::{F4E2M1FNx2, F6E2M3FNx4, F6E3M2FNx4, Plain};
use dlpack_core::{
    Buffer, DLPack, DataType, Descriptor, Error, ExportRequest, FromDLPack, Loan, Managed, Parts,
    SharedBuffer, TensorRef,
};

/// The dtype of the exported struct, and whether its items are padded.
fn exported(tensor: Managed) -> ((u8, u8, u16), bool) {
    let raw = tensor.into_raw();
    // SAFETY: `into_raw` just returned the pointer, and the struct is live.
    let found = unsafe { raw.as_ref() };
    let DLDataType { code, bits, lanes } = found.dl_tensor.dtype;
    let padded = found.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED != 0;
    // SAFETY: `into_raw` returned the pointer, and this is its last use.
    drop(unsafe { Managed::from_raw(raw) });
    ((code, bits, lanes), padded)
}

/// A list that is exported in reverse.
struct Backwards<T>(Vec<T>);

impl<T: Plain> DLPack for Backwards<T> {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        Parts::new()
            .shape([self.0.len()])
            .strides([-1])
            .offset(self.0.len() - 1)
            .describe(self.0.lend())
    }
}

/// Exports a list of elements by every function, and imports it by every function.
fn check_round_trips<T: Plain + Clone + PartialEq + Debug>(
    values: &[T],
    number: (u8, u8, u16),
    padded: bool,
    axes: &[i64],
) {
    let what = core::any::type_name::<T>();
    let tensor = values.to_vec().into_dlpack().unwrap();
    let view = tensor.view();
    assert_eq!(view.shape()[0], i64::try_from(values.len()).unwrap());
    assert_eq!(view.shape()[1..], *axes, "{what}");
    assert!(view.is_contiguous(), "{what}");
    assert_eq!(view.len_bytes(), size_of_val(values), "{what}");
    assert_eq!(view.as_slice::<T>().unwrap(), values);
    assert_eq!(view.to_vec::<T>().unwrap(), values);
    assert!(view.to_vec::<[T; 7]>().is_err(), "{what}");
    assert_eq!(exported(tensor), (number, padded), "{what}");

    let reversed = Backwards(values.to_vec()).into_dlpack().unwrap();
    let mut expected = values.to_vec();
    expected.reverse();
    assert_eq!(reversed.view().to_vec::<T>().unwrap(), expected);
    assert!(reversed.view().as_slice::<T>().is_err(), "{what}");

    let pairs: Vec<[T; 2]> = values
        .chunks_exact(2)
        .map(|two| two.to_vec().try_into().unwrap())
        .collect();
    let tensor = pairs.clone().into_dlpack().unwrap();
    assert_eq!(tensor.view().shape()[1], 2, "{what}");
    assert_eq!(tensor.view().to_vec::<[T; 2]>().unwrap(), pairs);
    assert_eq!(Vec::<[T; 2]>::from_dlpack(tensor).unwrap(), pairs);

    let shared = SharedBuffer::copied_from(values).unwrap();
    assert_eq!(shared.to_vec(), values);
    assert_eq!(
        shared
            .clone()
            .into_dlpack()
            .unwrap()
            .view()
            .to_vec::<T>()
            .unwrap(),
        values
    );
    let adopted = SharedBuffer::<T>::from_dlpack(values.to_vec().into_dlpack().unwrap()).unwrap();
    assert_eq!(adopted.to_vec(), values);

    // DTY-13: the legacy struct has no flags.
    let legacy = values.to_vec().into_dlpack_with(&ExportRequest::default());
    match legacy {
        Ok(tensor) => assert!(!padded && tensor.view().version().is_none(), "{what}"),
        Err(error) => assert_eq!(
            (padded, error),
            (true, Error::LegacyPadded { dtype: T::DTYPE })
        ),
    }
}

/// DTY-01, DTY-02, DTY-04.
#[test]
fn rust_numbers() {
    check_round_trips(&[1_u8, 2, 255], (1, 8, 1), false, &[]);
    check_round_trips(&[1_u16, 2, u16::MAX], (1, 16, 1), false, &[]);
    check_round_trips(&[1_u32, 2, u32::MAX], (1, 32, 1), false, &[]);
    check_round_trips(&[1_u64, 2, u64::MAX], (1, 64, 1), false, &[]);
    check_round_trips(&[1_u128, 2, u128::MAX], (1, 128, 1), false, &[]);
    check_round_trips(
        &[1_usize, 2, usize::MAX],
        (1, usize::BITS.to_le_bytes()[0], 1),
        false,
        &[],
    );
    check_round_trips(&[-1_i8, 2, 3], (0, 8, 1), false, &[]);
    check_round_trips(&[-1_i16, 2, 3], (0, 16, 1), false, &[]);
    check_round_trips(&[-1_i32, 2, 3], (0, 32, 1), false, &[]);
    check_round_trips(&[-1_i64, 2, 3], (0, 64, 1), false, &[]);
    check_round_trips(&[-1_i128, 2, 3], (0, 128, 1), false, &[]);
    check_round_trips(
        &[-1_isize, 2, 3],
        (0, usize::BITS.to_le_bytes()[0], 1),
        false,
        &[],
    );
    check_round_trips(&[0.5_f32, -2.0, f32::MAX], (2, 32, 1), false, &[]);
    check_round_trips(&[0.5_f64, -2.0, f64::MAX], (2, 64, 1), false, &[]);
    check_round_trips(&[true, false, true], (6, 8, 1), false, &[]);
    check_round_trips(&[[1_u8, 2], [3, 4]], (1, 8, 1), false, &[2]);
}

/// DTY-05, DTY-11.
#[test]
fn groups_share_bytes() {
    let fours = [[1, 2], [3, 0xf], [0, 9]].map(F4E2M1FNx2::pack);
    let sixes = [[1, 2, 3, 0x3f], [0x20, 0, 0x15, 0x2a], [9, 8, 7, 6]];
    check_round_trips(&fours, (17, 4, 1), false, &[2]);
    check_round_trips(&sixes.map(F6E2M3FNx4::pack), (15, 6, 1), false, &[4]);
    check_round_trips(&sixes.map(F6E3M2FNx4::pack), (16, 6, 1), false, &[4]);
}

/// LAY-22: the items of a group share bytes, and strides of groups stay inside the memory.
#[test]
fn strides_of_groups_stay_inside_the_memory() {
    fn describe<T: Plain + Default>(strides: [i64; 2], offset: i64) -> Result<Vec<i64>, Error> {
        let groups = [T::default(); 6];
        let parts = Parts::new().shape([2, 3]).strides(strides).offset(offset);
        let described = parts.describe(Loan::from(&groups[..]))?;
        Ok(described.strides().to_vec())
    }
    fn check<T: Plain + Default>(items: i64) {
        let every = |strides| describe::<T>(strides, 0);
        assert_eq!(every([3, 1]), Ok(vec![3 * items, items, 1]));
        assert_eq!(every([1, 2]), Ok(vec![items, 2 * items, 1]));
        assert_eq!(
            describe::<T>([-3, 1], 3),
            Ok(vec![-3 * items, items, 1]),
            "the last three, then the first three"
        );
        for (strides, offset) in [([4, 1], 0), ([3, 1], 1), ([-3, 1], 2), ([1000, 1], 0)] {
            let refused = describe::<T>(strides, offset);
            assert!(
                matches!(refused, Err(Error::OutOfBounds { .. })),
                "{strides:?} {offset}: {refused:?}"
            );
        }
    }
    check::<F4E2M1FNx2>(2);
    check::<F6E2M3FNx4>(4);
    check::<F6E3M2FNx4>(4);
}

/// DTY-11: item `i` has the bits from `i * bits` on, counted from the lowest bit of the first byte.
#[test]
fn items_are_numbered_from_the_lowest_bit() {
    let in_bits = |bytes: &[u8], bits: usize| -> Vec<u8> {
        let bit = |at: usize| bytes[at / 8] >> (at % 8) & 1;
        (0..bytes.len() * 8 / bits)
            .map(|item| (0..bits).map(|at| bit(item * bits + at) << at).sum())
            .collect()
    };
    let mut seed = 1_u32;
    for _ in 0..1000 {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, a, b, c] = seed.to_le_bytes();
        let (four, six, other) = (
            F4E2M1FNx2::from_bytes([a]),
            F6E2M3FNx4::from_bytes([a, b, c]),
            F6E3M2FNx4::from_bytes([a, b, c]),
        );
        assert_eq!(four.unpack()[..], in_bits(&[a], 4));
        assert_eq!(six.unpack()[..], in_bits(&[a, b, c], 6));
        assert_eq!(other.unpack(), six.unpack());
        assert_eq!(F4E2M1FNx2::pack(four.unpack()), four);
        assert_eq!(F6E2M3FNx4::pack(six.unpack()), six);
        assert_eq!(F6E3M2FNx4::pack(other.unpack()), other);
    }
    // Bits above those of an item do not spill into the next one.
    assert_eq!(F4E2M1FNx2::pack([0xf1, 0xf2]).to_bytes(), [0x21]);
    assert_eq!(F6E2M3FNx4::pack([0xc0; 4]).to_bytes(), [0; 3]);
}

/// Bytes whose items get their type at run time: the export of a producer without groups.
struct Grouped {
    bytes: Vec<u8>,
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    dtype: DataType,
}

impl DLPack for Grouped {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        let mut parts = Parts::new().dtype(self.dtype).shape(&self.shape);
        if let Some(strides) = &self.strides {
            parts = parts.strides(strides);
        }
        parts.describe(self.bytes.lend())
    }
}

fn grouped(shape: &[i64], strides: Option<&[i64]>, dtype: DataType) -> Managed {
    Grouped {
        bytes: (0..48).collect(),
        shape: shape.to_vec(),
        strides: strides.map(<[i64]>::to_vec),
        dtype,
    }
    .into_dlpack()
    .unwrap()
}

#[test]
fn a_last_axis_of_whole_groups_is_read_in_groups() {
    let bytes: Vec<u8> = (0..48).collect();
    let fours = |view: TensorRef<'_>| {
        view.to_vec::<F4E2M1FNx2>()
            .map(|all| all.iter().flat_map(|x| x.to_bytes()).collect())
    };
    let f4 = DataType::F4_E2M1FN;
    for shape in [&[96][..], &[8, 12], &[48, 2], &[4, 4, 6], &[1, 96]] {
        let tensor = grouped(shape, None, f4);
        assert_eq!(
            tensor.view().as_slice::<F4E2M1FNx2>().unwrap().len(),
            48,
            "{shape:?}"
        );
        assert_eq!(fours(tensor.view()), Ok(bytes.clone()), "{shape:?}");
    }
    let sixes = grouped(&[2, 32], None, DataType::F6_E3M2FN);
    let groups = sixes.view().as_slice::<F6E3M2FNx4>().unwrap();
    assert_eq!(groups[15], F6E3M2FNx4::from_bytes([45, 46, 47]));
    let arrays = sixes.view().to_vec::<[F6E3M2FNx4; 8]>().unwrap();
    assert_eq!((arrays.len(), arrays[1][7]), (2, groups[15]));

    // Rows with a gap, and columns of pairs: no group is split.
    assert_eq!(
        fours(grouped(&[3, 4], Some(&[32, 1]), f4).view()),
        Ok(vec![0, 1, 16, 17, 32, 33])
    );
    assert_eq!(
        fours(grouped(&[2, 2, 2], Some(&[2, 6, 1]), f4).view()),
        Ok(vec![0, 3, 1, 4])
    );

    // Half a group, groups from the middle of a byte, items in another order.
    assert!(matches!(
        grouped(&[8, 3], None, f4).view().as_slice::<F4E2M1FNx2>(),
        Err(Error::Extent {
            axis: 1,
            found: 3,
            ..
        })
    ));
    for (shape, strides) in [(&[3, 2][..], &[3, 1][..]), (&[4], &[2]), (&[2, 2], &[1, 2])] {
        let tensor = grouped(shape, Some(strides), f4);
        assert!(tensor.view().as_slice::<F4E2M1FNx2>().is_err(), "{shape:?}");
        assert!(tensor.view().to_vec::<F4E2M1FNx2>().is_err(), "{shape:?}");
    }
    assert!(
        grouped(&[96], None, f4)
            .view()
            .to_vec::<F6E2M3FNx4>()
            .is_err()
    );
    assert_eq!(fours(grouped(&[0], None, f4).view()), Ok(vec![]));
    assert_eq!(fours(grouped(&[4, 0], None, f4).view()), Ok(vec![]));
    assert!(
        grouped(&[], None, f4)
            .view()
            .to_vec::<F4E2M1FNx2>()
            .is_err()
    );
}

/// Groups that other code may write at the same time are read byte by byte.
#[test]
fn shared_groups_are_read_whole() {
    let groups = [[1, 2, 3, 4], [5, 6, 7, 8]].map(F6E2M3FNx4::pack);
    let tensor = std::sync::Arc::new(SharedBuffer::copied_from(&groups).unwrap())
        .to_dlpack()
        .unwrap();
    assert!(!tensor.view().is_read_only());
    assert_eq!(tensor.view().to_vec::<F6E2M3FNx4>().unwrap(), groups);
}

#[test]
#[cfg(feature = "derive")]
fn a_struct_of_groups() {
    #[derive(dlpack_core::Element, Clone, Copy, PartialEq, Debug)]
    #[repr(C)]
    struct Block {
        low: F4E2M1FNx2,
        high: F4E2M1FNx2,
    }
    let block = |a, b| Block {
        low: F4E2M1FNx2::from_bytes([a]),
        high: F4E2M1FNx2::from_bytes([b]),
    };
    let blocks = vec![block(1, 2), block(3, 4), block(5, 6)];
    let tensor = blocks.clone().into_dlpack().unwrap();
    assert_eq!(tensor.view().shape(), [3, 2, 2]);
    assert_eq!(tensor.view().to_vec::<Block>().unwrap(), blocks);
}

/// The owner of a tensor that another library could make.
struct Foreign {
    data: Vec<u8>,
    lists: [i64; 2],
    tensor: DLManagedTensorVersioned,
}

/// A list of bytes, as another library could export it.
fn foreign(data: Vec<u8>, dtype: (u8, u8, u16), flags: u64) -> Managed {
    unsafe extern "C" fn free(tensor: *mut DLManagedTensorVersioned) {
        // SAFETY: a consumer passes the live struct that was made below.
        let owner = unsafe { (*tensor).manager_ctx };
        // SAFETY: the owner was leaked below, and a consumer calls the deleter once.
        drop(unsafe { Box::from_raw(owner.cast::<Foreign>()) });
    }

    let (code, bits, lanes) = dtype;
    let owner = Box::leak(Box::new(Foreign {
        lists: [i64::try_from(data.len()).unwrap(), 1],
        data,
        tensor: DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 3 },
            manager_ctx: null_mut(),
            deleter: Some(free),
            flags,
            dl_tensor: DLTensor {
                data: null_mut(),
                device: DLDevice {
                    device_type: 1,
                    device_id: 0,
                },
                ndim: 1,
                dtype: DLDataType { code, bits, lanes },
                shape: null_mut(),
                strides: null_mut(),
                byte_offset: 0,
            },
        },
    }));
    owner.tensor.dl_tensor.data = owner.data.as_mut_ptr().cast();
    let owner = &raw mut *owner;
    // SAFETY: `owner` was leaked just above, so it is live.
    let lists = unsafe { &raw mut (*owner).lists }.cast::<i64>();
    // SAFETY: `owner` is live.
    let tensor = unsafe { &raw mut (*owner).tensor };
    // SAFETY: no other code has a reference to the struct yet.
    let owned = unsafe { &mut *tensor };
    owned.dl_tensor.shape = lists;
    owned.dl_tensor.strides = lists.wrapping_add(1);
    owned.manager_ctx = owner.cast();
    // SAFETY: the struct is valid, and its deleter frees the memory that it points to.
    unsafe { Managed::from_raw(NonNull::new(tensor).unwrap()) }.unwrap()
}

/// An implementation by hand, in safe code, that omits the axes of its scalar, does not cause reads out of bounds.
#[test]
fn wrong_axes_cause_no_read_out_of_bounds() {
    use dlpack_core::__private0::{Axes, Homogeneous, SourceOf, WalkMutOf, WalkOf};

    #[derive(Debug)]
    struct Liar(#[expect(dead_code, reason = "what would be read from outside")] F6E2M3FNx4);

    impl Homogeneous for Liar {
        type Scalar = F6E2M3FNx4;
        const TRAILING: Axes = Axes::NONE;

        fn walk_fields<'a>(&'a self, walk: WalkOf<'a, Self>) -> WalkOf<'a, Self> {
            walk
        }

        fn walk_fields_mut<'a>(&'a mut self, walk: WalkMutOf<'a, Self>) -> WalkMutOf<'a, Self> {
            walk
        }

        fn build_from(source: &mut SourceOf<'_, Self>) -> Self {
            Self(dlpack_core::Element::build_from(source))
        }
    }

    // One item is one byte; a group is three.
    let tensor = foreign(vec![0], (15, 6, 1), 0);
    assert!(tensor.view().to_vec::<Liar>().is_err());
}

#[test]
#[cfg(feature = "half")]
fn half_floats() {
    use half::{bf16, f16};
    let values = [0.5_f32, -2.0, 3.0];
    check_round_trips(&values.map(f16::from_f32), (2, 16, 1), false, &[]);
    check_round_trips(&values.map(bf16::from_f32), (4, 16, 1), false, &[]);
}

/// DTY-03: `bits` counts both parts, and there is one lane.
#[test]
#[cfg(feature = "num-complex")]
fn complex_numbers() {
    use num_complex::Complex;
    let values = [(1.0_f32, 2.0_f32), (-3.0, 0.5), (0.0, 8.0)];
    check_round_trips(
        &values.map(|(re, im)| Complex { re, im }),
        (5, 64, 1),
        false,
        &[],
    );
    check_round_trips(
        &values.map(|(re, im)| Complex {
            re: f64::from(re),
            im: f64::from(im),
        }),
        (5, 128, 1),
        false,
        &[],
    );
    #[cfg(feature = "half")]
    check_round_trips(
        &values.map(|(re, im)| Complex {
            re: half::f16::from_f32(re),
            im: half::f16::from_f32(im),
        }),
        (5, 32, 1),
        false,
        &[],
    );
    // The real part comes first.
    let tensor = vec![Complex::new(1.0_f32, 2.0)].into_dlpack().unwrap();
    let parts = tensor.view().as_ptr().cast::<[f32; 2]>();
    // SAFETY: the two parts of the one item.
    assert_eq!(unsafe { parts.read() }, [1.0, 2.0]);
}

#[cfg(feature = "microfloat")]
mod microfloats {
    use super::*;
    use microfloat::*;

    macro_rules! floats {
        ($visit:ident) => {
            $visit! {
                f8e3m4, (7, 8, 1), 3;
                f8e4m3, (8, 8, 1), 7;
                f8e4m3b11fnuz, (9, 8, 1), 11;
                f8e4m3fn, (10, 8, 1), 7;
                f8e4m3fnuz, (11, 8, 1), 8;
                f8e5m2, (12, 8, 1), 15;
                f8e5m2fnuz, (13, 8, 1), 16;
                f8e8m0fnu, (14, 8, 1), 127;
                f6e2m3fn, (15, 6, 1), 1;
                f6e3m2fn, (16, 6, 1), 3;
                f4e2m1fn, (17, 4, 1), 1;
            }
        };
    }

    /// DTY-01, DTY-05, DTY-12, DTY-13.
    #[test]
    fn numbers() {
        macro_rules! numbers {
            ($($float:ident, $number:expr, $bias:literal;)*) => {$(
                check_round_trips(&[0.5, 1.0, 2.0].map($float::from_f32), $number, $number.1 < 8, &[]);
            )*};
        }
        floats!(numbers);
    }

    /// Asserts that the format of a type is the one in the DLPack name of its data type, digit by digit.
    #[test]
    fn type_names_match_their_formats() {
        macro_rules! names {
            ($($float:ident, $number:expr, $bias:literal;)*) => {$({
                let float = stringify!($float);
                let (bits, format) = float[1..].split_at(1);
                let name = format!("float{bits}_{format}");
                let dtype = <$float as dlpack_core::Element>::DTYPE;
                assert_eq!(dtype.to_string().trim_end_matches(", one a byte"), name);

                let digit = |at: usize| format[at..=at].parse::<u32>().unwrap();
                assert_eq!((digit(1), digit(3)), ($float::EXPONENT_BITS, $float::MANTISSA_BITS));
                let signed = u32::from(!format.ends_with("fnu"));
                assert_eq!($float::STORAGE_BITS, signed + digit(1) + digit(3), "{name}");
                let (_, width, _): (u8, u8, u16) = $number;
                assert_eq!($float::STORAGE_BITS, u32::from(width), "{name}");
                assert_eq!($float::EXPONENT_BIAS, $bias, "{name}");

                // The bits of 1.0 show where the exponent begins, independently of the constants.
                let one = $bias << $float::MANTISSA_BITS;
                assert_eq!(i32::from($float::from_f32(1.0).to_bits()), one, "{name}");
                let suffix = &format[4..];
                let codes = || 0..=((1_u16 << $float::STORAGE_BITS) - 1).to_le_bytes()[0];
                let infinities = codes().filter(|&code| $float::from_bits(code).is_infinite()).count();
                let nans: Vec<u8> = codes().filter(|&code| $float::from_bits(code).is_nan()).collect();
                match suffix {
                    "" => assert_eq!((infinities, nans.len()), (2, (2 << $float::MANTISSA_BITS) - 2)),
                    "fn" if bits == "8" => assert_eq!((infinities, &nans[..]), (0, &[0x7f, 0xff][..])),
                    "fn" => assert_eq!((infinities, &nans[..]), (0, &[][..])),
                    "fnuz" | "b11fnuz" => assert_eq!((infinities, &nans[..]), (0, &[0x80][..])),
                    "fnu" => assert_eq!((infinities, &nans[..]), (0, &[0xff][..])),
                    _ => panic!("what does {suffix} mean?"),
                }
            })*};
        }
        floats!(names);
    }

    /// FLG-07: the padding flag has no effect on a type of whole bytes.
    #[test]
    fn any_byte_of_another_producer_is_a_value() {
        let data: Vec<u8> = (0..=255).collect();
        let flag = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
        for (number, flags) in [((17, 4, 1), flag), ((15, 6, 1), flag), ((16, 6, 1), flag)] {
            let tensor = foreign(data.clone(), number, flags);
            let view = tensor.view();
            let bits: Option<Vec<u8>> = match number.0 {
                17 => view
                    .as_slice::<f4e2m1fn>()
                    .ok()
                    .map(|x| x.iter().map(|x| x.to_bits()).collect()),
                15 => view
                    .as_slice::<f6e2m3fn>()
                    .ok()
                    .map(|x| x.iter().map(|x| x.to_bits()).collect()),
                _ => view
                    .to_vec::<f6e3m2fn>()
                    .ok()
                    .map(|x| x.iter().map(|x| x.to_bits()).collect()),
            };
            assert_eq!(bits.as_ref(), Some(&data));
        }
        // Items that share bytes are not read as items of a byte each, nor the reverse.
        let groups = foreign(vec![0; 4], (17, 4, 1), 0);
        assert!(groups.view().as_slice::<f4e2m1fn>().is_err());
        let padded = foreign(vec![0; 4], (17, 4, 1), flag);
        assert!(padded.view().as_slice::<F4E2M1FNx2>().is_err());
    }

    #[test]
    fn floats_and_groups() {
        let four = [f4e2m1fn::from_f32(0.5), f4e2m1fn::from_f32(-6.0)];
        assert_eq!(F4E2M1FNx2::from(four).to_bytes(), [0xf1]);
        let sixes: [f6e3m2fn; 4] = F6E3M2FNx4::pack([0x0c, 0x2c, 1, 0]).into();
        assert_eq!(sixes.map(f6e3m2fn::to_f32), [1.0, -1.0, 0.0625, 0.0]);
        let sixes: [f6e2m3fn; 4] = F6E2M3FNx4::pack([0x08, 0x28, 1, 0]).into();
        assert_eq!(sixes.map(f6e2m3fn::to_f32), [1.0, -1.0, 0.125, 0.0]);
    }
}

#[cfg(feature = "glam")]
mod glams {
    use super::*;
    use dlpack_core::Element;
    use glam::*;

    #[test]
    fn vectors() {
        macro_rules! vectors {
            ($($two:ident $three:ident $four:ident: $scalar:ty, $code:literal;)*) => {$(
                let number = ($code, u8::try_from(size_of::<$scalar>() * 8).unwrap(), 1);
                let all: [$scalar; 12] = [1_u8, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map(|x| x as $scalar);
                let twos: Vec<$two> = all.chunks_exact(2).map($two::from_slice).collect();
                let threes: Vec<$three> = all.chunks_exact(3).map($three::from_slice).collect();
                let fours: Vec<$four> = all.chunks_exact(4).map($four::from_slice).collect();
                check_round_trips(&twos, number, false, &[2]);
                check_round_trips(&threes, number, false, &[3]);
                check_round_trips(&fours, number, false, &[4]);
                // The components are at the positions that they have in an array.
                assert_eq!(fours.into_dlpack().unwrap().view().iter::<$scalar>().unwrap().collect::<Vec<_>>(), all);
            )*};
        }
        vectors! {
            Vec2 Vec3 Vec4: f32, 2;
            DVec2 DVec3 DVec4: f64, 2;
            I8Vec2 I8Vec3 I8Vec4: i8, 0;
            U8Vec2 U8Vec3 U8Vec4: u8, 1;
            I16Vec2 I16Vec3 I16Vec4: i16, 0;
            U16Vec2 U16Vec3 U16Vec4: u16, 1;
            IVec2 IVec3 IVec4: i32, 0;
            UVec2 UVec3 UVec4: u32, 1;
            I64Vec2 I64Vec3 I64Vec4: i64, 0;
            U64Vec2 U64Vec3 U64Vec4: u64, 1;
            ISizeVec2 ISizeVec3 ISizeVec4: isize, 0;
            USizeVec2 USizeVec3 USizeVec4: usize, 1;
        }
        let turn = Quat::from_xyzw(1.0, 2.0, 3.0, 4.0);
        check_round_trips(&[turn; 3], (2, 32, 1), false, &[4]);
        check_round_trips(&[turn.as_dquat(); 3], (2, 64, 1), false, &[4]);
        let components: Vec<f32> = [turn]
            .into_dlpack()
            .unwrap()
            .view()
            .iter()
            .unwrap()
            .collect();
        assert_eq!(components, [1.0, 2.0, 3.0, 4.0]);
    }

    fn matrix<M: Element + Copy + PartialEq + Debug>(
        matrices: [M; 3],
        side: i64,
        entry: impl Fn(&M, usize, usize) -> f64,
    ) {
        let tensor = matrices.to_vec().into_dlpack().unwrap();
        let view = tensor.view();
        assert_eq!(view.shape(), [3, side, side]);
        assert_eq!(view.strides(), [side * side, 1, side]);
        assert_eq!(view.to_vec::<M>().unwrap(), matrices);
        // The value at [matrix, row, column].
        let side = usize::try_from(side).unwrap();
        let expected: Vec<f64> = (0..3 * side * side)
            .map(|at| entry(&matrices[at / side / side], at / side % side, at % side))
            .collect();
        let found: Vec<f64> = if view.dtype() == DataType::F32 {
            view.iter::<f32>().unwrap().map(f64::from).collect()
        } else {
            view.iter::<f64>().unwrap().collect()
        };
        assert_eq!(found, expected);

        // Row-major, as most producers have it.
        let rows = tensor
            .into_dlpack_with(&ExportRequest {
                copy: Some(true),
                ..ExportRequest::versioned()
            })
            .unwrap();
        assert!(rows.view().is_contiguous());
        assert_eq!(rows.view().to_vec::<M>().unwrap(), matrices);
        assert_eq!(
            Vec::<[M; 3]>::from_dlpack([matrices].into_dlpack().unwrap()).unwrap(),
            [matrices]
        );
    }

    #[test]
    fn matrices_lie_by_column() {
        macro_rules! matrices {
            ($($matrix:ident $side:literal $items:literal $scalar:ty;)*) => {$(
                let numbers: [$scalar; $items] = core::array::from_fn(|i| <$scalar>::from(u8::try_from(i).unwrap()));
                let first = $matrix::from_cols_array(&numbers);
                matrix([first, first.transpose(), first * 2.0], $side, |m, row, column| f64::from(m.col(column)[row]));
            )*};
        }
        matrices! {
            Mat2 2 4 f32;
            Mat3 3 9 f32;
            Mat4 4 16 f32;
            DMat2 2 4 f64;
            DMat3 3 9 f64;
            DMat4 4 16 f64;
        }
    }
}

#[cfg(feature = "nalgebra")]
mod nalgebras {
    use super::*;
    use nalgebra::{Matrix2x3, Point2, Point3, RowVector3, SMatrix, Vector3, Vector4};

    #[test]
    fn vectors_and_points() {
        check_round_trips(
            &[
                Vector3::new(1_i16, 2, 3),
                Vector3::new(4, 5, 6),
                Vector3::zeros(),
            ],
            (0, 16, 1),
            false,
            &[3],
        );
        check_round_trips(
            &[Vector4::new(1.0_f64, 2.0, 3.0, 4.0); 3],
            (2, 64, 1),
            false,
            &[4],
        );
        check_round_trips(
            &[Point3::new(1.0_f32, 2.0, 3.0), Point3::new(4.0, 5.0, 6.0)],
            (2, 32, 1),
            false,
            &[3],
        );
        check_round_trips(
            &[Point2::new(true, false), Point2::new(true, true)],
            (6, 8, 1),
            false,
            &[2],
        );
        check_round_trips(
            &[Vector3::from([[1_u8, 2], [3, 4], [5, 6]]); 3],
            (1, 8, 1),
            false,
            &[3, 2],
        );
    }

    #[test]
    fn matrices_lie_by_column() {
        let matrices = vec![
            Matrix2x3::new(1, 2, 3, 4, 5, 6),
            Matrix2x3::new(7, 8, 9, 10, 11, 12),
        ];
        let tensor = matrices.clone().into_dlpack().unwrap();
        assert_eq!(tensor.view().shape(), [2, 2, 3]);
        assert_eq!(tensor.view().strides(), [6, 1, 2]);
        assert_eq!(
            tensor.view().iter::<i32>().unwrap().collect::<Vec<_>>(),
            (1..=12).collect::<Vec<_>>()
        );
        assert_eq!(tensor.view().to_vec::<Matrix2x3<i32>>().unwrap(), matrices);
        assert_eq!(
            Vec::<Matrix2x3<i32>>::from_dlpack(tensor).unwrap(),
            matrices
        );

        let nested = vec![SMatrix::<[u8; 2], 2, 2>::new(
            [1, 2],
            [3, 4],
            [5, 6],
            [7, 8],
        )];
        let tensor = nested.clone().into_dlpack().unwrap();
        assert_eq!(tensor.view().strides(), [8, 2, 4, 1]);
        assert_eq!(
            tensor.view().iter::<u8>().unwrap().collect::<Vec<_>>(),
            (1..=8).collect::<Vec<_>>()
        );
        assert_eq!(
            tensor.view().to_vec::<SMatrix<[u8; 2], 2, 2>>().unwrap(),
            nested
        );

        let rows = vec![RowVector3::new(1, 2, 3); 2];
        let tensor = rows.clone().into_dlpack().unwrap();
        assert_eq!(tensor.view().shape(), [2, 1, 3]);
        assert_eq!(tensor.view().to_vec::<RowVector3<i32>>().unwrap(), rows);
    }

    /// A `bool` of another producer is checked inside of a vector, too.
    #[test]
    fn contents_are_checked() {
        let tensor = foreign(vec![1, 2], (6, 8, 1), 0);
        assert_eq!(
            tensor.view().to_vec::<Point2<bool>>(),
            Err(Error::NotBool { found: 2 })
        );
        assert_eq!(
            tensor.view().as_slice::<Point2<bool>>(),
            Err(Error::NotBool { found: 2 })
        );
    }
}
