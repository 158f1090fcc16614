//! Whatever names, macros and lints surround an annotated type, its expansion means the same and says nothing.
//!
//! What this crate denies, the expansions are silent under; what it forbids, they do without.
#![forbid(unsafe_code)]
#![deny(
    warnings,
    deprecated,
    unused,
    unused_qualifications,
    unused_lifetimes,
    single_use_lifetimes,
    unreachable_pub,
    missing_debug_implementations,
    elided_lifetimes_in_paths,
    trivial_casts,
    trivial_numeric_casts,
    let_underscore_drop,
    unit_bindings,
    non_ascii_idents,
    clippy::pedantic,
    clippy::nursery
)]
#![allow(
    clippy::redundant_pub_crate,
    reason = "the opposite of `unreachable_pub`, which this workspace keeps to"
)]

use dlpack_core::{
    DLPack as _, DLPackTensors as _, Device, FromDLPack as _, Record as _, StreamHandle,
};

/// Nothing of the prelude is in scope, so every name of an expansion has to say where it comes from.
#[no_implicit_prelude]
mod without_a_prelude {
    use ::core::option::Option;
    use ::std::boxed::Box;
    use ::std::sync::Arc;
    use ::std::vec::Vec;

    #[derive(::dlpack_core::DLPack, ::dlpack_core::FromDLPack, Debug)]
    #[dlpack(shape = [rows, _], order = "F")]
    pub(crate) struct Matrix {
        #[dlpack(data, writable)]
        pub(crate) values: Vec<f32>,
        pub(crate) rows: usize,
    }

    #[derive(::dlpack_core::DLPack, Debug)]
    #[dlpack(legacy = "refuse", offset = self.first, strides = [1])]
    pub(crate) struct Shared {
        #[dlpack(data, owner)]
        pub(crate) values: Arc<[f64]>,
        #[dlpack(shape)]
        pub(crate) dims: (u8,),
        pub(crate) first: usize,
    }

    #[derive(::dlpack_core::DLPack, Debug)]
    #[dlpack(release = "immediate")]
    pub(crate) struct Queued {
        #[dlpack(data)]
        pub(crate) values: Arc<[f64]>,
        #[dlpack(device)]
        pub(crate) device: ::dlpack_core::Device,
        #[dlpack(stream)]
        pub(crate) stream: ::dlpack_core::StreamHandle,
    }

    #[derive(::dlpack_core::DLPack, Debug)]
    #[dlpack(device = self.device, stream = &self.streams[0])]
    pub(crate) struct QueuedByName {
        #[dlpack(data)]
        pub(crate) values: Arc<[f64]>,
        pub(crate) device: ::dlpack_core::Device,
        pub(crate) streams: [::dlpack_core::StreamHandle; 1],
    }

    #[derive(::dlpack_core::DLPack, ::dlpack_core::FromDLPack, Debug)]
    pub(crate) enum Samples {
        Float(Vec<f32>),
        Named {
            #[dlpack(data)]
            values: Box<[i16]>,
            rate: u32,
        },
        #[dlpack(skip)]
        Nothing,
    }

    #[derive(::dlpack_core::DLPack, Debug)]
    #[dlpack(tensor(name = "head", data = &self.first[..1]))]
    pub(crate) struct Batch {
        #[dlpack(tensor)]
        pub(crate) first: Vec<u8>,
        #[dlpack(tensor)]
        pub(crate) second: Option<Vec<[f32; 2]>>,
        #[dlpack(columns)]
        pub(crate) trades: Vec<Trade>,
    }

    #[derive(::dlpack_core::Record, Debug)]
    #[repr(C)]
    pub(crate) struct Trade {
        pub(crate) price: f64,
        pub(crate) size: u64,
    }

    #[derive(::dlpack_core::Element, Debug)]
    #[repr(C)]
    pub(crate) struct Point {
        pub(crate) x: f32,
        pub(crate) y: [f32; 2],
    }

    #[derive(::dlpack_core::DLPack, Debug)]
    #[dlpack(via = ::core::clone::Clone::clone(&self.0))]
    pub(crate) struct Computed(pub(crate) Vec<f32>);

    #[derive(::dlpack_core::DLPack, ::dlpack_core::FromDLPack, Debug)]
    pub(crate) struct Newtype<T: ::dlpack_core::Element>(pub(crate) Vec<T>);

    ::dlpack_core::assert_exports!(Matrix: f32, rank 2, writable);
}

