//! Every error: its message, and the user's token that it points to.

use super::{expand, expand_at};
use crate::syntax::input::Derive;
use crate::syntax::root::Root;

/// Checks that the source yields exactly these errors, in this order.
fn check(derive: Derive, source: &str, expected: &[(&str, &str)]) {
    let Err(found) = expand(derive, source) else {
        panic!("accepted: {source}")
    };
    let found: Vec<_> = found
        .iter()
        .map(|(message, at)| (message.as_str(), at.as_str()))
        .collect();
    // `data#2` is the second `data` of the source; without a number it is any of them.
    let agree = |(found, expected): (&(&str, &str), &(&str, &str))| {
        let at = match expected.1.contains('#') {
            true => found.1,
            false => found.1.rsplit_once('#').map_or(found.1, |(text, _)| text),
        };
        found.0 == expected.0 && at == expected.1
    };
    let all = found.len() == expected.len() && found.iter().zip(expected).all(agree);
    assert!(all, "{source}\nfound {found:#?}\nexpected {expected:#?}");
    for (message, _) in found {
        assert!(!message.ends_with('.'), "a full stop: {message}");
        let first = message.chars().next().expect("a message");
        assert!(
            !first.is_uppercase() || message.starts_with("DLPack"),
            "upper case: {message}"
        );
    }
}

fn all(derive: Derive, cases: &[(&str, &str, &str)]) {
    for &(source, message, at) in cases {
        check(derive, source, &[(message, at)]);
    }
}

const FIELD_KEYS: &str = "one of `data`, `shape`, `strides`, `byte_strides`, `order`, `offset`, `byte_offset`, \
     `dtype`, `device`, `stream`, `owner`, `readonly`, `writable`, `tensor`, `columns`";
const STRUCT_KEYS: &str = "one of `data`, `shape`, `strides`, `byte_strides`, `order`, `offset`, `byte_offset`, `elem`, \
     `dtype`, `device`, `stream`, `readonly`, `writable`, `tensor`, `via`, `unsafe`, `legacy`, `release`, `crate`, `bound`";

#[test]
fn unknown_keys_list_the_known_ones() {
    let field = |key: &str, hint: &str| {
        let source = format!("struct S {{ #[dlpack({key})] a: Vec<f32>, b: usize }}");
        let message =
            format!("unknown dlpack field attribute `{key}`, expected {FIELD_KEYS}{hint}");
        check(Derive::DLPack, &source, &[(&message, key)]);
    };
    field("dat", "; did you mean `data`?");
    field("shap", "; did you mean `shape`?");
    field("read_only", "; did you mean `readonly`?");
    // The names that other libraries use.
    field("dims", "; did you mean `shape`?");
    field("extents", "; did you mean `shape`?");
    field("size", "; did you mean `shape`?");
    field("stride", "; did you mean `strides`?");
    field("steps", "; did you mean `strides`?");
    field("dev", "; did you mean `device`?");
    field("array", "; did you mean `data`?");
    field("linesize", "; did you mean `byte_strides`?");
    field("begin", "; did you mean `offset`?");
    field("datatype", "; did you mean `dtype`?");
    field("queue", "; did you mean `stream`?");
    field("keep", "; did you mean `owner`?");
    field("immutable", "; did you mean `readonly`?");
    field("mutable", "; did you mean `writable`?");
    field("records", "; did you mean `columns`?");
    field("dtype_", "; did you mean `dtype`?");
    field("xyz", "");
    // Half of a key, or three letters more, are not alike.
    field("datum", "");
    field("shapexyz", "");
    field("xyzshape", "");
    field("device_xyz", "");
    field(
        "info",
        "; write `#[dlpack_pymethods(info)]` above `#[pymethods]`",
    );
    field("tensors", "; did you mean `tensor`?");
    let message = format!(
        "unknown dlpack struct attribute `layout`, expected {STRUCT_KEYS}; did you mean `order`?"
    );
    check(
        Derive::DLPack,
        "#[dlpack(layout = 3)] struct S(Vec<f32>);",
        &[(&message, "layout")],
    );
    let message = format!(
        "unknown dlpack struct attribute `scalar`, expected {STRUCT_KEYS}; did you mean `elem`?"
    );
    check(
        Derive::DLPack,
        "#[dlpack(scalar = f32)] struct S(Vec<f32>);",
        &[(&message, "scalar")],
    );
    all(
        Derive::DLPack,
        &[
            (
                "#[dlpack(rename = \"x\")] enum E { A(Vec<f32>) }",
                "unknown dlpack enum attribute `rename`, expected one of `crate`, `bound`",
                "rename",
            ),
            (
                "enum E { #[dlpack(skipped)] A, B(Vec<f32>) }",
                "unknown dlpack variant attribute `skipped`, expected `skip`",
                "skipped",
            ),
            (
                "enum E { #[dlpack(ignore)] A, B(Vec<f32>) }",
                "unknown dlpack variant attribute `ignore`, expected `skip`; did you mean `skip`?",
                "ignore",
            ),
            (
                "enum E { A(#[dlpack(dat)] Vec<f32>) }",
                "unknown dlpack field attribute `dat`, expected `data`; did you mean `data`?",
                "dat",
            ),
            (
                "#[dlpack(unsafe(data = p, lem = n))] struct S { p: *const f32, n: usize }",
                "unknown dlpack `unsafe` attribute `lem`, expected one of `data`, `len`; did you mean `len`?",
                "lem",
            ),
            (
                "#[dlpack(unsafe(data = p, size = n))] struct S { p: *const f32, n: usize }",
                "unknown dlpack `unsafe` attribute `size`, expected one of `data`, `len`; did you mean `len`?",
                "size",
            ),
            (
                "struct S { #[dlpack(tensor(names = \"x\"))] a: Vec<f32> }",
                "unknown dlpack tensor attribute `names`, expected one of `shape`, `strides`, `byte_strides`, `order`, \
             `offset`, `byte_offset`, `elem`, `dtype`, `device`, `stream`, `owner`, `readonly`, `set`, `name`; did you mean `name`?",
                "names",
            ),
        ],
    );
}

