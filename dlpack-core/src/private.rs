//! What the derive calls, and nobody else.
//!
//! An expansion is made of calls, each at the user's own tokens: what a bound here asks for is what rustc says to her.
//! It may change with every release, so a derive of another release must not find it: the name at the crate's root has the
//! patch version in it.
//!
//! | file | answers |
//! |---|---|
//! | `probe.rs` | how does a field of this type lend its elements? |
//! | `parts.rs` | which loan is it, and may a clone keep it? Which extents, strides, offsets, items, device, stream? |
//! | `expression.rs` | what does this expression give? |
//! | `fields.rs` | what does a record do with a field of this type? |
//! | `keys.rs` | which keys does an editor complete? |
//! | `tensor.rs` | is the field a tensor by itself, which one has this name, and how is it made again from one? |
//! | `claim.rs` | does `assert_exports!` hold? |
//!
//! Safe code may call all of it by hand, in any order, once, twice or never, and do no harm:
//!
//! | what | because |
//! |---|---|
//! | `raw` | it is the one `unsafe` function; `address` only reads an address |
//! | `data`, `data_mut`, `data_of`, `data_given`, `described_given`, `via` | a loan lives as long as its borrow, and what is described is checked against it |
//! | `share`, `share_owner` | what the clone lends from its new place has to be the tensor, or it is refused |
//! | `whole..`, `present`, `skipped`, `find`, `column`, `names`, `import_..`, `fits`, `fitting`, `given` | they pass on to public traits, or make errors |
//! | `record_column` | the place of the field is compared in every row |
//! | `part`, `Walk`, `WalkMut`, `Source`, `Homogeneous` | nothing is believed of a struct: the fields that it shows are compared with its bytes |
//! | `Extras`, `Facts`, `Axes`, `Claim` | false facts make a wrong answer about the type, as a wrong `describe` does; memory is never found by them |
//! | `FieldReader`, `FieldWriter` | each field is looked for inside of the record; whatever bytes are there make a value of its type, and only initialised bytes are written |
//! | `RecordLayout`, `FieldLayout`, `FieldType`, `Records` | what a record is said to be is read by other languages; its address and its size are those of a slice |
//! | the rest | constants, numbers and types |

mod claim;
mod expression;
mod fields;
#[cfg(rust_analyzer)]
pub mod keys;
mod parts;
mod probe;
mod tensor;

pub use core::default::Default;
pub use core::marker::Send;
pub use core::mem::offset_of;
pub use core::option::Option::{self, None, Some};
pub use core::primitive::{bool as Bool, i64 as I64, str as Str};
pub use core::result::Result::{self, Err, Ok};

pub use crate::array::ArrayElement;
pub use crate::describe::record::{
    Columns, NamedDocs, Nested, Records, Rows, Table, record_column,
};
pub use crate::element::Source;
pub use crate::element::axes::Axes;
pub use crate::element::fields::{FieldLayout, FieldType, RecordLayout};
pub use crate::element::homogeneous::{
    Homogeneous, Part, PartOf, SourceOf, Walk, WalkMut, WalkMutOf, WalkOf, no_padding, part,
};
pub use crate::export::extras::{Extras, Shared, of_types};
pub use crate::export::tensors::SharedTensor;
pub use crate::import::reader::Import;
pub use crate::layout::LentLists;
pub use crate::layout::shape::{HOLE, List, RankOf};
pub use crate::loan::facts::{Facts, NamedFacts};
pub use crate::loan::raw::{address, raw};
pub use crate::private::claim::{Claim, Elem, Text};
pub use crate::private::expression::{
    Expression, Given, Unfit, data_given, described_given, facts_given, via,
};
pub use crate::private::fields::{ElementField, NestedField, UnsaidField};
pub use crate::private::parts::{
    data, data_mut, data_of, device, dtype, extents, len, number, offset, order, shape, share,
    share_owner, steps, stream, stream_of, strides, writable,
};
pub use crate::private::probe::{Probe, Unsaid, Whole};
pub use crate::private::tensor::{
    Described, column, count, find, fits, fitting, given, import_column_major, import_whole, names,
    no_variant, present, skipped, unknown_tensor, whole, whole_mut, whole_share,
};
pub use crate::tensor::array_element::{FieldAccess, FieldReader, FieldWriter, RecordValue};

/// A type that the compiler finds; it only stands where an error about that type shall point.
pub type Inferred<T> = T;

/// Stands where an error was reported.
pub fn unreachable_stub<T>() -> T {
    unreachable!("the derive reported an error, so this never compiled")
}
