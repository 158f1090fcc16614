//! Containers of other crates: an export has their memory, shape and strides, and is writable if the container is the only owner.

#![cfg(any(
    feature = "derive",
    feature = "image",
    feature = "nalgebra",
    feature = "ndarray"
))]

use dlpack_core::{DLPack, Managed};

/// Asserts that a tensor has these elements, from this address on.
#[track_caller]
fn shows<T: dlpack_core::element::Plain + PartialEq + core::fmt::Debug>(
    tensor: &Managed,
    address: *const T,
    shape: &[i64],
    strides: &[i64],
    elements: &[T],
) {
    let view = tensor.view();
    assert_eq!(view.as_ptr(), address.cast());
    assert_eq!(view.shape(), shape);
    assert_eq!(view.strides(), strides);
    assert_eq!(view.to_vec::<T>().unwrap(), elements);
}

/// Asserts that a container lives as long as its tensor, and is dropped with it.
#[cfg(feature = "derive")]
macro_rules! dropped_once {
    ($container:ty, $value:expr) => {{
        use dlpack_core::ExportRequest;
        use std::sync::Arc;

        #[derive(DLPack)]
        struct Witnessed {
            #[dlpack(data)]
            data: $container,
            #[expect(dead_code, reason = "counts the owners")]
            witness: Arc<()>,
        }
        let witness = Arc::new(());
        let owner = || Witnessed {
            data: $value,
            witness: Arc::clone(&witness),
        };
        let writable = !owner().into_dlpack().unwrap().view().is_read_only();
        for request in [
            ExportRequest::versioned(),
            ExportRequest::default(),
            ExportRequest {
                copy: Some(true),
                ..ExportRequest::versioned()
            },
        ] {
            let tensor = owner().into_dlpack_with(&request).unwrap();
            // A copy does not need its owner. A legacy tensor cannot be marked read-only, so a read-only one is a copy.
            let copied = match tensor.view().version() {
                Some(_) => tensor.view().is_copied(),
                None => !writable,
            };
            let kept = if copied { 1 } else { 2 };
            assert_eq!(Arc::strong_count(&witness), kept);
            std::thread::spawn(move || drop(tensor)).join().unwrap();
            assert_eq!(Arc::strong_count(&witness), 1);
        }
        let shared = Arc::new(owner());
        let tensors = [shared.to_dlpack().unwrap(), shared.to_dlpack().unwrap()];
        assert!(tensors.iter().all(|tensor| tensor.view().is_read_only()));
        drop(shared);
        assert_eq!(Arc::strong_count(&witness), 2);
        drop(tensors);
        assert_eq!(Arc::strong_count(&witness), 1);
    }};
}

#[cfg(feature = "ndarray")]
mod ndarrays {
    use super::*;
    use dlpack_core::{Error, FromDLPack};
    use ndarray::{
        ArcArray2, Array, Array0, Array1, Array2, Array3, ArrayD, Axis, CowArray, Dimension, IxDyn,
        ShapeBuilder, arr0, array, s,
    };

    fn counted(shape: (usize, usize, usize)) -> Array3<i32> {
        let len = i32::try_from(shape.0 * shape.1 * shape.2).unwrap();
        Array::from_shape_vec(shape, (0..len).collect()).unwrap()
    }

