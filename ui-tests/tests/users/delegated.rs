//! Structs whose data is a tensor itself, beside fields that are not a part of it.

use std::sync::Arc;

use dlpack_core::{DLPack, DataType, Error, FromDLPack, assert_exports};

use crate::{exports, plain, start};

#[derive(DLPack, FromDLPack)]
#[dlpack(shape = [rows, cols])]
struct Matrix {
    #[dlpack(data)]
    values: Vec<f32>,
    rows: usize,
    cols: usize,
}

/// A tensor with further fields: it is the tensor of the field with `data`, with everything that describes that one.
#[derive(DLPack, FromDLPack)]
struct Scan {
    #[dlpack(data)]
    depth: Matrix,
    taken: u64,
}
assert_exports!(Scan: f32, rank 2);

#[test]
fn data_that_is_a_tensor_itself() {
    let scan = || {
        let (rows, cols) = (3, 2);
        let values = vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        Scan {
            depth: Matrix { values, rows, cols },
            taken: 7,
        }
    };
    let it = scan();
    let data = start(&it.depth.values);
    exports(it, &plain(data, &[3, 2], &[2, 1], DataType::F32));
    let back = Scan::from_dlpack(scan().into_dlpack().unwrap()).unwrap();
    assert_eq!((back.depth.rows, back.depth.cols), (3, 2));
    assert_eq!((back.depth.values[5], back.taken), (5.0, 0));
    let wrong = vec![1_u8].into_dlpack().unwrap();
    assert!(Scan::from_dlpack(wrong).is_err());
}

/// The strides, the access and the owner of the field are those of the struct, through two levels and a type parameter.
#[test]
fn data_that_is_a_tensor_keeps_its_keys() {
    #[derive(DLPack)]
    #[dlpack(shape = [2, 2], strides = [3, 1], offset = 1, readonly)]
    struct Window {
        #[dlpack(data)]
        values: Vec<i32>,
    }
    #[derive(DLPack)]
    struct Named<T: DLPack> {
        #[dlpack(data)]
        tensor: T,
        #[expect(dead_code, reason = "a field beside the tensor")]
        name: &'static str,
    }
    #[derive(DLPack)]
    struct Twice(
        #[dlpack(data)] Named<Window>,
        #[expect(dead_code, reason = "a field beside the tensor")] u8,
    );

    let values = vec![0; 9];
    let data = start(&values[1..]);
    let name = "window";
    let tensor = Window { values };
    let twice = Twice(Named { tensor, name }, 1);
    exports(
        twice,
        &plain(data, &[2, 2], &[3, 1], DataType::I32).shared(),
    );

    #[derive(DLPack)]
    #[dlpack(writable)]
    struct Open {
        #[dlpack(data)]
        values: Vec<u8>,
    }
    assert_exports!(Named<Open>: u8, rank 1, writable);
    let open = || Named {
        tensor: Open { values: vec![1, 2] },
        name,
    };
    assert!(!open().into_dlpack().unwrap().view().is_read_only());
    const { assert!(<Named<Open> as DLPack>::EXTRAS.exclusive) };
    const { assert!(!<Named<Window> as DLPack>::EXTRAS.exclusive) };

    #[derive(DLPack)]
    struct Kept {
        #[dlpack(data, owner)]
        values: Arc<[u8]>,
    }
    let values: Arc<[u8]> = Arc::from([1, 2]);
    let tensor = Kept {
        values: values.clone(),
    };
    let named = Arc::new(Named { tensor, name });
    let export = named.to_dlpack().unwrap();
    assert_eq!(
        Arc::strong_count(&named),
        1,
        "the field is kept, not the struct"
    );
    assert_eq!(Arc::strong_count(&values), 3);
    drop(export);

    // An error of the field's description is that of the struct.
    let broken = Named {
        tensor: Window { values: vec![0; 2] },
        name,
    };
    assert!(matches!(broken.describe(), Err(Error::OutOfBounds { .. })));
}