#[test]
fn keys_have_their_places() {
    all(
        Derive::DLPack,
        &[
            (
                "#[dlpack(data)] struct S { a: Vec<f32>, b: u8 }",
                "`data` belongs on a field, not on the struct",
                "data",
            ),
            (
                "#[dlpack(owner)] struct S(Vec<f32>);",
                "`owner` belongs on a field, not on the struct",
                "owner",
            ),
            (
                "#[dlpack(columns)] struct S(Vec<f32>);",
                "`columns` belongs on a field, not on the struct",
                "columns",
            ),
            (
                "#[dlpack(skip)] struct S(Vec<f32>);",
                "`skip` belongs on an enum variant, not on the struct",
                "skip",
            ),
            (
                "#[dlpack(name = \"x\")] struct S(Vec<f32>);",
                "`name` belongs on `tensor(..)`, not on the struct",
                "name",
            ),
            (
                "#[dlpack(len = 3)] struct S(Vec<f32>);",
                "`len` belongs on `unsafe(data = .., len = ..)`, not on the struct",
                "len",
            ),
            (
                "struct S { #[dlpack(skip)] a: Vec<f32> }",
                "`skip` belongs on an enum variant, not on a field",
                "skip",
            ),
            (
                "struct S { #[dlpack(elem = f32)] a: Vec<u8> }",
                "`elem` belongs on the struct, not on a field",
                "elem",
            ),
            (
                "struct S { #[dlpack(via = x)] a: Vec<u8> }",
                "`via` belongs on the struct, not on a field",
                "via",
            ),
            (
                "struct S { #[dlpack(crate = x)] a: Vec<u8> }",
                "`crate` belongs on the struct, not on a field",
                "crate",
            ),
            (
                "struct S { #[dlpack(unsafe)] a: Vec<u8> }",
                "`unsafe` belongs on the struct, not on a field",
                "unsafe",
            ),
            (
                "struct S { #[dlpack(legacy)] a: Vec<u8> }",
                "`legacy` belongs on the struct, not on a field",
                "legacy",
            ),
            (
                "enum E { #[dlpack(data)] A(Vec<f32>) }",
                "`data` belongs on a field, not on a variant",
                "data",
            ),
            (
                "enum E { #[dlpack(shape)] A(Vec<f32>) }",
                "`shape` belongs on the struct, not on a variant",
                "shape",
            ),
            (
                "enum E { A(#[dlpack(skip)] Vec<f32>) }",
                "`skip` belongs on the variant, not on its field",
                "skip",
            ),
            (
                "enum E { A(#[dlpack(shape)] Vec<f32>) }",
                "a variant's field can only be `data`: write `shape` on the type of the field",
                "shape",
            ),
            (
                "#[dlpack(shape = [3])] enum E { A(Vec<f32>) }",
                "`shape` does not apply to an enum: write it on the types of its variants' fields",
                "shape",
            ),
            (
                "#[dlpack(skip)] enum E { A(Vec<f32>) }",
                "`skip` belongs on an enum variant, not on an enum",
                "skip",
            ),
            (
                "#[dlpack(data)] enum E { A(Vec<f32>) }",
                "`data` belongs on a variant's field, not on an enum",
                "data",
            ),
            (
                "#[dlpack(len = 3)] enum E { A(Vec<f32>) }",
                "`len` belongs on `unsafe(data = .., len = ..)`, not on an enum",
                "len",
            ),
            (
                "#[dlpack(name = \"x\")] enum E { A(Vec<f32>) }",
                "`name` belongs on `tensor(..)`, not on an enum",
                "name",
            ),
            (
                "#[dlpack(set)] enum E { A(Vec<f32>) }",
                "`set` belongs on `tensor(..)`, not on an enum",
                "set",
            ),
            (
                "enum E { A(#[dlpack(name = \"x\")] Vec<f32>) }",
                "`name` belongs on `tensor(..)`, not on a variant's field",
                "name",
            ),
            (
                "struct S { #[dlpack(tensor(data = x))] a: Vec<f32> }",
                "the field itself is the data of this tensor: remove `data`, or move `tensor(..)` to the struct",
                "data",
            ),
            (
                "struct S { #[dlpack(tensor(writable))] a: Vec<f32> }",
                "`writable` does not belong in `tensor(..)`, expected one of `shape`, `strides`, `byte_strides`, `order`, \
             `offset`, `byte_offset`, `elem`, `dtype`, `device`, `stream`, `owner`, `readonly`, `set`, `name`",
                "writable",
            ),
            (
                "#[dlpack(unsafe(data = p, shape = 3))] struct S { p: *const f32 }",
                "`shape` does not belong in `unsafe(..)`, expected one of `data`, `len`",
                "shape",
            ),
        ],
    );
}