    /// Compares with ndarray's own iterator, and with the addresses of its elements.
    #[track_caller]
    fn agrees<D: Dimension + 'static>(array: Array<i32, D>) {
        let (shape, strides, address) = (
            array.shape().to_vec(),
            array.strides().to_vec(),
            array.as_ptr(),
        );
        let expected: Vec<i32> = array.iter().copied().collect();
        let copy = array.to_owned();
        let lent = array.describe().unwrap();
        assert!(lent.is_read_only());
        assert!(expected.is_empty() || lent.as_ptr() == address.cast());
        let shared = array.clone().into_shared().into_dlpack().unwrap();
        assert_eq!(shared.view().to_vec::<i32>().unwrap(), expected);
        let tensor = array.into_dlpack().unwrap();
        let view = tensor.view();
        assert!(
            view.shape()
                .iter()
                .copied()
                .eq(shape.iter().map(|&x| i64::try_from(x).unwrap()))
        );
        assert_eq!(view.to_vec::<i32>().unwrap(), expected);
        assert!(!view.is_read_only());
        if expected.is_empty() {
            assert!(view.as_ptr().is_null());
        } else {
            assert_eq!(view.as_ptr(), address.cast());
            assert!(
                view.strides()
                    .iter()
                    .copied()
                    .eq(strides.iter().map(|&x| i64::try_from(x).unwrap()))
            );
        }
        assert_eq!(Array::<i32, D>::from_dlpack(tensor).unwrap(), copy);
    }

    #[test]
    fn arrays_keep_memory_shape_and_strides() {
        agrees(counted((2, 3, 4)));
        agrees(counted((2, 3, 4)).reversed_axes());
        agrees(counted((2, 3, 4)).permuted_axes([1, 2, 0]));
        agrees(counted((2, 3, 4)).slice_move(s![.., 1.., ..;2]));
        agrees(counted((2, 3, 4)).slice_move(s![..;-1, .., ..;-3]));
        agrees(counted((2, 3, 4)).slice_move(s![1, ..;-2, 1..3]));
        agrees(counted((2, 3, 4)).slice_move(s![.., 1..1, ..]));
        agrees(counted((2, 0, 4)));
        agrees(counted((0, 0, 0)));
        agrees(counted((1, 1, 1)).slice_move(s![..;-1, ..;2, ..]));
        agrees(Array1::<i32>::from_vec(vec![]));
        agrees(arr0(7));
        agrees(counted((2, 3, 4)).slice_move(s![1, 2, 3]));
        agrees(counted((2, 3, 4)).into_dyn());
        agrees(ArrayD::<i32>::zeros(IxDyn(&[1, 2, 1, 3, 1, 2, 1, 2])));
        agrees(Array2::<i32>::from_shape_vec((2, 3).f(), (0..6).collect()).unwrap());
        agrees(Array2::<i32>::from_shape_vec((2, 2).strides((5, 2)), (0..8).collect()).unwrap());
        let mut collapsed = counted((2, 3, 4));
        collapsed.collapse_axis(Axis(1), 2);
        agrees(collapsed);
    }

    /// Every slice and every order of a small array.
    #[test]
    fn in_every_small_layout() {
        let steps = [-3, -2, -1, 1, 2, 3];
        let orders = [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ];
        for (i, a) in steps.into_iter().enumerate() {
            for b in steps {
                for c in steps {
                    for (from, order) in orders.into_iter().enumerate() {
                        let from = isize::try_from((from + i) % 3).unwrap();
                        let sliced = counted((3, 4, 5)).slice_move(s![from..;a, ..3;b, 1..;c]);
                        agrees(sliced.permuted_axes(order));
                    }
                }
            }
        }
    }

    #[test]
    fn small_arrays_by_hand() {
        let array = array![[1, 2, 3], [4, 5, 6]].slice_move(s![..;-1, ..;2]);
        let address = array.as_ptr();
        let tensor = array.into_dlpack().unwrap();
        shows(&tensor, address, &[2, 2], &[-3, 2], &[4, 6, 1, 3]);
        let tensor = Array0::from_elem((), 5_u8).into_dlpack().unwrap();
        assert_eq!(
            (tensor.view().shape(), tensor.view().to_vec::<u8>()),
            (&[][..], Ok(vec![5]))
        );
        // LAY-18: an empty tensor has a null address.
        let empty = Array2::<f32>::zeros((3, 0)).into_dlpack().unwrap();
        assert!(empty.view().as_ptr().is_null());
        assert_eq!(
            (empty.view().shape(), empty.view().strides()),
            (&[3, 0][..], &[1, 1][..])
        );
    }

    /// FLG-05: memory that other code may read is read-only.
    #[test]
    fn arrays_with_other_users_are_read_only() {
        let owned = array![[1, 2], [3, 4]];
        assert!(owned.describe().unwrap().is_read_only());
        assert!(!owned.into_dlpack().unwrap().view().is_read_only());

        let unique = array![[1, 2], [3, 4]].into_shared();
        assert!(unique.into_dlpack().unwrap().view().is_read_only());
        let array: ArcArray2<i32> = array![[1, 2], [3, 4]].into_shared();
        let address = array.as_ptr();
        let tensor = array.clone().reversed_axes().into_dlpack().unwrap();
        assert!(tensor.view().is_read_only());
        drop(array);
        shows(&tensor, address, &[2, 2], &[1, 2], &[1, 3, 2, 4]);

        static NUMBERS: [u16; 4] = [1, 2, 3, 4];
        for cow in [
            CowArray::from(ndarray::aview1(&NUMBERS)),
            CowArray::from(array![1, 2, 3, 4]),
        ] {
            let address = cow.as_ptr();
            let tensor = cow.into_dlpack().unwrap();
            assert!(tensor.view().is_read_only());
            shows(&tensor, address, &[4], &[1], &NUMBERS);
        }
    }

    #[test]
    #[expect(unsafe_code, reason = "writes as a consumer does")]
    fn writing_through_the_tensor_reaches_the_array() {
        let mut array = array![[1, 2, 3], [4, 5, 6]].slice_move(s![.., ..;-2]);
        let tensor = array.describe_mut().unwrap();
        assert!(!tensor.is_read_only());
        assert_eq!(
            (tensor.shape(), tensor.strides()),
            (&[2, 2][..], &[3, -2][..])
        );
        for (row, column) in [(0, 0), (1, 1)] {
            let item = tensor.as_ptr().cast::<i32>().cast_mut();
            let item = item.wrapping_offset(3 * row - 2 * column);
            // SAFETY: an item of the tensor, which is writable and not borrowed elsewhere.
            unsafe { item.write(-7) };
        }
        drop(tensor);
        assert_eq!(array, array![[-7, 1], [6, -7]]);
    }

    #[test]
    fn elements_of_several_items() {
        let array = Array2::from_shape_fn((2, 3), |(i, j)| [i, j]).reversed_axes();
        let tensor = array.clone().into_dlpack().unwrap();
        assert_eq!(tensor.view().shape(), [3, 2, 2]);
        assert_eq!(tensor.view().strides(), [2, 6, 1]);
        assert_eq!(Array2::<[usize; 2]>::from_dlpack(tensor).unwrap(), array);
    }

    #[cfg(feature = "derive")]
    #[test]
    fn derived_elements_and_structs() {
        #[derive(dlpack_core::Element, Clone, Copy, PartialEq, Debug)]
        #[repr(C)]
        struct Point {
            x: f32,
            y: f32,
        }
        #[derive(DLPack, FromDLPack)]
        struct Track {
            #[dlpack(data, writable)]
            points: Array1<Point>,
            name: String,
        }
        #[derive(DLPack)]
        struct Shared {
            #[dlpack(data, owner)]
            points: ArcArray2<f32>,
        }
        dlpack_core::assert_exports!(Track: f32, rank 2, writable);
        dlpack_core::assert_exports!(Shared: f32, rank 2, readonly);

        let points = array![Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.0 }];
        let track = Track {
            points: points.clone().slice_move(s![..;-1]),
            name: "a".into(),
        };
        assert_eq!(track.name.len(), 1);
        let tensor = track.into_dlpack().unwrap();
        assert_eq!(tensor.view().strides(), [-2, 1]);
        assert_eq!(
            Array1::<Point>::from_dlpack(tensor).unwrap(),
            points.slice_move(s![..;-1])
        );

        // A clone of the array keeps the memory, so the struct may be dropped.
        let shared = std::sync::Arc::new(Shared {
            points: ArcArray2::zeros((2, 3)),
        });
        let address = shared.points.as_ptr();
        let tensor = shared.to_dlpack().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&shared), 1);
        drop(shared);
        shows(&tensor, address, &[2, 3], &[3, 1], &[0.0; 6]);
    }

    /// Own faults 4: the clone of an owner does not keep the gaps between its elements.
    #[cfg(feature = "derive")]
    #[test]
    fn an_owner_keeps_no_gaps() {
        use dlpack_core::{Buffer, DLPack, Loan};
        use ndarray::{Array2, ArrayView1, CowArray, Ix1};
        use std::sync::Arc;

        static TABLE: std::sync::LazyLock<Array2<i32>> = std::sync::LazyLock::new(|| {
            Array2::from_shape_fn((3, 3), |(i, j)| 3 * i32(i) + i32(j))
        });

        fn i32(index: usize) -> i32 {
            i32::try_from(index).unwrap()
        }

        /// A clone of it lends another column.
        struct Column {
            lent: CowArray<'static, i32, Ix1>,
            cloned: ArrayView1<'static, i32>,
        }
        impl Clone for Column {
            fn clone(&self) -> Self {
                Self {
                    lent: CowArray::from(self.cloned),
                    cloned: self.cloned,
                }
            }
        }
        impl Buffer for Column {
            fn lend(&self) -> Loan<'_> {
                self.lent.lend()
            }
        }

        #[derive(DLPack)]
        struct Shared {
            #[dlpack(data, owner)]
            column: Column,
        }

        let export = |lent: ArrayView1<'static, i32>, cloned| {
            let lent = CowArray::from(lent);
            Arc::new(Shared {
                column: Column { lent, cloned },
            })
            .to_dlpack()
        };
        let column = |at| TABLE.column(at);
        // All bytes of the tensor lie between the first and the last that the clone keeps, and the clone keeps none of them.
        assert_eq!(
            export(column(1).slice_move(s![..2]), column(0)).unwrap_err(),
            Error::OwnerElsewhere
        );
        assert_eq!(
            export(column(0).slice_move(s![..2]), column(0)).unwrap_err(),
            Error::OwnerElsewhere,
            "it keeps these, but a loan with gaps is not searched for a part"
        );
        let tensor = export(column(0), column(0)).unwrap();
        assert_eq!(tensor.view().to_vec::<i32>().unwrap(), [0, 3, 6]);
        // Without gaps, the clone keeps every byte that it lends.
        let row = |at| TABLE.row(at);
        let tensor = export(row(1).slice_move(s![..2]), row(1)).unwrap();
        assert_eq!(tensor.view().to_vec::<i32>().unwrap(), [3, 4]);
    }

    #[test]
    fn what_an_array_is_made_from() {
        let tensor = || counted((2, 3, 4)).reversed_axes().into_dlpack().unwrap();
        assert_eq!(
            Array2::<i32>::from_dlpack(tensor()).unwrap_err(),
            Error::Rank {
                found: 3,
                needed: 2
            }
        );
        assert_eq!(
            Array3::<[i32; 2]>::from_dlpack(tensor()).unwrap_err(),
            Error::Rank {
                found: 2,
                needed: 3
            }
        );
        assert!(matches!(
            Array3::<f32>::from_dlpack(tensor()),
            Err(Error::WrongDataType { .. })
        ));
        assert_eq!(
            ArrayD::<i32>::from_dlpack(tensor()).unwrap().shape(),
            [4, 3, 2]
        );
        assert_eq!(
            ArrayD::<[i32; 2]>::from_dlpack(tensor()).unwrap().shape(),
            [4, 3]
        );
        let shared = ndarray::ArcArray::<i32, ndarray::Ix3>::from_dlpack(tensor()).unwrap();
        assert_eq!(shared, counted((2, 3, 4)).reversed_axes());
        assert!(shared.is_standard_layout());
    }

    #[cfg(feature = "derive")]
    #[test]
    fn an_enum_chooses_by_rank_and_type() {
        #[derive(DLPack, FromDLPack)]
        enum Audio {
            Mono(Array1<f32>),
            Multi(Array2<f32>),
            Coded(Array2<i16>),
        }
        let back = |audio: Audio| Audio::from_dlpack(audio.into_dlpack().unwrap()).unwrap();
        assert!(matches!(back(Audio::Mono(array![1.0])), Audio::Mono(_)));
        assert!(matches!(back(Audio::Multi(array![[1.0]])), Audio::Multi(_)));
        assert!(matches!(back(Audio::Coded(array![[1]])), Audio::Coded(_)));
    }

    #[cfg(feature = "derive")]
    #[test]
    fn kept_while_the_tensor_lives() {
        dropped_once!(Array2<f32>, Array2::zeros((2, 3)).reversed_axes());
    }
}