/// Types of the user are called as those of the expansion.
mod shadowed {
    #![expect(
        dead_code,
        non_camel_case_types,
        reason = "they are only there to be in the way"
    )]

    pub(crate) struct Result;
    pub(crate) struct Option;
    pub(crate) struct Some;
    pub(crate) struct None;
    pub(crate) struct Ok;
    pub(crate) struct Err;
    pub(crate) struct Default;
    pub(crate) struct Send;
    pub(crate) struct Sized;
    pub(crate) struct Vec;
    pub(crate) struct Box;
    pub(crate) struct Clone;
    pub(crate) struct Descriptor;
    pub(crate) struct Parts;
    pub(crate) struct Managed;
    pub(crate) struct Element;
    pub(crate) struct str;
    pub(crate) struct bool;
    pub(crate) struct usize;
    pub(crate) struct i64;
    pub(crate) mod core {}
    pub(crate) mod std {}
    pub(crate) mod alloc {}
    pub(crate) mod dlpack_core {}

    #[derive(::dlpack_core::DLPack, ::dlpack_core::FromDLPack)]
    #[dlpack(shape = [rows, 2])]
    pub(crate) struct DLPack {
        #[dlpack(data)]
        pub(crate) values: ::std::vec::Vec<f32>,
        pub(crate) rows: u32,
    }

    #[derive(::dlpack_core::DLPack)]
    pub(crate) struct DLPackTensors {
        #[dlpack(tensor(shape = [1, _]))]
        pub(crate) values: ::core::option::Option<::std::vec::Vec<f32>>,
    }

    #[derive(::dlpack_core::Element)]
    #[repr(C)]
    pub(crate) struct Homogeneous {
        pub(crate) first: f32,
        pub(crate) second: f32,
    }

    #[derive(::dlpack_core::Record)]
    #[repr(C)]
    pub(crate) struct Record {
        pub(crate) first: f32,
        pub(crate) second: u32,
    }
}

/// Constants and methods of the user are called as the variables and methods of an expansion.
mod shadowed_values {
    #![expect(
        dead_code,
        non_camel_case_types,
        non_upper_case_globals,
        reason = "they are only there to be in the way"
    )]

    use std::sync::Arc;

    use dlpack_core::{DLPack, Element, FromDLPack, Record};

    static this: u8 = 1;
    static request: u8 = 1;
    static other: u8 = 1;
    static from: u8 = 1;
    static to: u8 = 1;
    static data: u8 = 1;
    const rows: u8 = 1;
    const row: u8 = 1;
    const field: u8 = 1;
    const import: u8 = 1;
    const len: u8 = 1;
    struct walk;
    struct source;

    const fn tensor() -> usize {
        2
    }

    const fn name() -> usize {
        2
    }

    /// Its methods come before those that take a reference.
    pub(crate) trait Everything: Sized {
        fn route(self) -> usize {
            1
        }
        fn view(self) -> usize {
            1
        }
        fn axes(self) -> usize {
            1
        }
        fn check_rank(self) -> usize {
            1
        }
        fn check_size(self) -> usize {
            1
        }
        fn axis_size(self) -> usize {
            1
        }
        fn stride(self) -> usize {
            1
        }
        fn offset(self) -> usize {
            1
        }
        fn field(self) -> usize {
            1
        }
        fn next(self) -> usize {
            1
        }
        fn describe(self) -> usize {
            1
        }
    }
    impl<T> Everything for T {}

    #[derive(DLPack, FromDLPack)]
    #[dlpack(shape = [height, tensor()], strides = [pitch, _], offset = start)]
    pub(crate) struct Image {
        #[dlpack(data)]
        pub(crate) values: Vec<f32>,
        pub(crate) height: usize,
        pub(crate) pitch: usize,
        pub(crate) start: usize,
    }

    #[derive(DLPack, FromDLPack)]
    pub(crate) struct Wrapper {
        #[dlpack(data)]
        pub(crate) image: Image,
    }

    #[derive(DLPack)]
    pub(crate) struct Shared {
        #[dlpack(data, owner)]
        pub(crate) values: Arc<[f32]>,
    }

    #[derive(DLPack)]
    #[dlpack(via = vec![0_u8; name()])]
    pub(crate) struct Computed;

    #[derive(DLPack)]
    pub(crate) struct Set {
        #[dlpack(tensor(set, shape = [tensor(), name(), _]))]
        pub(crate) values: Vec<f32>,
        #[dlpack(tensor(owner))]
        pub(crate) shared: Arc<[f32]>,
        #[dlpack(columns)]
        pub(crate) trades: Vec<Trade>,
    }

    #[derive(Record)]
    #[repr(C)]
    pub(crate) struct Trade {
        pub(crate) price: f64,
        pub(crate) size: u64,
    }

    #[derive(Element)]
    #[repr(C)]
    pub(crate) struct Point {
        pub(crate) x: f32,
        pub(crate) y: f32,
    }

    #[derive(DLPack, FromDLPack)]
    pub(crate) enum Samples {
        Float(Vec<f32>),
        Short(Vec<i16>),
    }
}