#[test]
fn keys_have_their_forms() {
    all(
        Derive::DLPack,
        &[
            // A value for a flag.
            (
                "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(shape = [3])] b: usize }",
                "`shape` marks this field and takes no value: write `shape = ..` on the struct",
                "shape",
            ),
            (
                "struct S { #[dlpack(data = 3)] a: Vec<f32> }",
                "`data` marks this field and takes no value: write `data = ..` on the struct",
                "data",
            ),
            (
                "#[dlpack(readonly = true)] struct S(Vec<f32>);",
                "`readonly` is a flag: remove its value",
                "readonly",
            ),
            (
                "struct S { #[dlpack(readonly = 1)] a: Vec<f32> }",
                "`readonly` is a flag: remove its value",
                "readonly",
            ),
            (
                "enum E { #[dlpack(skip = true)] A, B(Vec<f32>) }",
                "`skip` is a flag: remove its value",
                "skip",
            ),
            (
                "struct S { #[dlpack(data(x))] a: Vec<f32> }",
                "`data` is a flag: remove the parentheses",
                "data",
            ),
            (
                "struct S { #[dlpack(tensor = \"x\")] a: Vec<f32> }",
                "`tensor` takes no value: write `tensor(name = \"..\")`",
                "tensor",
            ),
            // A flag for a key with a value.
            (
                "#[dlpack(shape)] struct S(Vec<f32>);",
                "`shape` needs a value on the struct, such as `shape = [rows, 3]`; as a flag it belongs on a field",
                "shape",
            ),
            (
                "#[dlpack(elem)] struct S(Vec<f32>);",
                "`elem` needs a value, such as `elem = f32`",
                "elem",
            ),
            (
                "#[dlpack(via)] struct S(Vec<f32>);",
                "`via` needs a value, such as `via = self.to_array()`",
                "via",
            ),
            (
                "#[dlpack(bound)] struct S(Vec<f32>);",
                "`bound` needs a value, such as `bound = \"T: Element\"`",
                "bound",
            ),
            (
                "#[dlpack(crate)] struct S(Vec<f32>);",
                "`crate` needs a value, such as `crate = ::dlpack_core`",
                "crate",
            ),
            (
                "#[dlpack(tensor)] struct S(Vec<f32>);",
                "`tensor` on the struct needs a list: `tensor(name = \"..\", data = ..)`",
                "tensor",
            ),
            (
                "#[dlpack(unsafe)] struct S(Vec<f32>);",
                "`unsafe` needs a list: `unsafe(data = .., len = ..)`",
                "unsafe",
            ),
            (
                "#[dlpack(unsafe = 3)] struct S(Vec<f32>);",
                "`unsafe` needs a list: `unsafe(data = .., len = ..)`",
                "unsafe",
            ),
            (
                "struct S { #[dlpack(tensor(shape))] a: Vec<f32> }",
                "`shape` needs a value, such as `shape = [rows, 3]`",
                "shape",
            ),
            // A list without brackets is one error; a word similar to a key is another.
            (
                "#[dlpack(shape = h, w, 3, order = \"F\")] struct S(Vec<f32>);",
                "`shape` takes one list: write `shape = [h, w, 3]`",
                "w",
            ),
            // Keys of other places, and words similar to keys that need a value, are names here.
            (
                "#[dlpack(shape = rows, columns)] struct S { #[dlpack(data)] a: Vec<f32>, rows: usize, columns: usize }",
                "`shape` takes one list: write `shape = [rows, columns]`",
                "columns",
            ),
            (
                "#[dlpack(shape = batch, items, len)] struct S(Vec<f32>);",
                "`shape` takes one list: write `shape = [batch, items, len]`",
                "items",
            ),
            (
                "#[dlpack(shape = self.h, self.w)] struct S { #[dlpack(data)] a: Vec<f32>, h: usize, w: usize }",
                "`shape` takes one list: write `shape = [self.h, self.w]`",
                "self.w",
            ),
            (
                "#[dlpack(shape = dims, offset)] struct S { #[dlpack(data)] a: Vec<f32>, dims: [usize; 2] }",
                "`shape` takes one list: write `shape = [dims, offset]`; if `offset` is the key of that name, it lacks a value",
                "offset",
            ),
            (
                "#[dlpack(shape = dims, data)] struct S { a: Vec<f32>, dims: [usize; 2] }",
                "`data` belongs on a field, not on the struct",
                "data",
            ),
            (
                "#[dlpack(byte_strides = 12, 4)] struct S(Vec<f32>);",
                "`byte_strides` takes one list: write `byte_strides = [12, 4]`",
                "4",
            ),
            (
                "#[dlpack(shape = list, readonli)] struct S(Vec<f32>);",
                "unknown dlpack struct attribute `readonli`, expected one of `data`, `shape`, `strides`, `byte_strides`, `order`, `offset`, `byte_offset`, `elem`, `dtype`, `device`, `stream`, `readonly`, `writable`, `tensor`, `via`, `unsafe`, `legacy`, `release`, `crate`, `bound`; did you mean `readonly`?",
                "readonli",
            ),
            // Nothing continues a list in brackets, a key that failed, or another attribute.
            (
                "#[dlpack(shape = [h, w], contiguous)] struct S(Vec<f32>);",
                &format!("unknown dlpack struct attribute `contiguous`, expected {STRUCT_KEYS}"),
                "contiguous",
            ),
            (
                "#[dlpack(shape = [h, w], 3)] struct S(Vec<f32>);",
                &format!("expected a key, {STRUCT_KEYS}"),
                "3",
            ),
            // Parentheses or nothing instead of a value.
            (
                "#[dlpack(shape(3, 4))] struct S(Vec<f32>);",
                "`shape` takes its value after `=`, such as `shape = [rows, 3]`",
                "shape",
            ),
            (
                "#[dlpack(shape =)] struct S(Vec<f32>);",
                "`shape` needs a value, such as `shape = [rows, 3]`",
                "shape",
            ),
            (
                "#[dlpack(offset =, readonly)] struct S(Vec<f32>);",
                "`offset` needs a value, such as `offset = start`",
                "offset",
            ),
            (
                "#[dlpack(elem = , readonly)] struct S(Vec<f32>);",
                "`elem` needs a value, such as `elem = f32`",
                "elem",
            ),
            // No key at all.
            (
                "struct S { #[dlpack] a: Vec<f32>, b: u8 }",
                &format!("expected a list in parentheses, {FIELD_KEYS}"),
                "dlpack",
            ),
            (
                "enum E { #[dlpack = \"skip\"] A }",
                "expected a list in parentheses, `skip`",
                "dlpack",
            ),
            (
                "enum E { #[dlpack(\"skip\")] A }",
                "expected a key, `skip`",
                "\"skip\"",
            ),
            (
                "enum E { A, #[dlpack(,)] B }",
                "expected a key, `skip`",
                ",",
            ),
            (
                "enum E { #[dlpack(skip skip)] A, B(Vec<f32>) }",
                "expected `,` after `skip`",
                "skip#2",
            ),
            (
                "enum E { #[dlpack(skip::x)] A, B(Vec<f32>) }",
                "expected `,` after `skip`",
                ":",
            ),
        ],
    );
}

#[test]
fn a_list_without_brackets_ends_with_its_attribute() {
    let bogus = format!("unknown dlpack struct attribute `bogus`, expected {STRUCT_KEYS}");
    let no_key = format!("expected a key, {STRUCT_KEYS}");
    let source = "#[dlpack(shape = n)] #[dlpack(bogus, 17)] struct S(Vec<f32>);";
    check(
        Derive::DLPack,
        source,
        &[(&bogus, "bogus"), (&no_key, "17")],
    );
    let source = "#[dlpack(shape = n)] #[dlpack(shape = m, 17)] struct S(Vec<f32>);";
    let list = "`shape` takes one list: write `shape = [m, 17]`";
    let twice = "`shape` is given twice; remove one";
    check(Derive::DLPack, source, &[(list, "17"), (twice, "shape#2")]);
}

#[test]
fn values_have_their_kinds() {
    all(
        Derive::DLPack,
        &[
            (
                "#[dlpack(device = \"cuda\")] struct S(Vec<f32>);",
                "expected an expression such as `Device::CPU`, found a string",
                "\"cuda\"",
            ),
            (
                "#[dlpack(dtype = \"f32\")] struct S(Vec<f32>);",
                "expected an expression such as `DataType::F32`, found a string",
                "\"f32\"",
            ),
            (
                "#[dlpack(shape = \"3, 4\")] struct S(Vec<f32>);",
                "expected an expression such as `[rows, 3]`, found a string",
                "\"3, 4\"",
            ),
            (
                "#[dlpack(offset = _)] struct S(Vec<f32>);",
                "expected an expression such as `start`, found `_`",
                "_",
            ),
            (
                "#[dlpack(shape = _)] struct S(Vec<f32>);",
                "expected an expression such as `[rows, 3]`, found `_`",
                "_",
            ),
            (
                "#[dlpack(elem = \"f32\")] struct S(Vec<f32>);",
                "expected a type, such as `elem = f32`; remove the quotes",
                "\"f32\"",
            ),
            (
                "#[dlpack(crate = \"dlpack_core\")] struct S(Vec<f32>);",
                "expected a path, such as `crate = ::dlpack_core`; remove the quotes",
                "\"dlpack_core\"",
            ),
            (
                "#[dlpack(order = \"c\")] struct S(Vec<f32>);",
                "unknown order \"c\", expected `\"C\"` or `\"F\"`",
                "\"c\"",
            ),
            (
                "#[dlpack(legacy = \"x\")] struct S(Vec<f32>);",
                "unknown legacy \"x\", expected `\"copy\"` or `\"refuse\"`",
                "\"x\"",
            ),
            (
                "#[dlpack(release = \"later\")] struct S(Vec<f32>);",
                "unknown release \"later\", expected `\"safe\"` or `\"immediate\"`",
                "\"later\"",
            ),
            (
                "#[dlpack(legacy = refuse)] struct S(Vec<f32>);",
                "expected a string literal, such as `legacy = \"refuse\"`",
                "refuse",
            ),
            (
                "#[dlpack(bound = T)] struct S<T>(Vec<T>);",
                "expected a string literal, such as `bound = \"T: Element\"`",
                "T",
            ),
            (
                "#[dlpack(bound = \"T\")] struct S<T>(Vec<T>);",
                "expected predicates of a where clause, such as `bound = \"T: Element\"`",
                "\"T\"",
            ),
            (
                "#[dlpack(shape = [3, , 4])] struct S(Vec<f32>);",
                "expected an expression or `_` before this comma",
                ",",
            ),
            (
                "struct S { #[dlpack(tensor(name = weights))] a: Vec<f32> }",
                "expected a string literal, such as `name = \"weights\"`",
                "weights",
            ),
        ],
    );
}