#[cfg(feature = "nalgebra")]
mod nalgebras {
    use super::*;
    use dlpack_core::{Error, FromDLPack};
    use nalgebra::{
        DMatrix, DVector, Dyn, Matrix2x3, Matrix3x1, OMatrix, RowDVector, RowVector3, SMatrix, U2,
        U3, Vector3,
    };

    #[test]
    fn matrices_are_column_major() {
        let matrix = DMatrix::from_row_slice(2, 3, &[1, 2, 3, 4, 5, 6]);
        let address = matrix.as_ptr();
        let tensor = matrix.clone().into_dlpack().unwrap();
        assert!(!tensor.view().is_read_only());
        assert_ne!(tensor.view().as_ptr(), address.cast());
        let tensor = matrix.into_dlpack().unwrap();
        shows(&tensor, address, &[2, 3], &[1, 2], &[1, 2, 3, 4, 5, 6]);

        let tensor = Matrix2x3::new(1, 2, 3, 4, 5, 6).into_dlpack().unwrap();
        assert_eq!(
            (tensor.view().shape(), tensor.view().strides()),
            (&[2, 3][..], &[1, 2][..])
        );
        assert_eq!(tensor.view().to_vec::<i32>().unwrap(), [1, 2, 3, 4, 5, 6]);
        let boxed = Box::new(Matrix2x3::new(1, 2, 3, 4, 5, 6));
        let address = boxed.as_ptr();
        shows(
            &boxed.into_dlpack().unwrap(),
            address,
            &[2, 3],
            &[1, 2],
            &[1, 2, 3, 4, 5, 6],
        );

        let half_fixed = OMatrix::<f32, U2, Dyn>::from_vec(vec![1.0, 2.0, 3.0, 4.0]);
        assert_eq!(half_fixed.into_dlpack().unwrap().view().strides(), [1, 2]);
    }