/// Types that another thread may drop are called as one that none may.
mod named_after_others {
    use std::sync::Arc as Rc;

    use dlpack_core::DLPack;

    #[derive(DLPack, Debug)]
    pub(crate) struct Image {
        #[dlpack(data)]
        pub(crate) values: Rc<[f32]>,
        pub(crate) name: Rc<str>,
    }
}

/// A constant is named by the module that it is in.
mod named_by_a_path {
    use dlpack_core::{DLPack, FromDLPack};

    pub(crate) const COLUMNS: usize = 3;

    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(shape = [rows, self::COLUMNS])]
    pub(crate) struct Image {
        #[dlpack(data)]
        pub(crate) values: Vec<f32>,
        pub(crate) rows: usize,
    }
}

/// Fields are called as the names that an expansion uses itself, or as keywords.
mod fields {
    use dlpack_core::{DLPack, Element, FromDLPack, Record};

    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(shape = [name, r#type], offset = request)]
    pub(crate) struct Names {
        #[dlpack(data)]
        pub(crate) data: Vec<u8>,
        pub(crate) name: usize,
        pub(crate) r#type: usize,
        pub(crate) request: usize,
        pub(crate) import: usize,
        pub(crate) source: usize,
        pub(crate) walk: usize,
        pub(crate) tensor: usize,
        pub(crate) self_: usize,
        pub(crate) len: usize,
    }

    #[derive(Element, Debug, Clone, Copy)]
    #[repr(C)]
    pub(crate) struct Scalars {
        pub(crate) walk: f32,
        pub(crate) source: f32,
        pub(crate) r#match: f32,
    }

    #[derive(Record, Debug)]
    #[repr(C)]
    pub(crate) struct Records {
        pub(crate) rows: f32,
        pub(crate) row: u32,
        pub(crate) name: i8,
        pub(crate) r#type: bool,
    }

    #[derive(DLPack, Debug)]
    pub(crate) struct Sheet {
        #[dlpack(tensor)]
        pub(crate) r#where: Vec<f32>,
        #[dlpack(tensor)]
        pub(crate) tensors: Vec<f32>,
        #[dlpack(columns)]
        pub(crate) rows: Vec<Records>,
    }

    #[derive(DLPack, Debug)]
    pub(crate) enum Words {
        Data { r#type: Vec<f32> },
        Request { request: Vec<f32> },
        Field { field: Vec<f32> },
    }
}

/// The user's path to the crate is longer than it must be.
mod reached_by_a_long_path {
    use dlpack_core as renamed;
    use renamed::{DLPack, Element, FromDLPack, Record};

    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(crate = crate::reached_by_a_long_path::renamed)]
    pub(crate) struct Image {
        #[dlpack(data)]
        pub(crate) values: Vec<f32>,
        #[dlpack(shape)]
        pub(crate) dims: [usize; 2],
    }

    #[repr(C)]
    #[derive(Record, Debug)]
    #[dlpack(crate = crate::reached_by_a_long_path::renamed)]
    pub(crate) struct Trade {
        pub(crate) price: f64,
        pub(crate) size: u32,
    }

    #[repr(C)]
    #[derive(Element, Debug)]
    #[dlpack(crate = crate::reached_by_a_long_path::renamed)]
    pub(crate) struct Point {
        pub(crate) x: f32,
        pub(crate) y: f32,
    }

    #[test]
    fn it_is_accepted() {
        let image = Image {
            values: vec![1.0],
            dims: [1, 1],
        };
        assert_eq!((image.values.len(), image.dims), (1, [1, 1]));
        let trade = Trade {
            price: 1.0,
            size: 2,
        };
        assert!(trade.price < f64::from(trade.size));
        let point = Point { x: 1.0, y: 2.0 };
        assert!(point.x < point.y);
    }
}

/// A macro writes the struct; its tokens come from two places.
mod written_by_a_macro {
    use dlpack_core::{DLPack, Element, FromDLPack, Record};

    /// What a library does that wraps the derive: its own re-export, and the caller's types and expressions.
    macro_rules! image {
        ($name:ident, $data:ty, $shape:ty, $first:expr, $rows:ident) => {
            #[derive(DLPack, FromDLPack, Debug)]
            pub(crate) struct $name {
                #[dlpack(data)]
                pub(crate) values: $data,
                #[dlpack(shape)]
                pub(crate) dims: $shape,
            }

            #[derive(DLPack, Debug)]
            #[dlpack(crate = $crate::written_by_a_macro::reexport, offset = $first, shape = [$rows, self.cols])]
            pub(crate) struct Listed {
                #[dlpack(data)]
                pub(crate) values: $data,
                pub(crate) $rows: usize,
                pub(crate) cols: usize,
            }

            #[derive(DLPack, Debug)]
            #[dlpack(data = &self.values[$first..])]
            pub(crate) struct Sliced {
                pub(crate) values: $data,
            }
        };
    }
    pub(crate) mod reexport {
        pub(crate) use ::dlpack_core::*;
    }

    const START: usize = 1;
    image!(Image, Vec<f32>, [usize; 2], START + 1, rows);

    macro_rules! record {
        ($(#[$attribute:meta])* $name:ident { $($field:ident: $type:ty,)* }) => {
            $(#[$attribute])*
            #[repr(C)]
            #[derive(Debug)]
            pub(crate) struct $name {
                $(pub(crate) $field: $type,)*
            }
        };
    }
    record! {
        #[derive(Record)]
        Trade { price: f64, size: u32, }
    }
    record! {
        #[derive(Element)]
        Point { x: f32, y: f32, }
    }
}

/// Each fragment of a macro is one operand of the expression around it.
mod fragments_of_a_macro {
    use dlpack_core::{DLPack, Element, FromDLPack, Record};

    macro_rules! operands {
        ($sum:expr, $narrow:expr, $borrow:expr, $negative:literal, $list:ty, $path:path, $block:block) => {
            #[derive(DLPack, Debug)]
            #[dlpack(offset = $sum * 2, shape = [$sum * 2, $narrow as usize, -$negative])]
            pub(crate) struct Multiplied {
                #[dlpack(data)]
                pub(crate) values: Vec<f32>,
            }

            #[derive(DLPack, Debug)]
            #[dlpack(
                data = &self.values[$sum * 2..],
                shape = [$borrow.len(), size_of::<$list>() / size_of::<usize>(), $path(1_u8), $block]
            )]
            pub(crate) struct Called {
                pub(crate) values: Vec<f32>,
            }

            #[derive(DLPack, FromDLPack, Debug)]
            #[dlpack(shape = [rows, $sum * 2])]
            pub(crate) struct ReadBack {
                #[dlpack(data)]
                pub(crate) values: Vec<f32>,
                pub(crate) rows: usize,
            }
        };
    }

    macro_rules! types {
        ($sum:expr, $object:ty) => {
            #[derive(DLPack, FromDLPack, Debug)]
            pub(crate) struct Generic<T>
            where
                [T; $sum * 2]: Element,
            {
                #[dlpack(data)]
                pub(crate) values: Vec<[T; $sum * 2]>,
                pub(crate) name: Option<&'static $object>,
            }

            #[derive(Element, Record, Debug, Clone, Copy)]
            #[repr(C)]
            pub(crate) struct Row {
                pub(crate) first: [f32; $sum * 2],
                pub(crate) second: f32,
            }
        };
    }
    types!(START + 1, dyn core::fmt::Debug + Sync);

    pub(crate) const START: usize = 1;
    operands!(START + 1, 1_u32 + 2, &b"x"[..], -1, Vec<u8>, usize::from, {
        1
    });
}

/// What is deprecated may still be exported.
mod deprecated {
    use dlpack_core::{DLPack, FromDLPack, Record};

    #[deprecated = "use the other"]
    #[derive(DLPack, FromDLPack, Record, Debug)]
    #[dlpack(bound = "")]
    #[repr(C)]
    pub(crate) struct Old {
        #[deprecated = "use the other"]
        pub(crate) values: [u8; 2],
    }
}

/// Lints that few crates enable, since they forbid ordinary code. An expansion causes no warning of theirs.
mod under_strict_lints {
    #![deny(
        missing_docs,
        clippy::absolute_paths,
        clippy::default_numeric_fallback,
        clippy::implicit_return,
        clippy::indexing_slicing,
        clippy::min_ident_chars,
        clippy::missing_docs_in_private_items,
        clippy::missing_inline_in_public_items,
        clippy::missing_trait_methods,
        clippy::panic,
        clippy::pattern_type_mismatch,
        clippy::question_mark_used,
        clippy::same_name_method,
        clippy::shadow_reuse,
        clippy::shadow_same,
        clippy::shadow_unrelated,
        clippy::single_char_lifetime_names,
        clippy::unwrap_used
    )]