#[test]
fn a_key_is_said_once() {
    all(
        Derive::DLPack,
        &[
            (
                "struct S { #[dlpack(data, data)] a: Vec<f32> }",
                "`data` is given twice; remove one",
                "data#2",
            ),
            (
                "#[dlpack(shape = [3])] #[dlpack(shape = [4])] struct S(Vec<f32>);",
                "`shape` is given twice; remove one",
                "shape#2",
            ),
            (
                "struct Image { #[dlpack(data)] pixels: Vec<f32>, #[dlpack(data)] more: Vec<f32> }",
                "only one field can be `data`; `pixels` already is",
                "data#2",
            ),
            (
                "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(shape)] b: u8, #[dlpack(shape)] c: u8 }",
                "only one field can be `shape`; `b` already is",
                "shape#2",
            ),
            (
                "struct S { #[dlpack(data, owner)] a: Arc<[f32]>, #[dlpack(owner)] b: Arc<u8> }",
                "only one field can be `owner`; `a` already is",
                "owner#2",
            ),
            (
                "#[dlpack(shape = [3])] struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(shape)] b: u8 }",
                "`shape` is already set on the struct",
                "shape#2",
            ),
            (
                "#[dlpack(data = &self.b[..])] struct S { #[dlpack(data)] a: Vec<f32>, b: Vec<f32> }",
                "`data` is already set on the struct",
                "data",
            ),
            (
                "#[dlpack(data = &self.b[..], unsafe(data = p, len = 3))] struct S { b: Vec<f32>, p: *const u8 }",
                "`data` is already set by `data`",
                "unsafe",
            ),
            (
                "enum E { A(#[dlpack(data)] Vec<f32>, #[dlpack(data)] Vec<f32>) }",
                "only one field can be `data`; `0` already is",
                "data#2",
            ),
        ],
    );
}

#[test]
fn a_field_has_one_role() {
    all(
        Derive::DLPack,
        &[
            (
                "struct S { #[dlpack(data, shape)] a: Vec<f32>, b: u8 }",
                "a field has one role; `data` is already set here",
                "shape",
            ),
            (
                "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(shape, strides)] b: [u8; 1] }",
                "a list is either `shape` or `strides`, and `shape` is already set here; a `Layout<N>` keeps both",
                "strides",
            ),
            (
                "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(strides, shape)] b: (u8, u8) }",
                "a list is either `shape` or `strides`, and `strides` is already set here; a `Layout<N>` keeps both",
                "shape",
            ),
            (
                "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(shape, strides, offset)] b: Layout<1> }",
                "a field has one role; `shape` is already set here",
                "offset",
            ),
            (
                "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(shape, byte_strides)] b: Layout<1> }",
                "a field has one role; `shape` is already set here",
                "byte_strides",
            ),
            (
                "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(stream, owner)] b: Arc<u8> }",
                "a field has one role; `stream` is already set here",
                "owner",
            ),
            (
                "struct S { #[dlpack(columns, shape)] a: Vec<R>, b: u8 }",
                "a field has one role; `columns` is already set here",
                "shape",
            ),
            (
                "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(shape, readonly)] b: [u8; 1] }",
                "`readonly` only applies to the `data` field",
                "readonly",
            ),
            (
                "struct S { #[dlpack(readonly)] a: Vec<f32>, b: u8 }",
                "`readonly` only applies to the `data` field",
                "readonly",
            ),
            (
                "struct S { #[dlpack(tensor, readonly)] a: Vec<f32>, b: u8 }",
                "`readonly` only applies to the `data` field; for a tensor write `tensor(readonly)`",
                "readonly",
            ),
            (
                "struct S { #[dlpack(tensor, writable)] a: Vec<f32>, b: u8 }",
                "`writable` only applies to the `data` field",
                "writable",
            ),
        ],
    );
}

#[test]
fn a_struct_has_data() {
    all(
        Derive::DLPack,
        &[
            (
                "struct Image { pixels: Vec<f32>, dims: [usize; 3] }",
                "missing `#[dlpack(data)]`: mark the field of `Image` that holds the elements",
                "Image",
            ),
            (
                "struct Image { pixels: Vec<f32>, #[dlpack(shape)] dims: [usize; 3] }",
                "missing `#[dlpack(data)]`: mark the field of `Image` that holds the elements",
                "Image",
            ),
            (
                "#[dlpack(shape = [3])] struct Image(#[dlpack(shape)] [usize; 3]);",
                "missing `#[dlpack(data)]`: mark the field of `Image` that holds the elements",
                "Image",
            ),
            (
                "struct Image;",
                "`Image` has no field that holds the elements: write `#[dlpack(data = ..)]` or `#[dlpack(via = ..)]`",
                "Image",
            ),
            (
                "#[dlpack(unsafe(len = 3))] struct S { p: *const f32 }",
                "missing `data`: write `unsafe(data = .., len = ..)`",
                "len",
            ),
            (
                "#[dlpack(unsafe(data = p))] struct S { p: *const f32 }",
                "missing `len`: write `unsafe(data = .., len = ..)`",
                "data",
            ),
            (
                "#[dlpack(unsafe())] struct S { p: *const f32 }",
                "missing `data`: write `unsafe(data = .., len = ..)`",
                "unsafe",
            ),
            (
                "#[dlpack(via = self.x(), shape = [3])] struct S(Vec<f32>);",
                "`via` returns a complete tensor: `shape` has no effect on it, remove one",
                "shape",
            ),
            (
                "#[dlpack(via = self.x())] struct S(#[dlpack(data)] Vec<f32>);",
                "`via` returns a complete tensor: `data` has no effect on it, remove one",
                "data",
            ),
            (
                "struct S { #[dlpack(tensor)] a: Vec<f32>, #[dlpack(shape)] b: u8 }",
                "`shape` needs a `data` field: inside `tensor(..)` it applies to that tensor",
                "shape",
            ),
            (
                "#[dlpack(readonly)] struct S { #[dlpack(tensor)] a: Vec<f32> }",
                "`readonly` needs a `data` field: inside `tensor(..)` it applies to that tensor",
                "readonly",
            ),
            (
                "#[dlpack(shape = [3])] struct S { #[dlpack(columns)] a: Vec<R> }",
                "`shape` needs a `data` field: inside `tensor(..)` it applies to that tensor",
                "shape",
            ),
            (
                "#[dlpack(tensor(name = \"b\", data = &self.a[1..]))] struct S { #[dlpack(owner)] a: Arc<[f32]> }",
                "`owner` belongs to the field of a tensor: write `tensor(owner)` there",
                "owner",
            ),
            (
                "#[dlpack(tensor(name = \"b\", data = &self.a[1..], set))] struct S { a: Vec<f32> }",
                "`set` needs a field to put the elements into: write `tensor(set)` on it",
                "set",
            ),
            (
                "struct S { #[dlpack(tensor, set)] a: Vec<f32> }",
                "`set` belongs on `tensor(..)`, not on a field",
                "set",
            ),
            (
                "#[dlpack(tensor(name = \"b\", data = &self.a[1..], owner))] struct S { a: Arc<[f32]> }",
                "`owner` needs a field to clone: write `tensor(owner)` on the field that holds the elements",
                "owner",
            ),
        ],
    );
}

