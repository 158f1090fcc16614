//! What the compiler computes for each derived type, computed at run time: facts, assertions, names, axes, export functions.
//!
//! In a build, a mistake only shows as an error or the lack of one. Here it is a text to compare.

#![cfg(feature = "derive")]
#![expect(
    unsafe_code,
    reason = "lends memory of a device that does not exist here"
)]

use core::any::Any;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex};

use dlpack_core::__private0::{
    AssertionMessage, Axes, ElementOf, ExportAssertion, Extras, Facts, Homogeneous, List,
    NamedFacts, ShareCall, SourceOf, WalkMutOf, WalkOf, Whole as Probed, concat_names, count_names,
    describe_element_field, no_padding, of_types, order, share_field,
};
use dlpack_core::layout::Dims;
use dlpack_core::{
    Buffer, DLPack, Descriptor, Device, Error, ExportRequest, Loan, Order, SharedBuffer, binding,
};

const LIST: Facts = ElementOf::<f32>::FACTS;
/// A list of `bool`, which a consumer must never write, because not every byte is a valid `bool`.
const BOOLS: Facts = ElementOf::<bool>::FACTS;

/// Asserts that `A` exports `f32`.
fn claim() -> ExportAssertion {
    ExportAssertion::new::<f32>("A", "f32")
}