    #[test]
    fn a_column_vector_has_one_axis() {
        let shape = |tensor: Result<Managed, Error>| tensor.unwrap().view().shape().to_vec();
        assert_eq!(shape(DVector::<f32>::zeros(4).into_dlpack()), [4]);
        assert_eq!(shape(Vector3::<f32>::zeros().into_dlpack()), [3]);
        assert_eq!(shape(Matrix3x1::<f32>::zeros().into_dlpack()), [3]);
        assert_eq!(shape(SMatrix::<f32, 1, 1>::zeros().into_dlpack()), [1]);
        // A matrix that happens to have one column, or one row, has two axes.
        assert_eq!(shape(DMatrix::<f32>::zeros(4, 1).into_dlpack()), [4, 1]);
        assert_eq!(shape(RowDVector::<f32>::zeros(4).into_dlpack()), [1, 4]);
        assert_eq!(shape(RowVector3::<f32>::zeros().into_dlpack()), [1, 3]);
        // Empty matrices.
        assert_eq!(shape(DMatrix::<f32>::zeros(0, 3).into_dlpack()), [0, 3]);
        assert_eq!(shape(DVector::<f32>::zeros(0).into_dlpack()), [0]);
        assert_eq!(
            shape(DVector::from_element(2, [0_u8; 5]).into_dlpack()),
            [2, 5]
        );
    }