#[test]
fn keys_do_not_contradict() {
    let both = "both say the same; keep one";
    for (first, second, why) in [
        ("strides = [1]", "byte_strides = [4]", both),
        ("byte_strides = [4]", "strides = [1]", both),
        ("offset = 1", "byte_offset = 4", both),
        (
            "elem = u8",
            "dtype = DataType::U8",
            "`elem` is known at compile time, `dtype` at run time; keep one",
        ),
        (
            "order = \"F\"",
            "strides = [1]",
            "both place the elements; keep one",
        ),
        (
            "order = \"C\"",
            "byte_strides = [1]",
            "both place the elements; keep one",
        ),
        (
            "strides = [1]",
            "order = self.order()",
            "both place the elements; keep one",
        ),
        ("readonly", "writable", "a tensor is one of them; keep one"),
    ] {
        let key = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
        let (one, other) = (key(first), key(second));
        let source = format!(
            "#[dlpack({first}, {second})] struct S {{ #[dlpack(data)] a: Vec<f32>, b: u8 }}"
        );
        let message = format!("`{one}` excludes `{other}`: {why}");
        check(Derive::DLPack, &source, &[(&message, &other)]);
    }
    all(
        Derive::DLPack,
        &[
            (
                "#[dlpack(order = \"F\")] struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(strides)] b: [i64; 2] }",
                "`order` excludes `strides`: both place the elements; keep one",
                "strides",
            ),
            (
                "struct S { #[dlpack(data, readonly, writable)] a: Vec<f32> }",
                "`readonly` excludes `writable`: a tensor is one of them; keep one",
                "writable",
            ),
            (
                "#[dlpack(data = &self.a[..], writable)] struct S { a: Vec<f32> }",
                "`writable` needs a `data` field: an expression only lends a shared reference",
                "writable",
            ),
            (
                "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(stream)] s: StreamHandle }",
                "`stream` needs a `device` field: a stream handle is valid on its device only",
                "stream",
            ),
            (
                "#[dlpack(unsafe(data = p, len = 3))] struct S { p: *mut f32, #[dlpack(stream)] s: StreamHandle }",
                "`stream` needs a `device` field: a stream handle is valid on its device only",
                "stream",
            ),
            (
                "#[dlpack(data = &self.a[..], stream = self.s())] struct S { a: Vec<f32> }",
                "`stream` needs a `device` field: a stream handle is valid on its device only",
                "stream",
            ),
            (
                "struct S { #[dlpack(owner)] a: Vec<f32> }",
                "cloning a `Vec` copies its elements: an `owner` is a cheap handle such as `Arc<..>`",
                "Vec<f32>",
            ),
            (
                "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(owner)] b: [f32; 3] }",
                "cloning an array copies its elements: an `owner` is a cheap handle such as `Arc<..>`",
                "[f32; 3]",
            ),
            (
                "struct S { #[dlpack(tensor(set, shape = [2], strides = [3]))] a: Vec<f32> }",
                "`set` fills the field with the elements of an array, one after another: remove `strides`, or copy the array in a method of your own",
                "strides",
            ),
            (
                "struct S { #[dlpack(tensor(elem = bool, set))] a: Vec<u8> }",
                "`set` fills the field with the elements of an array, one after another: remove `elem`, or copy the array in a method of your own",
                "elem",
            ),
            (
                "struct S { #[dlpack(tensor(set, order = o))] a: Vec<u8>, o: Order }",
                "`set` fills the field with the elements of an array, one after another: remove `order`, or copy the array in a method of your own",
                "order",
            ),
            (
                "struct S { #[dlpack(tensor(owner))] a: Option<Vec<f32>> }",
                "cloning a `Vec` copies its elements: an `owner` is a cheap handle such as `Arc<..>`",
                "Vec<f32>",
            ),
            (
                "struct S { #[dlpack(data)] a: Arc<[f32]>, #[dlpack(tensor, owner)] b: [f32; 3] }",
                "cloning an array copies its elements: an `owner` is a cheap handle such as `Arc<..>`",
                "[f32; 3]",
            ),
            (
                "struct S { #[dlpack(tensor(owner, device = d, stream = s))] a: Arc<Memory>, d: Device, s: StreamHandle }",
                "`stream` excludes `owner`: an export keeps the owner alone, and the stream may be gone before it; remove `owner`, or let the owner's `Buffer` name the stream with `Loan::with_stream`",
                "stream",
            ),
            (
                "#[dlpack(device = Device::cuda(0))] struct S { #[dlpack(data, owner)] a: Arc<Memory>, #[dlpack(stream)] s: Arc<CudaStream> }",
                "`stream` excludes `owner`: an export keeps the owner alone, and the stream may be gone before it; remove `owner`, or let the owner's `Buffer` name the stream with `Loan::with_stream`",
                "stream",
            ),
        ],
    );
}

#[test]
fn lists_fit() {
    all(
        Derive::DLPack,
        &[
            (
                "#[dlpack(shape = [_, 3, _])] struct S(Vec<f32>);",
                "only one extent can be `_`: the length of the data yields one number",
                "_#2",
            ),
            (
                "#[dlpack(shape = [_, 3], strides = [3, 1])] struct S(Vec<f32>);",
                "with strides, write every size of the shape: `_` cannot be inferred from the length of the data",
                "_",
            ),
            (
                "#[dlpack(shape = [4, 3, 2], strides = [3, 1])] struct S(Vec<f32>);",
                "`strides` and `shape` need one entry per axis: here are 2 strides and 3 extents",
                "[3, 1]",
            ),
            (
                "#[dlpack(byte_strides = [_, _])] struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(shape)] b: [u8; 3] }",
                "`byte_strides` and `shape` need one entry per axis: here are 2 strides and 3 extents",
                "[_, _]",
            ),
            (
                "#[dlpack(shape = [1])] struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(strides)] b: (u8, u8) }",
                "`strides` and `shape` need one entry per axis: here are 2 strides and 1 extents",
                "strides",
            ),
        ],
    );
}

