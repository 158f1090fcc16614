//! Functions and types for the code that the derives generate. Not part of the public API.
//!
//! Generated code consists of calls, each with the span of the user's own tokens, so a bound on a function here decides
//! which error rustc reports to the user. These items may change with every release. The name of the module at the crate's
//! root contains the patch version, so that a derive of another release does not compile with this crate.
//!
//! | file | question that it answers |
//! |---|---|
//! | `probe` | how does a field of this type lend its elements? |
//! | `parts` | which loan does a field lend, and can a clone keep it? Which shape, strides, offset, dtype, device, stream? |
//! | `expression` | what does the expression of a key evaluate to? |
//! | `fields` | how is a field of this type in a record read, written and described? |
//! | `keys` | which keys can an editor complete? |
//! | `tensor` | is the field a tensor itself, which tensor has this name, and how is a field imported? |
//! | `assertion` | does `assert_exports!` hold? |
//!
//! Safe user code may call every function here, in any order and any number of times, without breaking soundness:
//!
//! | items | why they are sound |
//! |---|---|
//! | `raw` | the only `unsafe` function; `address` only reads an address |
//! | `lend_field`, `lend_field_mut`, `lend_expression`, `data_expression`, `describe_expression`, `share_expression`, `via_expression` | a loan lives as long as its borrow, and its layout is checked against it |
//! | `export_with_owner`, `share_with_owner` | the memory that the moved clone lends must contain the tensor, or the export is refused |
//! | `describe_field..`, `share_field`, `require_present`, `reject_skipped`, `found_or_unknown`, `describe_column`, `concat_names`, `import_..`, `check_assigned`, `is_assignable`, `require_tensor` | they call public traits, or create errors |
//! | `record_column` | it compares the position of the field in every row |
//! | `part`, `Walk`, `WalkMut`, `Source`, `Homogeneous` | the fields that a struct passes are compared with its bytes |
//! | `Extras`, `Facts`, `Axes`, `ExportAssertion` | wrong facts give a wrong answer about the type, as a wrong `describe` does; memory is never accessed by them |
//! | `FieldReader`, `FieldWriter` | each field is checked to lie inside the record; any bytes there make a value of its type, and only initialised bytes are written |
//! | `RecordLayout`, `FieldLayout`, `FieldType`, `Records` | the described layout is only read by other languages; the address and the size are those of a slice |
//! | the others | constants, numbers and types |

mod assertion;
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
    FieldDescription, Homogeneous, PartOf, SourceOf, Walk, WalkMut, WalkMutOf, WalkOf,
    describe_element_field, no_padding,
};
pub use crate::export::extras::{Extras, ShareCall, of_types};
pub use crate::export::tensors::SharedTensor;
pub use crate::import::reader::Import;
pub use crate::layout::LentLists;
pub use crate::layout::shape::{HOLE, List, RankOf};
pub use crate::loan::facts::{Facts, NamedFacts};
pub use crate::loan::raw::{address, raw};
pub use crate::private::assertion::{AssertionMessage, ElementOf, ExportAssertion};
pub use crate::private::expression::{
    Expression, ExpressionValue, RejectedExpression, data_expression, describe_expression,
    expression_facts, share_expression, via_expression,
};
pub use crate::private::fields::{ElementField, NestedField, UnsaidField};
pub use crate::private::parts::{
    constant_size, device, dtype, export_with_owner, len, lend_expression, lend_field,
    lend_field_mut, list_number, offset, order, require_writable, shape, shape_list,
    share_with_owner, stream, stream_expression, strides, strides_list,
};
pub use crate::private::probe::{Probe, ProbeDefaults, Whole};
pub use crate::private::tensor::{
    Accepts, Described, check_assigned, concat_names, count_names, describe_column, describe_data,
    describe_field, describe_field_mut, found_or_unknown, has_size, import_column_major,
    import_field, is_assignable, no_variant, reject_skipped, replace_column_major, replace_field,
    require_present, require_tensor, share_field, unknown_tensor,
};
pub use crate::tensor::array_element::{FieldAccess, FieldReader, FieldWriter, RecordValue};

/// The type `T`. Generated code writes it with the span of the user's type, so that errors about the type point there.
pub type Inferred<T> = T;

/// A value of any type, for code after an error that the derive has reported.
pub fn unreachable_stub<T>() -> T {
    unreachable!("the derive reported an error, so this never compiled")
}