    #[test]
    fn what_a_matrix_is_made_from() {
        let rows = || [[1, 2, 3], [4, 5, 6]].into_dlpack().unwrap();
        let expected = Matrix2x3::new(1, 2, 3, 4, 5, 6);
        assert_eq!(DMatrix::<i32>::from_dlpack(rows()).unwrap(), expected);
        assert_eq!(Matrix2x3::<i32>::from_dlpack(rows()).unwrap(), expected);
        assert_eq!(
            OMatrix::<i32, U2, Dyn>::from_dlpack(rows()).unwrap(),
            expected
        );
        assert_eq!(
            DMatrix::<i32>::from_dlpack(expected.into_dlpack().unwrap()).unwrap(),
            expected
        );
        assert_eq!(
            OMatrix::<i32, U3, Dyn>::from_dlpack(rows()).unwrap_err(),
            Error::Extent {
                axis: 0,
                found: 2,
                needed: "3".into()
            }
        );
        assert_eq!(
            Matrix2x3::<i32>::from_dlpack([[1], [2]].into_dlpack().unwrap()).unwrap_err(),
            Error::Extent {
                axis: 1,
                found: 1,
                needed: "3".into()
            }
        );
        assert_eq!(
            DVector::<i32>::from_dlpack(rows()).unwrap_err(),
            Error::Rank {
                found: 2,
                needed: 1
            }
        );
        let list = || [1, 2, 3].into_dlpack().unwrap();
        assert_eq!(
            DMatrix::<i32>::from_dlpack(list()).unwrap_err(),
            Error::Rank {
                found: 1,
                needed: 2
            }
        );
        assert_eq!(
            DVector::<i32>::from_dlpack(list()).unwrap(),
            Vector3::new(1, 2, 3)
        );
        assert_eq!(
            RowVector3::<i32>::from_dlpack([[1, 2, 3]].into_dlpack().unwrap()).unwrap(),
            RowVector3::new(1, 2, 3)
        );
        let pairs =
            DMatrix::<[i32; 3]>::from_dlpack([[[1, 2, 3], [4, 5, 6]]].into_dlpack().unwrap())
                .unwrap();
        assert_eq!(
            pairs,
            DMatrix::from_row_slice(1, 2, &[[1, 2, 3], [4, 5, 6]])
        );
    }