#[test]
fn tensors_have_their_own_names() {
    all(
        Derive::DLPack,
        &[
            (
                "struct S { #[dlpack(tensor)] obs: Vec<f32>, #[dlpack(tensor(name = \"obs\"))] b: Vec<f32> }",
                "tensor `obs` is already defined; give each its own `name`",
                "\"obs\"",
            ),
            (
                "struct S { #[dlpack(tensor(name = \"b\"))] obs: Vec<f32>, #[dlpack(tensor)] b: Vec<f32> }",
                "tensor `b` is already defined; give each its own `name`",
                "b",
            ),
            (
                "struct S { #[dlpack(tensor(name = \"two words\"))] a: Vec<f32> }",
                "\"two words\" is not an attribute name: use letters, digits and `_`, such as `name = \"weights\"`",
                "\"two words\"",
            ),
            (
                "struct S { #[dlpack(tensor(name = \"r#type\"))] a: Vec<f32> }",
                "\"r#type\" is not an attribute name: use letters, digits and `_`, such as `name = \"weights\"`",
                "\"r#type\"#1",
            ),
            (
                "struct S { #[dlpack(tensor(name = \"\"))] a: Vec<f32> }",
                "\"\" is not an attribute name: use letters, digits and `_`, such as `name = \"weights\"`",
                "\"\"",
            ),
            (
                "struct S { #[dlpack(tensor)] tensor: Vec<f32> }",
                "a tensor cannot be called `tensor`: its accessor would hide `describe_tensor`; write `tensor(name = \"..\")`",
                "tensor",
            ),
            (
                "struct S(#[dlpack(tensor)] Vec<f32>);",
                "a field without a name needs one here: `tensor(name = \"..\")`",
                "tensor",
            ),
            (
                "#[dlpack(tensor(data = &self.a[..]))] struct S { a: Vec<f32> }",
                "a `tensor` on the struct needs a name: `tensor(name = \"..\", data = ..)`",
                "tensor",
            ),
            (
                "#[dlpack(tensor(name = \"x\"))] struct S { a: Vec<f32> }",
                "a `tensor` on the struct needs its data: `tensor(name = \"..\", data = ..)`",
                "tensor",
            ),
            (
                "#[dlpack(tensor(name = \"x\", data = y, unsafe(data = p, len = 3)))] struct S { a: Vec<f32> }",
                "`data` is already set by `data`",
                "unsafe",
            ),
            (
                "struct S { #[dlpack(tensor(strides = [1], order = \"F\"))] a: Vec<f32> }",
                "`strides` excludes `order`: both place the elements; keep one",
                "order",
            ),
            (
                "struct S<T> { #[dlpack(tensor)] a: Vec<T>, #[dlpack(columns)] b: Vec<R> }",
                "the names of `columns` and other tensors cannot be joined in a generic struct: \
             move the `columns` field to a struct of its own",
                "columns",
            ),
        ],
    );
}

#[test]
fn enums_delegate() {
    all(
        Derive::DLPack,
        &[
            (
                "enum Never {}",
                "`Never` has no variant that could hold a tensor",
                "Never",
            ),
            (
                "enum Never { #[dlpack(skip)] A, #[dlpack(skip)] B(Vec<f32>) }",
                "every variant of `Never` is skipped: leave one that holds a tensor",
                "Never",
            ),
            (
                "enum Audio { Mono(Vec<f32>), Empty }",
                "variant `Empty` has no field that holds a tensor: mark it `#[dlpack(skip)]`",
                "Empty",
            ),
            (
                "enum Audio { Mono(Vec<f32>), Multi { a: Vec<f32>, b: u8 } }",
                "missing `#[dlpack(data)]`: mark the field of `Multi` that holds the tensor",
                "Multi",
            ),
            (
                "enum Audio { Mono(Vec<f32>), #[dlpack(skip)] Off(#[dlpack(data)] Vec<f32>) }",
                "variant `Off` is skipped: remove `data` here or `skip` there",
                "data",
            ),
        ],
    );
}

#[test]
fn some_items_cannot_be_tensors() {
    let union = |name: &str, kinds: &str| {
        let message = format!(
            "`#[derive({name})]` needs {kinds}; a union does not record which field is valid"
        );
        let derive = match name {
            "DLPack" => Derive::DLPack,
            "FromDLPack" => Derive::FromDLPack,
            "Element" => Derive::Element,
            _ => Derive::Record,
        };
        check(derive, "union U { a: f32, b: u32 }", &[(&message, "union")]);
    };
    union("DLPack", "a struct or an enum");
    union("FromDLPack", "a struct or an enum");
    union("Element", "a struct");
    union("Record", "a struct");
    all(
        Derive::DLPack,
        &[
            (
                "struct View<'a, T: 'a> { items: &'a [T] }",
                "a DLPack consumer may outlive `'a`; the tensor must own its data",
                "'a",
            ),
            (
                "#[repr(C, packed)] struct S { a: Vec<f32> }",
                "cannot export a packed struct: its fields cannot be borrowed",
                "packed",
            ),
            (
                "#[repr(packed(2))] struct S { a: Vec<f32> }",
                "cannot export a packed struct: its fields cannot be borrowed",
                "packed",
            ),
        ],
    );
}

/// If the tokens show it, the message says what to write; rustc reports aliases and types that only look similar.
#[test]
fn types_that_visibly_cannot_be_data() {
    let option = "an `Option` may hold no data: store an empty container instead of `None`, \
                  or make the field a tensor that may be absent, `#[dlpack(tensor)]`";
    let rows = "each of these rows is an allocation of its own: store all of them in one `Vec`, \
                and declare a shape, such as `#[dlpack(shape = [_, columns])]` on the struct";
    let object =
        "the elements behind a `dyn` type may move: use `Vec<T>`, `Box<[T]>` or `Arc<[T]>`";
    all(
        Derive::DLPack,
        &[
            ("struct S(Option<Vec<f32>>);", option, "Option<Vec<f32>>"),
            ("enum E { A(Option<Vec<f32>>) }", option, "Option<Vec<f32>>"),
            ("struct S(Vec<Vec<f32>>);", rows, "Vec<f32>"),
            ("struct S(Arc<[Vec<f32>]>);", rows, "Vec<f32>"),
            ("struct S([Vec<f32>; 3]);", rows, "Vec<f32>"),
            (
                "struct S { #[dlpack(tensor)] a: Option<Vec<Vec<f32>>> }",
                rows,
                "Vec<f32>",
            ),
            (
                "struct S(Box<dyn AsRef<[f32]> + Send>);",
                object,
                "dyn AsRef<[f32]> + Send",
            ),
            (
                "struct S(Arc<dyn Deref<Target = [f32]>>);",
                object,
                "dyn Deref<Target = [f32]>",
            ),
        ],
    );
    for source in [
        "struct S(Box<Vec<f32>>);",
        "struct S(Box<dyn Own>);",
        "struct S(Arc<Vec<f32>>);",
        "struct S(Vec<[f32; 3]>);",
        "struct S { #[dlpack(tensor)] a: Option<Vec<f32>>, b: Rc<str> }",
        // Any type may be called `Rc`.
        "struct S(Rc<[f32]>);",
        "struct S { #[dlpack(data)] a: Vec<f32>, b: Option<Vec<Vec<f32>>> }",
    ] {
        assert!(expand(Derive::DLPack, source).is_ok(), "{source}");
    }
    let source = "struct S { #[dlpack(data)] a: Vec<f32>, b: Rc<str> }";
    assert!(expand(Derive::FromDLPack, source).is_ok());
}