/// The error of an assertion about a type that has these tensors and the key `writable`.
fn check_error(
    claim: &ExportAssertion,
    name: &str,
    facts: &[(&'static str, Facts)],
) -> AssertionMessage {
    claim.check_export(name, &[kept(facts.to_vec())], true)
}

/// A static copy of the list. A static has its address, so that a leak check finds it.
fn kept<T: Send + Sync>(list: Vec<T>) -> &'static [T] {
    static KEPT: Mutex<Vec<&(dyn Any + Send + Sync)>> = Mutex::new(Vec::new());

    let list: &Vec<T> = Box::leak(Box::new(list));
    let mut kept = KEPT
        .lock()
        .expect("no thread panics while it holds the lock");
    kept.push(list);
    list
}

/// Why the assertion fails, without the list of what the types have.
fn refusal(claim: &ExportAssertion, facts: &Facts) -> String {
    let text = check_error(claim, "", &[("", *facts)]);
    let (why, _) = text.as_str().split_once("; its").unwrap_or_default();
    assert_eq!(text.is_empty(), why.is_empty());
    why.replace("`A` ", "")
}

#[test]
fn assertions_are_compared_with_the_facts_of_the_type() {
    let holds = |claim: ExportAssertion, facts: Facts| assert_eq!(refusal(&claim, &facts), "");
    let vectors = ElementOf::<[f32; 3]>::FACTS;
    holds(claim(), LIST);
    holds(claim().with_rank(1), LIST);
    holds(claim().with_rank(2), vectors);
    holds(claim().with_rank(12), vectors.rank(Some(11)));
    holds(claim().with_writable(false), LIST);
    for facts in [
        LIST.writable(),
        LIST.writable_alone(),
        LIST.writable_shared(),
    ] {
        holds(claim().with_writable(true), facts);
        let why = refusal(&claim().with_writable(false), &facts);
        assert_eq!(
            why,
            "exports writable data where it is owned: mark its data `#[dlpack(data, readonly)]`"
        );
    }
    let why = |claim: ExportAssertion, facts: Facts| refusal(&claim, &facts);
    let at_run_time = "that is only known at run time";
    let other_items = "does not export items of `f32`";
    assert_eq!(why(claim(), ElementOf::<f64>::FACTS), other_items);
    assert_eq!(why(claim(), ElementOf::<i32>::FACTS), other_items);
    assert_eq!(
        why(claim(), LIST.dynamic_dtype()),
        format!("has a data type {at_run_time}")
    );
    assert_eq!(
        why(claim().with_rank(1), LIST.rank(None)),
        format!("has a rank {at_run_time}")
    );
    holds(claim(), LIST.rank(None));
    let rank = |rank| format!("does not export a tensor of rank {rank}");
    assert_eq!(why(claim().with_rank(2), LIST), rank(2));
    for number in [10, 190] {
        assert_eq!(why(claim().with_rank(number), vectors), rank(number));
    }
    assert_eq!(
        why(claim().with_writable(true), LIST),
        "does not export writable data"
    );
    holds(
        ExportAssertion::new::<bool>("A", "bool").with_writable(false),
        BOOLS,
    );
}

/// A `Vec` without a key: Python only reads it, and its owner writes it. An assertion that it is writable fails, and so does one
/// that it is not.
#[test]
fn a_vec_can_be_asserted_neither_writable_nor_read_only() {
    let text = |claim: ExportAssertion, facts| {
        let group = kept(vec![("", facts)]);
        claim.check_export("", &[group], false).as_str().to_owned()
    };
    for facts in [LIST.writable(), LIST.writable_alone()] {
        assert_eq!(text(claim(), facts), "");
        assert_eq!(
            text(claim().with_writable(true), facts),
            "`A` is read-only in Python and wherever else it is shared: mark its data `#[dlpack(data, writable)]`; \
             its types say: float32, rank 1, writable where it is owned"
        );
        assert!(text(claim().with_writable(false), facts).contains("where it is owned"));
    }
    assert_eq!(
        text(claim().with_writable(true), LIST.writable_shared()),
        ""
    );
}

/// The second half of an error lists what the types have.
#[test]
fn an_error_lists_what_the_types_have() {
    let says = |facts: Facts| {
        let text = check_error(&ExportAssertion::new::<i8>("A", "i8"), "", &[("", facts)]);
        text.as_str()
            .split_once("; its types say: ")
            .unwrap()
            .1
            .to_owned()
    };
    assert_eq!(says(LIST), "float32, rank 1, readonly");
    assert_eq!(
        says(LIST.rank(Some(122)).writable()),
        "float32, rank 122, writable"
    );
    assert_eq!(says(LIST.rank(None)), "float32, any rank, readonly");
    let vectors = ElementOf::<[f32; 3]>::FACTS;
    assert_eq!(
        says(vectors.dynamic_dtype()),
        "items of any type, rank 1, readonly"
    );
}

/// A text that is too long is cut, but not inside a character.
#[test]
fn a_long_error_is_truncated_between_characters() {
    let text = |letter: &str| {
        let name = core::str::from_utf8(kept(letter.repeat(600).into_bytes())).expect("text");
        let text = check_error(&ExportAssertion::new::<f64>(name, "f64"), "", &[("", LIST)]);
        text.as_str().to_owned()
    };
    assert_eq!(text("x"), format!("`{}", "x".repeat(511)));
    assert_eq!(text("é"), "the types say something else");
}

static GROUPS: [NamedFacts; 2] = [
    &[("a", LIST)],
    &[("ab", ElementOf::<f64>::FACTS), ("ac", LIST.rank(Some(2)))],
];

#[test]
fn an_assertion_finds_its_tensor_by_name() {
    let check_error =
        |claim: ExportAssertion, name| claim.check_export(name, &GROUPS, true).as_str().to_owned();
    assert_eq!(check_error(claim().with_rank(1), "a"), "");
    assert_eq!(check_error(claim().with_rank(2), "ac"), "");
    let why = check_error(claim(), "ab");
    assert!(
        why.starts_with("`ab` of `A` does not export items of `f32`; "),
        "{why}"
    );
    let why = check_error(claim(), "ad");
    assert_eq!(why, "`A` has no tensor `ad`; it has `a`, `ab`, `ac`");
}

#[test]
fn a_computed_tensor_is_not_lent_by_its_value() {
    #[derive(DLPack)]
    #[dlpack(via = self.0.iter().map(|sample| sample * 2.0).collect::<Vec<f32>>())]
    struct Doubled(Vec<f32>);

    #[derive(DLPack)]
    struct Outer(Doubled);

    #[derive(DLPack)]
    enum Either {
        Lent(Vec<f32>),
        Computed(Doubled),
    }

    #[derive(DLPack)]
    struct Samples(Vec<f32>);

    let facts = [
        Doubled::EXTRAS.facts,
        Outer::EXTRAS.facts,
        Either::EXTRAS.facts,
    ];
    for facts in facts {
        assert!(
            facts.is_on_host() && !facts.lends_host_memory(),
            "{facts:?}"
        );
    }
    assert!(Samples::EXTRAS.facts.lends_host_memory());
    assert!(LIST.lends_host_memory() && !LIST.dynamic_device().lends_host_memory());
    let made = [
        Either::Lent(vec![1.0]),
        Either::Computed(Doubled(vec![1.0])),
    ];
    assert_eq!(made.map(|it| it.describe().unwrap().shape().len()), [1, 1]);
    assert!(Outer(Doubled(vec![1.0])).describe().is_ok());
}

#[test]
fn facts_about_writing() {
    assert!(LIST.is_on_host() && !LIST.dynamic_device().is_on_host());
    assert_eq!(
        ElementOf::<u8>::FACTS.elem(ElementOf::<[f32; 3]>::FACTS),
        ElementOf::<[f32; 3]>::FACTS
    );
    let (owned, alone, shared) = (
        LIST.writable(),
        LIST.writable_alone(),
        LIST.writable_shared(),
    );
    for (facts, is_alone) in [
        (LIST, false),
        (owned, false),
        (alone, true),
        (shared, false),
    ] {
        assert_eq!(facts.is_writable_alone(), is_alone, "{facts:?}");
        assert_eq!(facts.read_only(), LIST);
        assert_eq!(facts.writable_shared(), shared);
    }
    assert_eq!(
        (owned.shared(), alone.shared(), shared.shared()),
        (LIST, LIST, shared)
    );
    assert_eq!((shared.writable(), alone.writable()), (shared, alone));
    for facts in [
        BOOLS.read_only(),
        BOOLS.writable(),
        BOOLS.writable_alone(),
        BOOLS.writable_shared(),
        BOOLS.shared(),
    ] {
        assert_eq!(facts, BOOLS, "no byte of them may be written");
    }
    let any = ExportAssertion::new::<bool>("A", "bool").with_writable(true);
    assert_eq!(refusal(&any, &BOOLS.any_bits().writable_shared()), "");
}

#[test]
fn all_names_are_one_list() {
    let lists: [&[&str]; 3] = [&["a", "ab"], &[], &["ac"]];
    assert_eq!(count_names(&lists), 3);
    assert_eq!(concat_names::<3>(&lists), ["a", "ab", "ac"]);
    // Names of one list are those of the fields of a struct: comparing them too would exceed the limit of constant evaluation.
    const LIST: [&str; 1000] = ["order_book_level_price_at_exchange"; 1000];
    const JOINED: [&str; 1001] = concat_names(&[&["own"], &LIST]);
    assert_eq!((JOINED[0], JOINED[1000]), ("own", LIST[0]));
    let twice: [[&[&str]; 2]; 2] = [[&["b", "a"], &["a"]], [&["a"], &["b", "a"]]];
    for lists in twice {
        let outcome = catch_unwind(|| concat_names::<3>(&lists));
        let message = outcome.expect_err("a name twice");
        let message = message.downcast_ref::<&str>().copied();
        assert_eq!(message, Some("two tensors have the same name"));
    }
}

#[test]
fn axes_of_arrays_and_of_fields() {
    let three = Axes::of_array(3, Axes::NONE);
    let axes = Axes::of_array(2, Axes::of_array(5, three));
    assert_eq!(
        (axes.extents(), axes.strides()),
        (&[2, 5, 3][..], &[15, 3, 1][..])
    );
    let alike = Axes::of_fields(&[three, three]);
    assert_eq!(
        (alike.extents(), alike.strides()),
        (&[2, 3][..], &[3, 1][..])
    );
    let different = Axes::of_fields(&[Axes::of_array(2, Axes::NONE), three]);
    assert_eq!(different.extents(), [5]);
    let square = Axes::of_array(3, three);
    assert_eq!(Axes::of_fields(&[three, square]).extents(), [12]);
}

/// Four of its eight bytes belong to no scalar.
struct Padded(f32, u32);

impl Homogeneous for Padded {
    type Scalar = f32;
    const TRAILING: Axes = Axes::of_array(1, Axes::NONE);
    fn walk_fields<'a>(&'a self, walk: WalkOf<'a, Self>) -> WalkOf<'a, Self> {
        walk.field(&self.0, describe_element_field::<Self, f32>())
    }
    fn walk_fields_mut<'a>(&'a mut self, walk: WalkMutOf<'a, Self>) -> WalkMutOf<'a, Self> {
        walk.field(&mut self.0, describe_element_field::<Self, f32>())
    }
    fn build_from(source: &mut SourceOf<'_, Self>) -> Self {
        Self(source.next(describe_element_field::<Self, f32>()), 0)
    }
}

#[test]
fn padding_is_no_part_of_an_element() {
    assert_eq!(Padded(0.0, 1).1, 1);
    assert!(catch_unwind(no_padding::<Padded>).is_err());
}

#[test]
fn extras_hold_what_was_set() {
    let nothing = Extras::<Vec<f32>>::NONE;
    assert!(!nothing.exclusive && nothing.share.is_none());
    assert!(nothing.exclusive().exclusive);
    let nothing = || of_types::<Vec<f32>>(LIST.writable());
    assert_eq!(nothing().facts, LIST.writable());
    assert!(nothing().share(|_, _, _| None).share.is_some());
    assert!(nothing().lists(true, |_| None).lists.is_some());
    assert!(nothing().lists(false, |_| None).lists.is_none());
}

/// A type with its own `share` function, as the derive writes it for a class.
struct WithShare(SharedBuffer<u8>);

impl DLPack for WithShare {
    const EXTRAS: Extras<Self> = of_types::<Self>(Facts::UNKNOWN).share(|this, request, call| {
        let request = request.expect("asked for");
        call.outcome = Some(Arc::new(this.0.clone()).to_dlpack_with(request));
        None
    });

    fn describe(&self) -> Result<Descriptor<'_>, Error> {
        self.0.describe()
    }
}

