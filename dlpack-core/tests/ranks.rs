//! Own faults 21: tensors with more axes than a description holds inline, when memory runs out at each allocation.

#![expect(unsafe_code, reason = "takes tensors out of offers")]

mod allocator;

use std::sync::Arc;

use allocator::{LIVE, with_budget};
use dlpack_core::array::View;
use dlpack_core::binding::Offer;
use dlpack_core::layout::Dims;
use dlpack_core::{
    DLPack, DataType, Descriptor, Element, Error, ExportRequest, FromDLPack, Layout, Loan, Managed,
    Order, Parts, SharedBuffer,
};

const SHAPE: [i64; 8] = [1, 2, 1, 3, 1, 1, 1, 1];
const STRIDES: [i64; 8] = [9, 4, 9, 1, 9, 9, 9, 9];

type Describe = for<'a> fn(&'a [f32]) -> Result<Descriptor<'a>, Error>;

struct Deep([f32; 8], Describe);

impl DLPack for Deep {
    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.1(&self.0)
    }
}

/// Each way to describe a tensor with that many axes.
const DESCRIPTIONS: [(&str, Describe); 12] = [
    ("an array", |data| {
        Parts::new().shape(SHAPE).describe(data.into())
    }),
    ("slices", |data| {
        let parts = Parts::new().shape(&SHAPE[..]).strides(&STRIDES[..]);
        parts.describe(data.into())
    }),
    ("a tuple", |data| {
        let parts = Parts::new().shape((1, 2, 1_u8, 3, 1, 1, 1, 1));
        parts.describe(data.into())
    }),
    ("lists", |data| {
        let parts = Parts::new().shape(Dims::from(SHAPE));
        parts.strides(Dims::from(STRIDES)).describe(data.into())
    }),
    ("a layout", |data| {
        let layout = Layout::column_major([1, 2, 1, 3, 1, 1, 1, 1])?;
        let parts = Parts::new().shape(layout).strides(layout);
        parts.describe(data.into())
    }),
    ("copies", |data| {
        let parts = Parts::new().shape(SHAPE).strides(STRIDES);
        parts.clone().describe(Loan::from(data).clone())
    }),
    ("an order", |data| {
        let parts = Parts::new().shape(SHAPE).order(Order::F);
        parts.describe(data.into())
    }),
    ("bytes", |data| {
        let parts = Parts::new()
            .shape(SHAPE)
            .byte_strides(STRIDES.map(|n| 4 * n));
        parts.describe(data.into())
    }),
    ("trailing axes", |_| {
        let rows = const { &[[[[[[[1.0_f32; 1]; 1]; 3]; 1]; 2]; 1]] };
        Parts::new().shape([1, 1]).describe(rows[..].into())
    }),
    ("what the data says", |data| {
        let loan = Loan::from(data).with_layout(SHAPE.into(), STRIDES[..].into(), 0);
        Parts::new().describe(loan)
    }),
    ("what both say", |data| {
        let loan = Loan::from(data).with_layout(SHAPE.into(), STRIDES[..].into(), 0);
        let parts = Parts::new().shape(SHAPE).strides(STRIDES);
        parts.describe(loan.clone())
    }),
    ("a tensor that is made", |_| {
        Parts::new().via(Deep([1.0; 8], DESCRIPTIONS[0].1))
    }),
];

const COPY: ExportRequest = ExportRequest {
    copy: Some(true),
    ..ExportRequest::versioned()
};
const LEGACY: ExportRequest = ExportRequest {
    max_version: None,
    ..ExportRequest::versioned()
};

type ExportFn = fn(&Arc<Deep>, Deep) -> Result<Managed, Error>;

/// Each function that exports them.
const EXPORTS: [(&str, ExportFn); 6] = [
    ("moved", |_, deep| deep.into_dlpack()),
    ("shared", |shared, _| shared.to_dlpack()),
    ("copied", |shared, _| shared.to_dlpack_with(&COPY)),
    ("legacy", |shared, _| shared.to_dlpack_with(&LEGACY)),
    ("moved twice", |_, deep| {
        deep.into_dlpack()?.into_dlpack_with(&LEGACY)
    }),
    ("zeros", |_, _| Managed::zeroed(&SHAPE, DataType::F32)),
];

#[derive(FromDLPack)]
#[dlpack(order = "F")]
struct Columns {
    #[dlpack(data)]
    _values: Vec<f32>,
    #[dlpack(shape)]
    _shape: [i64; 8],
}

