//! The imports with which rust-analyzer completes keys.

use quote::quote;

use super::print;
use crate::expand::complete;
use crate::syntax::input::Derive;
use crate::syntax::role::{Role, Site};
use crate::syntax::root::Root;

/// Each key is imported from the module of its site, also if it is incomplete; Rust keywords cannot be completed.
#[test]
fn each_key_is_imported() {
    let item = syn::parse_quote! {
        #[dlpack(stri, crate = other, unsafe(data = self.at, le))]
        struct Image {
            #[dlpack(data, reado)]
            pixels: Vec<f32>,
            #[dlpack(tensor(name = "m", sha))]
            mask: Vec<u8>,
            plain: u8,
        }
    };
    let found = print(&complete::derive_imports(Derive::DLPack, Root::Core, &item));
    let mut lines: Vec<_> = found
        .lines()
        .filter_map(|line| {
            line.trim()
                .strip_prefix("use ::dlpack_core::__private::keys::")
        })
        .collect();
    lines.sort_unstable();
    let expected = [
        "of_field_tensor::name as _;",
        "of_field_tensor::sha as _;",
        "of_unsafe::data as _;",
        "of_unsafe::le as _;",
        "on_field::data as _;",
        "on_field::reado as _;",
        "on_field::tensor as _;",
        "on_struct::stri as _;",
    ];
    assert_eq!(lines, expected);
    let options = print(&complete::option_imports(quote!(pick, arrays = "numpy")));
    assert!(options.contains("::dlpack_pyo3::__private::keys::of_pymethods::pick as _;"));
    let plain = syn::parse_quote!(
        struct Plain(Vec<f32>);
    );
    assert!(complete::derive_imports(Derive::DLPack, Root::Core, &plain).is_empty());
}

const SITES: [Site; 11] = [
    Site::Struct,
    Site::Field,
    Site::Enum,
    Site::Variant,
    Site::VariantField,
    Site::FieldTensor,
    Site::FreeTensor,
    Site::Raw,
    Site::Row,
    Site::RowField,
    Site::Methods,
];

/// Editors complete the names in the core's file.
#[test]
fn editors_know_the_keys() {
    let known = include_str!("../../../dlpack-core/src/private/keys.rs");
    let lines = SITES.map(|site| {
        let names = site.roles().map(Role::name);
        let names = names.filter(|name| syn::parse_str::<syn::Ident>(name).is_ok());
        let names: Vec<_> = names.collect();
        format!(
            "    {}: {};\n",
            complete::keys_module(site),
            names.join(" ")
        )
    });
    let lines = lines.concat();
    assert!(known.contains(&lines), "the keys are\n{lines}");
}