    use std::sync::Arc;

    use dlpack_core::element::AnyBits;
    use dlpack_core::{DLPack, Element, FromDLPack, Record};

    /// An image.
    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(shape = [rows, _], order = "F")]
    pub(crate) struct Image<T: AnyBits> {
        /// The pixels.
        #[dlpack(data, writable)]
        pub(crate) values: Vec<T>,
        /// The rows.
        pub(crate) rows: usize,
    }

    /// A point.
    #[derive(Element, Record, Debug, Clone, Copy)]
    #[repr(C)]
    pub(crate) struct Point {
        /// Rightwards.
        pub(crate) left: f32,
        /// Downwards.
        pub(crate) top: f32,
    }

    /// A path.
    #[derive(DLPack, Debug)]
    pub(crate) struct Path {
        /// The points.
        #[dlpack(data, owner, tensor, columns)]
        pub(crate) points: Arc<[Point]>,
    }

    /// Rows of one size, which is no `i32`.
    #[derive(DLPack, FromDLPack, Debug)]
    #[dlpack(shape = [_, 3_000_000_000])]
    pub(crate) struct LongRows {
        /// The rows.
        #[dlpack(data)]
        pub(crate) values: Vec<f32>,
    }

    /// An offset without a type.
    #[derive(DLPack, Debug)]
    #[dlpack(strides = [-1], offset = 1)]
    pub(crate) struct Backwards {
        /// The values.
        #[dlpack(data)]
        pub(crate) values: [f32; 2],
        /// The sizes.
        #[dlpack(shape)]
        pub(crate) dims: [u8; 1],
    }

    /// One or the other.
    #[derive(DLPack, FromDLPack, Debug)]
    pub(crate) enum Either {
        /// Bytes.
        Bytes(Vec<u8>),
        /// Words.
        Words(Vec<u16>),
        /// Neither.
        #[dlpack(skip)]
        Neither,
    }
}