#[derive(DLPack)]
struct Kept {
    #[dlpack(data, owner)]
    values: Arc<[u16]>,
}

#[derive(DLPack)]
struct Around(Kept);

#[derive(DLPack)]
struct Ordered {
    #[dlpack(data)]
    items: Vec<u8>,
    #[dlpack(shape)]
    dims: [usize; 2],
    #[dlpack(order)]
    order: Order,
}

/// A type with one field of a derived type is exported by the functions of that field.
#[test]
fn a_newtype_uses_the_export_functions_of_its_field() {
    let whole = WithShare(SharedBuffer::zeroed(3).unwrap());
    let request = Some(&ExportRequest::versioned());
    let route = || Probed::<WithShare>::NEW.__route();
    let described = whole.describe().unwrap();
    assert_eq!(
        (described.shape(), described.is_read_only()),
        (&[3][..], false)
    );
    let mut call = ShareCall::default();
    assert!(share_field::<WithShare, _>(&whole, request, &mut call, route()).is_none());
    let shared = call.outcome.expect("a clone").unwrap();
    assert_eq!(shared.view().as_ptr(), described.as_ptr());
    let around = Around(Kept {
        values: [1, 2].into(),
    });
    let mut call = ShareCall::default();
    assert!(binding::share(&around, request, &mut call).is_none());
    let kept = call.outcome.expect("an owner by itself").unwrap();
    assert_eq!(kept.view().to_vec::<u16>().unwrap(), [1, 2]);
    drop(kept);
    assert_eq!(Arc::strong_count(&around.0.values), 1);

    // By address, if `by_address` is set and there is no request.
    let mut call = ShareCall {
        by_address: true,
        outcome: None,
    };
    assert!(binding::share(&around, request, &mut call).is_none());
    assert!(call.outcome.take().expect("a tensor").is_ok());
    let tensor = binding::share(&around, None, &mut call).expect("a plain tensor");
    assert!(call.outcome.is_none());
    assert_eq!(Arc::strong_count(&around.0.values), 2);
    drop(tensor);
    assert_eq!(Arc::strong_count(&around.0.values), 1);

    let ordered = Ordered {
        items: vec![0; 6],
        dims: [2, 3],
        order: Order::F,
    };
    assert_eq!(ordered.describe().unwrap().strides(), [1, 2]);
    assert_eq!(order(&Order::F), Order::F);
}

