//! The keys of `#[dlpack(..)]` as type names, for rust-analyzer, which completes them where the derive imports user tokens.

macro_rules! keys {
    ($($place:ident: $($key:ident)*;)*) => {$(
        #[allow(missing_docs, missing_debug_implementations, non_camel_case_types, reason = "names and nothing else")]
        pub mod $place {
            $(pub struct $key;)*
        }
    )*};
}
// One line for each position of an attribute. A test of the derive compares these lines.
#[rustfmt::skip]
keys! {
    on_struct: data shape strides byte_strides order offset byte_offset elem dtype device stream readonly writable tensor via legacy release bound;
    on_field: data shape strides byte_strides order offset byte_offset dtype device stream owner readonly writable tensor columns;
    on_enum: bound;
    on_variant: skip;
    on_variant_field: data;
    of_field_tensor: shape strides byte_strides order offset byte_offset elem dtype device stream owner readonly set name;
    of_free_tensor: data shape strides byte_strides order offset byte_offset elem dtype device stream readonly name;
    of_unsafe: data len;
    on_row: bound;
    on_row_field: skip nested;
    of_pymethods: info arrays pickle iterable;
}