    #[cfg(feature = "derive")]
    #[test]
    fn kept_while_the_tensor_lives() {
        #[derive(DLPack)]
        struct State {
            #[dlpack(data, writable)]
            matrix: DMatrix<f64>,
        }
        dlpack_core::assert_exports!(State: f64, rank 2, writable);
        dlpack_core::assert_exports!(Vector3<f32>: f32, rank 1);
        let state = State {
            matrix: DMatrix::zeros(1, 1),
        };
        assert!(!state.into_dlpack().unwrap().view().is_read_only());
        dropped_once!(DMatrix<f32>, DMatrix::zeros(2, 3));
        dropped_once!(Matrix2x3<f32>, Matrix2x3::zeros());
    }
}

#[cfg(feature = "image")]
mod images {
    use super::*;
    use dlpack_core::{DataType, Error, FromDLPack};
    use image::{
        DynamicImage, GrayAlphaImage, GrayImage, ImageBuffer, Luma, Rgb32FImage, RgbImage,
        RgbaImage,
    };

    #[test]
    fn images_have_rows_columns_channels() {
        let image = RgbImage::from_fn(3, 2, |x, y| {
            [u8::try_from(x).unwrap(), u8::try_from(y).unwrap(), 7].into()
        });
        let (address, samples) = (image.as_ptr(), image.as_raw().clone());
        let tensor = image.into_dlpack().unwrap();
        assert!(!tensor.view().is_read_only());
        shows(&tensor, address, &[2, 3, 3], &[9, 3, 1], &samples);

        let gray = ImageBuffer::<Luma<u16>, _>::from_raw(2, 1, vec![3_u16, 4]).unwrap();
        let address = gray.as_ptr();
        shows(
            &gray.into_dlpack().unwrap(),
            address,
            &[1, 2, 1],
            &[2, 1, 1],
            &[3, 4],
        );

        // The vector may be longer than the image.
        let long = GrayImage::from_raw(2, 2, (0..100).collect()).unwrap();
        let address = long.as_ptr();
        shows(
            &long.into_dlpack().unwrap(),
            address,
            &[2, 2, 1],
            &[2, 1, 1],
            &[0, 1, 2, 3],
        );
        assert_eq!(
            RgbImage::new(0, 4).into_dlpack().unwrap().view().shape(),
            [4, 0, 3]
        );
    }