/// An export that is kept by its data, without the struct, makes no driver call if no stream is requested.
#[test]
fn an_unordered_export_needs_no_driver() {
    #[derive(Clone)]
    struct Elsewhere(Arc<()>);

    impl Buffer for Elsewhere {
        fn lend(&self) -> Loan<'_> {
            let start = core::ptr::without_provenance::<f32>(0x1000);
            // SAFETY: no code reads that memory.
            unsafe { Loan::from_raw_parts(start, 4, Device::cuda(0)) }
        }
    }

    #[derive(DLPack)]
    struct Owned {
        #[dlpack(data, owner)]
        memory: Elsewhere,
    }

    let memory = Elsewhere(Arc::default());
    let owned = Arc::new(Owned {
        memory: memory.clone(),
    });
    let tensor = owned.to_dlpack().unwrap();
    assert_eq!(Arc::strong_count(&owned), 1);
    assert_eq!(Arc::strong_count(&memory.0), 3);
    drop(tensor);
    assert_eq!(Arc::strong_count(&memory.0), 2);
}

/// A list that was already read can be read again.
#[test]
fn a_list_can_be_read_twice() {
    let list = List(Dims::extents(&[4, 5]));
    assert_eq!(Dims::extents(&list).unwrap()[..], [4, 5]);
    assert_eq!(Dims::strides(&list).unwrap()[..], [4, 5]);
}