#[derive(FromDLPack)]
struct Adopted {
    #[dlpack(data)]
    _values: SharedBuffer<f32>,
    #[dlpack(shape)]
    _shape: [i64; 8],
    #[dlpack(byte_strides)]
    _strides: [i64; 8],
}

type Read = fn(Managed) -> Result<(), Error>;

fn back<T: FromDLPack>(tensor: Managed) -> Result<(), Error> {
    T::from_dlpack(tensor).map(drop)
}

fn rows<T: Element>(tensor: Managed) -> Result<(), Error> {
    assert_eq!(tensor.view().to_vec::<T>()?.len(), 6);
    Ok(())
}

/// Each function that reads them.
const READS: [(&str, Read); 8] = [
    ("nothing", |_| Ok(())),
    ("the items", rows::<f32>),
    ("the elements", rows::<[[f32; 1]; 1]>),
    ("the items of all", |tensor| {
        let tensor = tensor.shared();
        assert_eq!(tensor.view().iter::<f32>()?.count(), 6);
        rows::<f32>(tensor)
    }),
    ("an array and parts of it", |tensor| {
        let array = View::<f32, Dims>::new(tensor)?;
        assert_eq!(array.to_vec()?.len(), 6);
        assert_eq!(array.slice(1, 0..1)?.index(7, 0)?.rank(), 7);
        let turned = array.permute(&[7, 6, 5, 4, 3, 2, 1, 0])?;
        assert_eq!(turned.to_vec()?.len(), 6);
        Ok(())
    }),
    ("columns", back::<Columns>),
    ("the memory", |tensor| {
        match back::<Adopted>(tensor.shared()) {
            // The gaps were reported, so there was memory for the text.
            Err(Error::NotContiguous { .. }) => Ok(()),
            result => result,
        }
    }),
    ("an offer", |tensor| {
        let raw = tensor.into_dlpack()?.into_raw();
        // SAFETY: `into_raw` returned the pointer; the tensor is used again only if the offer had no takers.
        let taken = unsafe { Offer::of(raw) }.and_then(|offer| offer.take());
        // SAFETY: an offer that was dropped without takers leaves the tensor to its caller.
        let given_back = || drop(unsafe { Managed::from_raw(raw) });
        taken.map(drop).inspect_err(|_| given_back())
    }),
];

#[test]
fn every_allocation_may_fail() {
    let mut combination = 0;
    for (name, describe) in DESCRIPTIONS {
        for (door, export) in EXPORTS {
            for (reading, read) in READS {
                combination += 1;
                // Every seventeenth has each description, export and read.
                if cfg!(miri) && combination % 17 != 0 {
                    continue;
                }
                let shared = Arc::new(Deep([1.0; 8], describe));
                let mut failures = 0;
                for budget in 0.. {
                    let deep = Deep([1.0; 8], describe);
                    let before = LIVE.get();
                    let work = || export(&shared, deep).and_then(read);
                    let result = with_budget(budget, work);
                    let left = (LIVE.get() - before, Arc::strong_count(&shared));
                    let case = format!("{name}, {door}, {reading}, {budget}: {result:?}");
                    assert_eq!(left, (0, 1), "{case}");
                    if !matches!(result, Err(Error::OutOfMemory { .. })) {
                        assert_eq!(result, Ok(()), "{case}");
                        break;
                    }
                    failures += 1;
                }
                assert!(failures > 1, "{name}, {door}, {reading}: {failures}");
            }
        }
    }
}

/// A list whose allocation failed is empty, but is not accepted as the shape of a scalar.
#[test]
fn a_list_that_was_not_allocated_is_an_error() {
    let long = [1_i64; 9];
    let lost = with_budget(0, || Dims::from(long));
    assert_eq!(lost, Dims::new());
    let no_memory = |error| assert_eq!(error, Error::OutOfMemory { bytes: 9 * 8 });
    no_memory(Dims::extents(&lost).unwrap_err());
    no_memory(
        Parts::new()
            .shape(&lost)
            .describe([1_u8][..].into())
            .unwrap_err(),
    );
    no_memory(Dims::strides(&lost.clone()).unwrap_err());
    let loan = Loan::from(&[1_u8][..]).with_layout(lost.clone(), Dims::new(), 0);
    no_memory(Parts::new().describe(loan).unwrap_err());
    let loan = Loan::from(&[1_u8][..]).with_layout(Dims::new(), lost, 0);
    no_memory(Parts::new().describe(loan).unwrap_err());
}