/// Private types and generics with everything that a parameter list can hold.
mod parameters {
    use core::marker::PhantomData;

    use dlpack_core::{DLPack, Element, FromDLPack};

    #[derive(DLPack, FromDLPack, Debug)]
    pub(crate) struct Everything<T, S: ?Sized, const N: usize = 2>
    where
        T: Element + Clone,
        [T; N]: Element,
    {
        #[dlpack(data)]
        pub(crate) values: Vec<[T; N]>,
        #[dlpack(shape)]
        pub(crate) dims: [usize; 1],
        pub(crate) marker: PhantomData<S>,
    }
}

#[test]
fn without_a_prelude_and_with_every_key() {
    use std::sync::Arc;
    use without_a_prelude::{
        Batch, Computed, Matrix, Newtype, Point, Queued, QueuedByName, Samples, Shared, Trade,
    };

    let matrix = Matrix {
        values: vec![0.0; 4],
        rows: 2,
    };
    let tensor = matrix.into_dlpack().expect("it fits");
    assert_eq!(tensor.view().strides(), [1, 2]);
    let back = Matrix::from_dlpack(tensor).expect("it fits");
    assert_eq!((back.rows, back.values.len()), (2, 4));

    let shared = Shared {
        values: Arc::from([0.0_f64; 3]),
        dims: (2,),
        first: 1,
    };
    let described = shared.describe().expect("it fits");
    assert_eq!(described.as_ptr(), shared.values[1..].as_ptr().cast());

    let queued = Queued {
        values: Arc::from([0.0_f64; 3]),
        device: Device::CPU,
        stream: StreamHandle::DEFAULT,
    };
    let named = QueuedByName {
        values: Arc::clone(&queued.values),
        device: queued.device,
        streams: [queued.stream],
    };
    let stream = queued.describe().expect("it fits").stream().is_some();
    assert!(stream && named.describe().expect("it fits").stream().is_some());

    for (samples, floats) in [
        (Samples::Float(vec![1.0]), true),
        (
            Samples::Named {
                values: Box::from([1]),
                rate: 0,
            },
            false,
        ),
    ] {
        let back = Samples::from_dlpack(samples.into_dlpack().expect("it is one"));
        match back.expect("it is one") {
            Samples::Float(values) => assert!(floats && values == [1.0]),
            Samples::Named { values, rate } => assert!(!floats && *values == [1] && rate == 0),
            Samples::Nothing => unreachable!("a skipped variant takes no tensor"),
        }
    }
    assert!(Samples::Nothing.describe().is_err());

    let batch = Batch {
        first: vec![0; 3],
        second: None,
        trades: vec![Trade {
            price: 1.5,
            size: 2,
        }],
    };
    assert_eq!(Batch::NAMES, ["head", "first", "second", "price", "size"]);
    assert_eq!(batch.describe_head().expect("it is there").shape(), [1]);
    assert_eq!(batch.describe_first().expect("it is there").shape(), [3]);
    assert!(batch.describe_second().is_err());
    assert!(batch.describe_tensor("size").is_ok());

    let point = [Point {
        x: 0.0,
        y: [1.0, 2.0],
    }];
    assert_eq!(point.describe().expect("it fits").shape(), [1, 3]);
    let computed = Computed(vec![0.0; 3]);
    assert_eq!(computed.describe().expect("it is made").shape(), [3]);
    let tensor = Newtype(vec![1_u8]).into_dlpack().expect("it fits");
    assert_eq!(Newtype::<u8>::from_dlpack(tensor).expect("it fits").0, [1]);
}