#[test]
fn elements_and_records_have_a_layout() {
    let unordered = "`Point` needs `#[repr(C)]`: only then are its fields laid out in the order they are written";
    for derive in [Derive::Element, Derive::Record] {
        let name = derive.name();
        check(derive, "struct Point { x: f32 }", &[(unordered, "Point")]);
        check(
            derive,
            "#[repr(align(4))] struct Point { x: f32 }",
            &[(unordered, "Point")],
        );
        check(
            derive,
            "enum E { A }",
            &[(&format!("`#[derive({name})]` needs a struct"), "enum")],
        );
        all(
            derive,
            &[
                (
                    "#[repr(C)] struct Point;",
                    "`Point` has no fields: a tensor needs a field that holds its elements",
                    "Point",
                ),
                (
                    "#[repr(C)] struct Point { #[dlpack(data)] x: f32 }",
                    "`data` has no effect on an element or a record, expected one of `skip`, `nested`",
                    "data",
                ),
                (
                    "#[repr(transparent)] struct Point(f32, ());",
                    "with `repr(transparent)` there is one field: use `#[repr(C)]` for more",
                    "()",
                ),
            ],
        );
    }
    all(
        Derive::Element,
        &[
            (
                "#[repr(C, packed)] struct Point { x: f32 }",
                "cannot export a packed struct: its fields cannot be borrowed",
                "packed",
            ),
            (
                "#[repr(C, align(16))] struct Point { x: f32 }",
                "`align` may add padding, which no tensor can describe: remove it",
                "align",
            ),
            (
                "#[repr(C)] struct Point { x: f32, y: [f64; 2] }",
                "an element has one scalar type: `y` is `f64`, `x` is `f32`; \
             for mixed fields use `#[derive(Record)]` and `columns`",
                "[f64; 2]",
            ),
        ],
    );
    all(
        Derive::Record,
        &[
            (
                "#[repr(C)] struct Row(f32);",
                "a column needs a name: give the field one, or mark it `#[dlpack(skip)]`",
                "f32",
            ),
            (
                "#[repr(packed)] struct Row { x: f32 }",
                "`Row` needs `#[repr(C)]`: only then are its fields laid out in the order they are written",
                "Row",
            ),
            (
                "#[repr(C)] struct Row { #[dlpack(skip, nested)] x: Inner, y: f32 }",
                "`skip` and `nested` exclude each other: a skipped field has no type in Python",
                "Inner",
            ),
            (
                "#[repr(C)] struct Row { #[dlpack(skip)] x: f32 }",
                "every field of `Row` is skipped: leave one to be a column",
                "Row",
            ),
        ],
    );
}

#[test]
fn a_layout_is_not_read_back() {
    check(
        Derive::FromDLPack,
        "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(shape, strides)] b: Layout<1> }",
        &[(
            "`FromDLPack` cannot read `shape` and `strides` back into one field: give each its own, or implement the trait by hand",
            "strides",
        )],
    );
}

#[test]
fn the_way_back_is_only_what_can_be_solved() {
    let one_way = |name: &str| {
        format!("`FromDLPack` cannot read `{name}` back: remove it, or implement the trait by hand")
    };
    for (source, at, instead) in [
        (
            "#[dlpack(shape = [n * 2, 3])] struct S { #[dlpack(data)] a: Vec<f32>, n: usize }",
            "n * 2",
            "use a field, a number without `self` or `_`",
        ),
        (
            "#[dlpack(shape = self.dims())] struct S { #[dlpack(data)] a: Vec<f32>, n: usize }",
            "self.dims()",
            "use a field",
        ),
        (
            "#[dlpack(shape = [n], strides = [2])] struct S { #[dlpack(data)] a: Vec<f32>, n: usize }",
            "2",
            "use a field or `_`",
        ),
        (
            "#[dlpack(shape = [_, n], offset = n)] struct S { #[dlpack(data)] a: Vec<f32>, n: usize }",
            "n",
            "use a field that no other key names",
        ),
        (
            "#[dlpack(shape = [_, n])] struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(offset)] n: usize }",
            "offset",
            "use a field that no other key names",
        ),
        (
            "#[dlpack(shape = [self.1, _])] struct S(#[dlpack(data)] Vec<f32>, #[dlpack(byte_offset)] usize);",
            "byte_offset",
            "use a field that no other key names",
        ),
        (
            "#[dlpack(strides = [n])] struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(offset)] n: usize }",
            "offset",
            "use a field that no other key names",
        ),
        (
            "#[dlpack(shape = dims)] struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(strides)] dims: [usize; 2] }",
            "strides",
            "use a field that no other key names",
        ),
        (
            "#[dlpack(offset = START.n)] struct S { #[dlpack(data)] a: Vec<f32>, n: usize }",
            "START.n",
            "use a field",
        ),
        (
            "#[dlpack(offset = n + 1)] struct S { #[dlpack(data)] a: Vec<f32>, n: usize }",
            "n + 1",
            "use a field",
        ),
    ] {
        let unsolvable =
            format!("`FromDLPack` cannot solve this for the fields it needs: {instead}");
        check(Derive::FromDLPack, source, &[(&unsolvable, at)]);
    }
    for (source, at) in [
        ("#[dlpack(via = self.x())] struct S(Vec<f32>);", "via"),
        (
            "#[dlpack(data = &self.a[..])] struct S { a: Vec<f32> }",
            "data",
        ),
        (
            "#[dlpack(unsafe(data = p, len = 3))] struct S { p: *const f32 }",
            "unsafe",
        ),
        ("struct S { #[dlpack(data, tensor)] a: Vec<f32> }", "tensor"),
        ("struct S { #[dlpack(columns)] a: Vec<R> }", "columns"),
        ("#[dlpack(elem = bool)] struct S(Vec<u8>);", "elem"),
        (
            "#[dlpack(dtype = DataType::F32)] struct S(Vec<u8>);",
            "dtype",
        ),
        (
            "struct S { #[dlpack(data)] a: Vec<u8>, #[dlpack(dtype)] t: DataType }",
            "dtype",
        ),
        (
            "struct S { #[dlpack(data)] a: Gpu, #[dlpack(stream)] s: Stream }",
            "stream",
        ),
        (
            "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(order)] o: Layout }",
            "order",
        ),
    ] {
        check(Derive::FromDLPack, source, &[(&one_way(at), at)]);
    }
}