    #[test]
    fn images_of_every_pixel_type() {
        let kinds = [
            (DynamicImage::new_luma8(3, 2), DataType::U8, 1),
            (DynamicImage::new_luma_a8(3, 2), DataType::U8, 2),
            (DynamicImage::new_rgb8(3, 2), DataType::U8, 3),
            (DynamicImage::new_rgba8(3, 2), DataType::U8, 4),
            (DynamicImage::new_luma16(3, 2), DataType::U16, 1),
            (DynamicImage::new_luma_a16(3, 2), DataType::U16, 2),
            (DynamicImage::new_rgb16(3, 2), DataType::U16, 3),
            (DynamicImage::new_rgba16(3, 2), DataType::U16, 4),
            (DynamicImage::new_rgb32f(3, 2), DataType::F32, 3),
            (DynamicImage::new_rgba32f(3, 2), DataType::F32, 4),
        ];
        for (mut image, dtype, channels) in kinds {
            image.invert();
            let (address, expected) = (image.as_bytes().as_ptr(), image.clone());
            assert!(image.describe().unwrap().is_read_only());
            let tensor = image.into_dlpack().unwrap();
            let view = tensor.view();
            assert_eq!((view.dtype(), view.shape()), (dtype, &[2, 3, channels][..]));
            assert_eq!(view.as_ptr(), address);
            assert!(!view.is_read_only());
            assert!(DynamicImage::fits(&view));
            assert_eq!(DynamicImage::from_dlpack(tensor).unwrap(), expected);
        }
        assert_eq!(
            DynamicImage::from_dlpack([[[1.0_f32]]].into_dlpack().unwrap()).unwrap_err(),
            Error::NoVariant {
                name: "DynamicImage",
                dtype: DataType::F32,
                rank: 3,
                variants: &[
                    "ImageLuma8",
                    "ImageLumaA8",
                    "ImageRgb8",
                    "ImageRgba8",
                    "ImageLuma16",
                    "ImageLumaA16",
                    "ImageRgb16",
                    "ImageRgba16",
                    "ImageRgb32F",
                    "ImageRgba32F"
                ],
            }
        );
    }

    #[test]
    fn what_an_image_is_made_from() {
        let planes = [[[1_u8, 2], [3, 4]], [[5, 6], [7, 8]]]
            .into_dlpack()
            .unwrap();
        let image = GrayAlphaImage::from_dlpack(planes).unwrap();
        assert_eq!(image.get_pixel(1, 0).0, [3, 4]);
        assert_eq!(
            RgbaImage::from_dlpack([[[1_u8; 3]]].into_dlpack().unwrap()).unwrap_err(),
            Error::Extent {
                axis: 2,
                found: 3,
                needed: "4".into()
            }
        );
        assert_eq!(
            GrayImage::from_dlpack([[1_u8]].into_dlpack().unwrap()).unwrap_err(),
            Error::Rank {
                found: 2,
                needed: 3
            }
        );
        assert!(matches!(
            Rgb32FImage::from_dlpack([[[1_u8; 3]]].into_dlpack().unwrap()),
            Err(Error::WrongDataType { .. })
        ));
    }