#[test]
fn names_of_the_user_stay_hers() {
    let shadowed = shadowed::DLPack {
        values: vec![0.0; 4],
        rows: 2,
    };
    let tensor = shadowed.into_dlpack().expect("it fits");
    let back = shadowed::DLPack::from_dlpack(tensor).expect("it fits");
    assert_eq!((back.rows, back.values.len()), (2, 4));
    let tensors = shadowed::DLPackTensors {
        values: Some(vec![0.0; 3]),
    };
    let described = tensors.describe_values().expect("it is there");
    assert_eq!(described.shape(), [1, 3]);
    let points = vec![shadowed::Homogeneous {
        first: 1.0,
        second: 2.0,
    }];
    assert_eq!(points.describe().expect("it fits").shape(), [1, 2]);
    let rows = [shadowed::Record {
        first: 1.0,
        second: 2,
    }];
    let column = shadowed::Record::column(&rows, "second").expect("it is there");
    assert_eq!(column.shape(), [1]);
}

#[test]
fn values_of_the_user_are_not_those_of_the_expansion() {
    use shadowed_values::{Computed, Image, Point, Samples, Set, Shared, Trade, Wrapper};
    use std::sync::Arc;

    let image = Image {
        values: vec![0.0; 8],
        height: 2,
        pitch: 3,
        start: 1,
    };
    let tensor = Wrapper { image }.into_dlpack().expect("it fits");
    assert_eq!(tensor.view().shape(), [2, 2]);
    let image = Wrapper::from_dlpack(tensor).expect("it fits").image;
    assert_eq!((image.height, image.values.len()), (2, 4));
    assert_eq!((image.pitch, image.start), (2, 0));

    let values = Arc::from([1.0_f32; 4]);
    let shared = Arc::new(Shared {
        values: Arc::clone(&values),
    });
    assert_eq!(shared.to_dlpack().expect("it fits").view().shape(), [4]);
    let computed = Computed.into_dlpack().expect("it fits");
    assert_eq!(computed.view().shape(), [2]);

    let mut set = Set {
        values: Vec::new(),
        shared: values,
        trades: vec![Trade {
            price: 1.0,
            size: 2,
        }],
    };
    let tensor = vec![[[1.0_f32; 3]; 2]; 2].into_dlpack().expect("it fits");
    assert!(set.copy_to_tensor("values", &tensor.view()));
    set.set_tensor("values", Some(tensor)).expect("it fits");
    assert_eq!(set.values, [1.0; 12]);
    let size = set.describe_tensor("size").expect("it is there");
    assert_eq!(size.shape(), [1]);
    let set = Arc::new(set);
    let tensor = set.to_dlpack_tensor("shared").expect("it is there");
    assert_eq!(tensor.view().shape(), [4]);
    let points = vec![Point { x: 1.0, y: 2.0 }];
    let tensor = points.into_dlpack().expect("it fits");
    let points = Vec::<Point>::from_dlpack(tensor).expect("it fits");
    assert!(points[0].x < points[0].y);
    let samples = Samples::Float(vec![1.0]).into_dlpack().expect("it is one");
    let samples = Samples::from_dlpack(samples).expect("it is one");
    assert!(matches!(samples, Samples::Float(_)));
    let samples = Samples::Short(vec![1]);
    assert_eq!(samples.describe().expect("it is one").shape(), [1]);
}

