//! Functions and types for the code that the derives generate. Not part of the public API.
//!
//! Generated code consists of calls, each with the span of the user's own tokens, so a bound on a function here decides
//! which error rustc reports to the user. These items may change with every release. The name of the module at the crate's
//! root contains the patch version, so that a derive of another release does not compile with this crate.
//!
//! | file | question that it answers |
//! |---|---|
//! | `probe.rs` | how does a field of this type lend its elements? |
//! | `parts.rs` | which loan does a field lend, and can a clone keep it? Which shape, strides, offset, dtype, device, stream? |
//! | `expression.rs` | what does the expression of a key evaluate to? |
//! | `keys.rs` | which keys can an editor complete? |
//! | `tensor.rs` | is the field a tensor itself, which tensor has this name, and how is a field imported? |
//! | `claim.rs` | does `assert_exports!` hold? |
//!
//! Safe user code may call every function here, in any order and any number of times, without breaking soundness:
//!
//! | items | why they are sound |
//! |---|---|
//! | `raw` | the only `unsafe` function; `address` only reads an address |
//! | `data`, `data_mut`, `data_of`, `data_given`, `described_given`, `via` | a loan lives as long as its borrow, and its layout is checked against it |
//! | `share`, `share_owner` | the memory that the moved clone lends must contain the tensor, or the export is refused |
//! | `whole..`, `present`, `skipped`, `find`, `column`, `names`, `import_..`, `fits`, `fitting`, `given` | they call public traits, or create errors |
//! | `record_column` | it compares the position of the field in every row |
//! | `part`, `Walk`, `WalkMut`, `Source`, `Homogeneous` | the fields that a struct passes are compared with its bytes |
//! | `Extras`, `Facts`, `Axes`, `Claim` | wrong facts give a wrong answer about the type, as a wrong `describe` does; memory is never accessed by them |
//! | the others | constants, numbers and types |

mod claim;
mod expression;
#[cfg(rust_analyzer)]
pub mod keys;
mod parts;
mod probe;
mod tensor;

pub use core::default::Default;
pub use core::marker::Send;
pub use core::option::Option::{self, None, Some};
pub use core::primitive::{bool as Bool, i64 as I64, str as Str};
pub use core::result::Result::{self, Err, Ok};

pub use crate::describe::record::{Columns, NamedDocs, Rows, Table, record_column};
pub use crate::element::Source;
pub use crate::element::axes::Axes;
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
pub use crate::private::parts::{
    data, data_mut, data_of, device, dtype, extents, len, number, offset, order, shape, share,
    share_owner, steps, stream, stream_of, strides, writable,
};
pub use crate::private::probe::{Probe, Unsaid, Whole};
pub use crate::private::tensor::{
    Described, column, count, find, fits, fitting, given, import_column_major, import_whole, names,
    no_variant, present, skipped, unknown_tensor, whole, whole_mut, whole_share,
};

/// The type `T`. Generated code writes it with the span of the user's type, so that errors about the type point there.
pub type Inferred<T> = T;

/// A value of any type, for code after an error that the derive has reported.
pub fn unreachable_stub<T>() -> T {
    unreachable!("the derive reported an error, so this never compiled")
}