    #[cfg(feature = "derive")]
    #[test]
    fn kept_while_the_tensor_lives() {
        #[derive(DLPack)]
        struct Photo {
            #[dlpack(data)]
            image: DynamicImage,
        }
        #[derive(DLPack, FromDLPack)]
        struct Whole(DynamicImage);
        #[derive(DLPack)]
        #[dlpack(shape = [2, _, 3])]
        struct Agreed(#[dlpack(data)] RgbImage);
        let photo = Photo {
            image: DynamicImage::new_rgb8(3, 2),
        };
        assert_eq!(photo.into_dlpack().unwrap().view().shape(), [2, 3, 3]);
        let whole = Whole(DynamicImage::new_rgb8(3, 2)).into_dlpack().unwrap();
        assert_eq!(Whole::from_dlpack(whole).unwrap().0.width(), 3);
        assert_eq!(
            Agreed(RgbImage::new(3, 2))
                .into_dlpack()
                .unwrap()
                .view()
                .shape(),
            [2, 3, 3]
        );
        assert!(Agreed(RgbImage::new(2, 3)).into_dlpack().is_err());
        dlpack_core::assert_exports!(RgbImage: u8, rank 3);
        dropped_once!(RgbImage, RgbImage::new(3, 2));
        dropped_once!(DynamicImage, DynamicImage::new_rgb8(3, 2));
    }
}

/// Types that dereference to a slice need no feature.
#[cfg(feature = "derive")]
mod slices {
    use super::*;
    use bytes::{Bytes, BytesMut};
    use std::sync::Arc;

    #[derive(DLPack)]
    #[dlpack(shape = [_, 4])]
    struct Received {
        #[dlpack(data, owner)]
        data: Bytes,
    }

    #[derive(DLPack)]
    struct Sending {
        #[dlpack(data, writable)]
        data: BytesMut,
    }

    #[test]
    fn bytes_are_shared_by_their_reference_count() {
        let received = Arc::new(Received {
            data: Bytes::from(vec![7; 12]).slice(4..),
        });
        let address = received.data.as_ptr();
        let tensor = received.to_dlpack().unwrap();
        assert_eq!(
            Arc::strong_count(&received),
            1,
            "the tensor holds the bytes, not the struct"
        );
        assert!(!received.data.is_unique());
        drop(received);
        assert!(tensor.view().is_read_only());
        shows(&tensor, address, &[2, 4], &[4, 1], &[7; 8]);
    }

    #[test]
    fn bytes_with_one_owner_are_writable() {
        let sending = Sending {
            data: BytesMut::from(&[1, 2, 3][..]),
        };
        let address = sending.data.as_ptr();
        let tensor = sending.into_dlpack().unwrap();
        assert!(!tensor.view().is_read_only());
        shows(&tensor, address, &[3], &[1], &[1, 2, 3]);
        dropped_once!(Bytes, Bytes::from(vec![1; 3]));
        dropped_once!(BytesMut, BytesMut::zeroed(3));
    }

    #[test]
    fn a_file_is_mapped() {
        #[derive(DLPack)]
        #[dlpack(elem = u32, byte_offset = 8)]
        struct Mapped {
            #[dlpack(data)]
            map: memmap2::Mmap,
        }
        #[derive(DLPack)]
        struct Private {
            #[dlpack(data, writable)]
            map: memmap2::MmapMut,
        }
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("containers-{}", std::process::id()));
        let content: Vec<u8> = [0_u32, 0, 1, 2, 3]
            .iter()
            .flat_map(|x| x.to_ne_bytes())
            .collect();
        std::fs::write(&path, &content).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let (map, private) = map(&file);
        std::fs::remove_file(&path).unwrap();

        let address = map.as_ptr().wrapping_add(8);
        let tensor = Mapped { map }.into_dlpack().unwrap();
        assert!(tensor.view().is_read_only());
        shows(&tensor, address.cast(), &[3], &[1], &[1_u32, 2, 3]);
        let tensor = Private { map: private }.into_dlpack().unwrap();
        assert!(!tensor.view().is_read_only());
        assert_eq!(tensor.view().to_vec::<u8>().unwrap(), content);
    }

    #[expect(
        unsafe_code,
        reason = "a map of a file requires that the file does not change"
    )]
    fn map(file: &std::fs::File) -> (memmap2::Mmap, memmap2::MmapMut) {
        // SAFETY: the file belongs to this test, which no longer writes it.
        let map = unsafe { memmap2::Mmap::map(file) }.unwrap();
        // SAFETY: the file belongs to this test, which no longer writes it. Writes to this map stay in this process.
        let private = unsafe { memmap2::MmapOptions::new().map_copy(file) }.unwrap();
        (map, private)
    }
}