#[test]
fn types_may_have_the_names_of_others() {
    let image = named_after_others::Image {
        values: [1.0, 2.0].into(),
        name: "one".into(),
    };
    assert_eq!(image.describe().expect("it fits").shape(), [2]);
    assert_eq!(&*image.name, "one");
}

#[test]
fn a_constant_of_the_module_is_the_same_for_all_values() {
    let image = named_by_a_path::Image {
        values: vec![0.0; 6],
        rows: 2,
    };
    let tensor = image.into_dlpack().expect("it fits");
    let back = named_by_a_path::Image::from_dlpack(tensor).expect("it fits");
    assert_eq!((back.rows, back.values.len()), (2, 6));
    let other = vec![[0.0_f32; 4]].into_dlpack().expect("it fits");
    assert!(named_by_a_path::Image::from_dlpack(other).is_err());
}

#[test]
fn fields_may_have_any_name() {
    use fields::{Names, Records, Scalars, Sheet, Words};

    let names = Names {
        data: vec![0; 7],
        name: 2,
        r#type: 3,
        request: 1,
        import: 4,
        source: 5,
        walk: 6,
        tensor: 7,
        self_: 8,
        len: 9,
    };
    let tensor = names.into_dlpack().expect("it fits");
    assert_eq!(tensor.view().shape(), [2, 3]);
    let back = Names::from_dlpack(tensor).expect("it fits");
    assert_eq!((back.name, back.r#type, back.request), (2, 3, 0));
    let defaults = [back.import, back.source, back.walk, back.tensor];
    assert_eq!((defaults, back.self_, back.len), ([0; 4], 0, 0));
    assert_eq!(back.data.len(), 6);

    let scalars = Scalars {
        walk: 1.0,
        source: 2.0,
        r#match: 3.0,
    };
    let tensor = [scalars].into_dlpack().expect("it fits");
    let back = <[Scalars; 1]>::from_dlpack(tensor).expect("it fits");
    let [
        Scalars {
            walk,
            source,
            r#match,
        },
    ] = back;
    assert!((walk, source, r#match) == (1.0, 2.0, 3.0));

    let rows = vec![Records {
        rows: 1.0,
        row: 2,
        name: 3,
        r#type: true,
    }];
    assert_eq!(Records::NAMES, ["rows", "row", "name", "type"]);
    let sheet = Sheet {
        r#where: vec![1.0],
        tensors: vec![2.0],
        rows,
    };
    let names = ["where", "tensors", "rows", "row", "name", "type"];
    assert_eq!(Sheet::NAMES, names);
    assert!(names.iter().all(|name| sheet.describe_tensor(name).is_ok()));
    assert!(sheet.describe_where().is_ok() && sheet.describe_tensors().is_ok());

    for words in [
        Words::Data { r#type: vec![1.0] },
        Words::Request { request: vec![1.0] },
        Words::Field { field: vec![1.0] },
    ] {
        assert_eq!(words.describe().expect("it is there").shape(), [1]);
    }
}

#[test]
fn macros_may_write_the_struct() {
    use written_by_a_macro::{Image, Listed, Point, Sliced, Trade};

    let image = Image {
        values: vec![0.0; 6],
        dims: [2, 3],
    };
    let back = Image::from_dlpack(image.into_dlpack().expect("it fits")).expect("it fits");
    assert_eq!((back.dims, back.values.len()), ([2, 3], 6));
    let listed = Listed {
        values: vec![0.0; 8],
        rows: 2,
        cols: 3,
    };
    let described = listed.describe().expect("it fits");
    assert_eq!(described.as_ptr(), listed.values[2..].as_ptr().cast());
    assert_eq!(
        (described.shape(), listed.rows, listed.cols),
        (&[2, 3][..], 2, 3)
    );
    let sliced = Sliced {
        values: vec![0.0; 6],
    };
    let described = sliced.describe().expect("it fits");
    assert_eq!(described.as_ptr(), sliced.values[2..].as_ptr().cast());

    let trades = [Trade {
        price: 1.0,
        size: 2,
    }];
    assert_eq!(
        Trade::column(&trades, "price")
            .expect("it is there")
            .shape(),
        [1]
    );
    assert_eq!(
        (trades[0].price.to_bits(), trades[0].size),
        (1.0_f64.to_bits(), 2)
    );
    let points = [Point { x: 1.0, y: 2.0 }];
    assert_eq!(points.describe().expect("it fits").shape(), [1, 2]);
}

#[test]
fn a_fragment_of_a_macro_is_one_operand() {
    use fragments_of_a_macro::{Called, Generic, Multiplied, ReadBack, Row};

    let multiplied = Multiplied {
        values: vec![0.0; 16],
    };
    let described = multiplied.describe().expect("it fits");
    assert_eq!(described.shape(), [4, 3, 1]);
    assert_eq!(described.as_ptr(), multiplied.values[4..].as_ptr().cast());

    let called = Called {
        values: vec![0.0; 16],
    };
    let described = called.describe().expect("it fits");
    assert_eq!(described.shape(), [1, 3, 1, 1]);
    assert_eq!(described.as_ptr(), called.values[4..].as_ptr().cast());

    let tensor = ReadBack {
        values: vec![0.0; 8],
        rows: 2,
    };
    let tensor = tensor.into_dlpack().expect("it fits");
    let back = ReadBack::from_dlpack(tensor).expect("it fits");
    assert_eq!((back.rows, back.values.len()), (2, 8));

    let generic = Generic {
        values: vec![[0.0_f32; 4]],
        name: Some(&"one"),
    };
    assert!(generic.name.is_some());
    let tensor = generic.into_dlpack().expect("it fits");
    assert_eq!(tensor.view().shape(), [1, 4]);
    let back = Generic::<f32>::from_dlpack(tensor).expect("it fits");
    assert!(back.values.len() == 1 && back.name.is_none());
    let rows = [Row {
        first: [0.0; 4],
        second: 1.0,
    }];
    assert_eq!(rows.describe().expect("it fits").shape(), [1, 5]);
    let column = Row::column(&rows, "first").expect("it is there");
    assert_eq!((column.shape(), rows[0].second > 0.0), (&[1, 4][..], true));
}

#[test]
fn strict_lints_change_nothing() {
    use under_strict_lints::{Backwards, Either, Image, LongRows, Path, Point};

    let image = Image {
        values: vec![0_u8; 4],
        rows: 2,
    };
    let tensor = image.into_dlpack().expect("it fits");
    assert_eq!(Image::<u8>::from_dlpack(tensor).expect("it fits").rows, 2);
    let path = Path {
        points: std::sync::Arc::from([Point {
            left: 1.0,
            top: 2.0,
        }]),
    };
    assert_eq!(path.describe().expect("it fits").shape(), [1, 2]);
    assert_eq!(path.describe_points().expect("it fits").shape(), [1, 2]);
    assert_eq!(Path::NAMES, ["points", "left", "top"]);
    for either in [Either::Bytes(vec![1]), Either::Words(vec![1])] {
        assert_eq!(either.describe().expect("it is there").shape(), [1]);
    }
    assert!(Either::Neither.describe().is_err());
    let tensor = LongRows { values: vec![] };
    let tensor = tensor.into_dlpack().expect("it fits");
    assert_eq!(tensor.view().shape(), [0, 3_000_000_000]);
    assert!(LongRows::fits(&tensor.view()));
    assert!(LongRows::from_dlpack(tensor).is_ok());
    let backwards = Backwards {
        values: [1.0, 2.0],
        dims: [2],
    };
    assert_eq!(backwards.describe().expect("it fits").shape(), [2]);
}

#[test]
#[expect(deprecated, reason = "deprecated is what it is about")]
fn deprecated_types_are_exported_silently() {
    let old = deprecated::Old { values: [1, 2] };
    let back = deprecated::Old::from_dlpack(old.into_dlpack().expect("it fits"));
    assert_eq!(back.expect("it fits").values, [1, 2]);
}

#[test]
fn parameters_keep_their_bounds() {
    use parameters::Everything;

    let everything = Everything::<f32, str> {
        values: vec![[1.0, 2.0]; 3],
        dims: [3],
        marker: core::marker::PhantomData,
    };
    let tensor = everything.into_dlpack().expect("it fits");
    assert_eq!(tensor.view().shape(), [3, 2]);
    let back = Everything::<f32, str>::from_dlpack(tensor).expect("it fits");
    assert_eq!((back.dims, back.values.len()), ([3], 3));
}