#[test]
fn all_mistakes_of_a_stage_are_reported_at_once() {
    check(
        Derive::Record,
        "#[repr(C)] struct S<'a> { #[dlpack(skip(x), data, skip = 3)] a: &'a f32 }",
        &[
            ("`skip` is a flag: remove the parentheses", "skip"),
            (
                "`data` has no effect on an element or a record, expected one of `skip`, `nested`",
                "data",
            ),
            ("`skip` is a flag: remove its value", "skip"),
            (
                "a DLPack consumer may outlive `'a`; the tensor must own its data",
                "'a",
            ),
        ],
    );
}

#[test]
fn harmless_is_accepted() {
    for source in [
        "#[dlpack()] struct S(Vec<f32>);",
        "#[dlpack(shape = [3],)] struct S(Vec<f32>);",
        "struct S { #[dlpack(data, readonly)] a: Vec<f32>, #[doc = \"x\"] b: u8 }",
        "struct S { #[dlpack(readonly)] a: Vec<f32> }",
        "struct S { #[dlpack(data)] a: CudaSlice<f32>, #[dlpack(stream)] s: Arc<CudaStream> }",
        "struct S { #[dlpack(data)] a: Vec<f32>, #[dlpack(stream)] s: u8, #[dlpack(device)] d: Device }",
        "struct S { #[dlpack(data)] a: Arc<[f32]>, #[dlpack(owner)] o: Arc<u8> }",
        "#[dlpack(strides = [_, _])] struct S { #[dlpack(data)] a: Array2<f32>, b: u8 }",
    ] {
        assert!(expand(Derive::DLPack, source).is_ok(), "{source}");
    }
}

/// Shows that the checks of the table can fail.
#[test]
fn the_checks_can_fail() {
    let source = "struct S { #[dlpack(data, data)] a: Vec<f32> }";
    let message = "`data` is given twice; remove one";
    check(Derive::DLPack, source, &[(message, "data")]);
    let fails = |expected: &'static [(&'static str, &'static str)]| {
        std::panic::catch_unwind(|| check(Derive::DLPack, source, expected)).is_err()
    };
    assert!(
        fails(&[("`data` is given twice; remove one", "S")]),
        "another token"
    );
    assert!(
        fails(&[("`data` is given twice", "data")]),
        "another message"
    );
    assert!(
        fails(&[("`data` is given twice; remove one", "data#1")]),
        "another occurrence"
    );
    assert!(fails(&[]), "another count");
    let fine = "struct S(Vec<f32>);";
    assert!(
        std::panic::catch_unwind(|| check(Derive::DLPack, fine, &[])).is_err(),
        "no error"
    );
}

#[test]
fn what_the_tokens_show_of_a_type_or_an_expression() {
    let pointer = "a raw pointer says neither how long its data is nor who keeps it: write `unsafe(data = self.a, len = ..)` on the struct";
    let slice = "`data` borrows its elements: put `&` before the slice";
    all(
        Derive::DLPack,
        &[
            (
                "struct S { #[dlpack(data)] a: *const f32, n: usize }",
                pointer,
                "*const f32",
            ),
            (
                "#[dlpack(data = self.a[1..])] struct S { a: Vec<f32> }",
                slice,
                "self.a[1..]",
            ),
            (
                "#[dlpack(data = a[..n])] struct S { a: Vec<f32>, n: usize }",
                slice,
                "a[..n]",
            ),
            (
                "#[dlpack(order = F)] struct S(Vec<f32>);",
                "an order is a string: write `order = \"F\"`",
                "F",
            ),
            (
                "#[dlpack(crate = 3)] struct S(Vec<f32>);",
                "expected a path, such as `crate = ::dlpack_core`",
                "3",
            ),
        ],
    );
    for source in [
        "#[dlpack(data = self.frames[0])] struct S { frames: Vec<&'static [f32]> }",
        "#[dlpack(data = self.a[1..].as_ref())] struct S { a: Vec<f32> }",
        "#[dlpack(data = &self.a[1..])] struct S { a: Vec<f32> }",
        "#[dlpack(order = self::F)] struct S(Vec<f32>);",
        "struct S { #[dlpack(data)] a: Vec<f32>, p: *const f32 }",
    ] {
        assert!(expand(Derive::DLPack, source).is_ok(), "{source}");
    }
    for derive in [Derive::Element, Derive::Record] {
        check(
            derive,
            "#[repr(C)] struct S<T> { a: T, b: T }",
            &[("`T` needs a bound: write `T: Element` here", "T#1")],
        );
    }
}

#[test]
fn a_variable_has_another_name_than_each_field() {
    let message = "`n` stands for the field `self.n` in the whole expression: give this variable another name";
    for keys in [
        "shape = [{ let n: usize = 2; n }, 2]",
        "shape = { let n: usize = 2; [n, 2] }",
        "via = { let n: usize = 2; f(n) }",
        "data = { let n: usize = 2; &self.a[n..] }",
        "unsafe(data = { let n = self.p; n }, len = 1)",
        "tensor(name = \"b\", data = { let n: usize = 2; &self.a[n..] })",
        "offset = (|n: usize| n + 1)(1), shape = [_]",
    ] {
        let key = if keys.contains("data") || keys.contains("via") {
            ""
        } else {
            "#[dlpack(data)]"
        };
        let source = format!("#[dlpack({keys})] struct S {{ {key} a: Vec<f32>, n: usize }}");
        check(Derive::DLPack, &source, &[(message, "n#1")]);
    }
}

#[test]
fn a_macro_of_pyo3_needs_the_crate_of_pyo3() {
    let message = "this is the macro of `dlpack_pyo3`: write `crate = ::dlpack_pyo3`, or import the macro of `dlpack_core`";
    let errors = |root, path: &str| {
        let source = format!("#[dlpack(crate = {path})] struct S(Vec<f32>);");
        expand_at(root, Derive::DLPack, &source).err()
    };
    for (path, at) in [
        ("::dlpack_core", "::dlpack_core#1"),
        ("dlpack_core", "dlpack_core#1"),
    ] {
        let expected = vec![(message.to_owned(), at.to_owned())];
        assert_eq!(errors(Root::Pyo3, path), Some(expected), "{path}");
    }
    for path in ["::dlpack_pyo3", "own::dlpack_core"] {
        assert_eq!(errors(Root::Pyo3, path), None, "{path}");
    }
    assert_eq!(errors(Root::Core, "::dlpack_core"), None);
}
