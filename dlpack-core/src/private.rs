//! What the derive calls, and nobody else.
//!
//! An expansion is made of calls, each at the user's own tokens: what a bound here asks for is what rustc says to her.
//! It may change with every release, so a derive of another release must not find it: the name at the crate's root has the
//! patch version in it.
//!
//! | file | answers |
//! |---|---|
//! | `probe.rs` | how does a field of this type lend its elements? |
//! | `data.rs` | which loan is it, and may a clone keep it? |
//! | `shape.rs` | which extents, strides and offsets? |
//! | `place.rs` | items of which type, on which device, written on which stream? |
//! | `tensor.rs` | is the field a tensor by itself, and how is it made again from one? |
//! | `names.rs` | which tensor has this name? |
//! | `claim.rs` | does `assert_exports!` hold? |

mod claim;
mod data;
mod names;
mod place;
mod probe;
mod shape;
mod tensor;

pub use core::default::Default;
pub use core::marker::Send;
pub use core::option::Option::{self, None, Some};
pub use core::primitive::{bool as Bool, i64 as I64, str as Str};
pub use core::result::Result::{self, Err, Ok};

pub use crate::describe::record::{Columns, Rows, Table, record_column};
pub use crate::describe::usual::{Usual, few, few_strides, usual};
pub use crate::element::Source;
pub use crate::element::axes::Axes;
pub use crate::element::homogeneous::{
    Homogeneous, Part, PartOf, SourceOf, Walk, WalkMut, WalkMutOf, WalkOf, no_padding, part,
};
pub use crate::export::extras::{Extras, Shared, of_types};
pub use crate::import::reader::Import;
pub use crate::layout::LentLists;
pub use crate::layout::shape::{HOLE, List, RankOf};
pub use crate::loan::facts::{Facts, NamedFacts};
pub use crate::loan::raw::{address, raw};
pub use crate::private::claim::{Claim, Elem, Text};
pub use crate::private::data::{data, data_mut, data_of, share, writable};
pub use crate::private::names::{column, count, find, names, unknown_tensor};
pub use crate::private::place::{device, dtype, stream, stream_of};
pub use crate::private::probe::{Probe, Unsaid, Whole};
pub use crate::private::shape::{extents, len, number, offset, order, shape, steps, strides};
pub use crate::private::tensor::{
    Described, fits, import_whole, no_variant, present, skipped, via, whole, whole_mut,
    whole_share, whole_usual,
};

/// A type that the compiler finds; it only stands where an error about that type shall point.
pub type Inferred<T> = T;

/// Stands where an error was reported.
pub fn unreachable_stub<T>() -> T {
    unreachable!("the derive reported an error, so this never compiled")
}
