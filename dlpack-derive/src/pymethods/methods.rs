//! `#[dlpack_pymethods]`: the items that it adds to the user's `#[pymethods]`, and its errors.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::LitStr;

use crate::pymethods::block::{Block, Item};
use crate::pymethods::inventory::{self, Answer, Attribute, Inventory};
use crate::syntax::attr::{self, Value};
use crate::syntax::ctxt::Ctxt;
use crate::syntax::krate::{Krate, location_of};
use crate::syntax::role::Role;
use crate::syntax::root::Root;

/// Expands the attribute: the block and compile errors. With an inventory, typed methods are added for PyO3 to write into type
/// stubs. They double the compile time of a class.
pub(crate) fn expand_attribute(
    options: TokenStream,
    item: TokenStream,
    inventory: Option<&Inventory>,
) -> TokenStream {
    let cx = Ctxt::new(Root::Pyo3);
    let tokens = expand_item(options, item, inventory, &cx);
    let mut errors = cx.into_compile_errors();
    errors.extend(tokens);
    errors
}

/// Requests the inventory first, for type stubs: the derive has defined a macro under the name of the class.
pub(crate) fn request_for_stubs(options: TokenStream, item: TokenStream) -> TokenStream {
    let Item::Impl(block) = Item::from_tokens(item.clone()) else {
        return expand_attribute(options, item, None);
    };
    if !block.is_class() || !block.has_attr("pymethods") {
        return expand_attribute(options, item, None);
    }
    // Errors in the options are reported by the callback.
    let cx = Ctxt::new(Root::Pyo3);
    let krate = Krate::of(&attr::parse_options(options.clone(), &cx), Root::Pyo3);
    drop(cx.into_compile_errors());
    let k = krate.private(Span::call_site());
    inventory::request_inventory(
        &block.self_ty,
        &quote!(#k::dlpack_pymethods_knowing),
        &options,
        &item,
    )
}

/// The callback: expands the attribute, or requests the next inventory.
pub(crate) fn expand_callback(answer: TokenStream) -> TokenStream {
    match Answer::read(answer) {
        Some(Answer::Ask(tokens)) => tokens,
        Some(Answer::Complete {
            inventory,
            options,
            item,
        }) => expand_attribute(options, item, Some(&inventory)),
        None => syn::Error::new(
            Span::call_site(),
            "this macro is called by `#[dlpack_pymethods]` alone",
        )
        .into_compile_error(),
    }
}

/// The block with the generated items; after an error, with just enough of them to avoid further errors of rustc.
pub(crate) fn expand_item(
    options: TokenStream,
    item: TokenStream,
    inventory: Option<&Inventory>,
    cx: &Ctxt,
) -> TokenStream {
    let options = Options::read(options, inventory, cx);
    match Item::from_tokens(item) {
        Item::Impl(block) => of_impl(&options, block, cx),
        Item::Other { word, name, item } => of_other(&options, word, name, item, cx),
    }
}

struct Options<'a> {
    info: bool,
    iterable: bool,
    /// The span of the option, if it is set.
    pickle: Option<Span>,
    /// Set in builds for type stubs.
    inventory: Option<&'a Inventory>,
    /// The library of the arrays that attributes return.
    arrays: Option<LitStr>,
    krate: Krate,
}

impl<'a> Options<'a> {
    fn read(tokens: TokenStream, inventory: Option<&'a Inventory>, cx: &Ctxt) -> Self {
        let attrs = attr::parse_options(tokens, cx);
        let has = |role| attrs.iter().any(|attr| attr.role == role);
        let arrays = attrs.iter().find_map(|attr| match &attr.value {
            Value::Text(library) if attr.role == Role::Arrays => Some(library.clone()),
            _ => None,
        });
        let krate = Krate::of(&attrs, cx.root);
        krate.report_core_path(cx);
        Self {
            info: has(Role::Info),
            iterable: has(Role::Iterable),
            pickle: (attrs.iter().find(|attr| attr.role == Role::Pickle))
                .map(|attr| location_of(&attr.key)),
            inventory,
            arrays,
            krate: krate.or_own(),
        }
    }
}

fn of_impl(options: &Options<'_>, mut block: Block, cx: &Ctxt) -> TokenStream {
    let has_pymethods = block.has_attr("pymethods");
    if let Some(again) = block.remove_attr("dlpack_pymethods") {
        cx.error(again, "`#[dlpack_pymethods]` is written twice; remove one");
    }
    if block.is_class() && has_pymethods {
        let borrowed = block.borrowed_results();
        if !borrowed.is_empty() {
            for borrow in borrowed {
                let message = "an array owns its data, as it may outlive this object: return a clone, hold the data in an `Arc`, \
                               or make the field an attribute by `#[dlpack(tensor)]`";
                cx.error(borrow, message);
            }
            // Otherwise rustc would report the lifetimes in PyO3's code.
            block.remove_attr("pymethods");
            block.remove_inert();
            let constant = bare_constant(options, &block);
            return block.with_items(constant.unwrap_or_default());
        }
        let items = added_items(options, &block, cx);
        let k = options.krate.private(Span::call_site());
        block.find_pyo3(&quote!(#k::methods));
        return if cx.check().is_some() {
            let checks = accessor_checks(options, &block);
            let block = block.with_items(items);
            quote!(#block #checks)
        } else {
            block.with_items(bare_constant(options, &block).unwrap_or_default())
        };
    }
    // Otherwise PyO3 would report the same mistake, or rustc would report PyO3's attributes.
    block.remove_attr("pymethods");
    let had_attributes = block.remove_inert();
    if !block.of.is_empty() {
        let message = "`#[dlpack_pymethods]` belongs above the `#[pymethods]` of the class, not above an `impl` of a trait";
        cx.error(&block.of, message);
    } else if !block.generics.is_empty() {
        let message = "a Python class has no parameters: \
                       make each type that Python shall see a class of its own, such as `struct ImageF32(Image<f32>);`";
        cx.error(&block.generics, message);
        return block.with_items(TokenStream::new());
    } else if had_attributes {
        report_missing(
            cx,
            "no `#[pymethods]` below: write `#[pymethods]` on the line under `#[dlpack_pymethods]`",
        );
    } else {
        report_missing(
            cx,
            "no `#[pymethods]` below: write `#[dlpack_pymethods]` on the line above `#[pymethods]`",
        );
    }
    let constant = bare_constant(options, &block);
    if block.of.is_empty() {
        return block.with_items(constant.unwrap_or_default());
    }
    let (ty, item) = (&block.self_ty, block.with_items(TokenStream::new()));
    quote!(#item impl #ty { #constant })
}

/// Checks that no accessor of the block hides a tensor: the compiler knows their names when it has expanded the derive.
fn accessor_checks(options: &Options<'_>, block: &Block) -> TokenStream {
    let ty = &block.self_ty;
    let own_path = options.krate.lint_of_own_path();
    let checks = block.accessors().into_iter().map(|accessor| {
        let (at, name) = (accessor.function.span(), &accessor.name);
        let conditions = &accessor.conditions;
        let k = options.krate.private(at);
        quote_spanned! {at=>
            #(#[cfg(#conditions)])*
            #[allow(unused_imports #own_path)]
            const _: () = {
                use #k::ClassDefaults as _;
                #k::reject_hidden_tensor(#k::Class::<#ty>::TENSOR_NAMES, #name);
            };
        }
    });
    checks.collect()
}

/// Reports an error at the attribute itself, as the missing attribute has no tokens.
fn report_missing(cx: &Ctxt, message: &str) {
    cx.push(syn::Error::new(Span::call_site(), message));
}

fn of_other(
    options: &Options<'_>,
    word: Option<Ident>,
    name: Option<Ident>,
    item: TokenStream,
    cx: &Ctxt,
) -> TokenStream {
    let Some(word) = word else {
        report_missing(
            cx,
            "`#[dlpack_pymethods]` belongs above `#[pymethods] impl ..`",
        );
        return item;
    };
    let message =
        format!("`#[dlpack_pymethods]` belongs above `#[pymethods] impl ..`, not on this `{word}`");
    cx.error(word, message);
    let constant = name.map(|name| {
        let constant = class_constant(options, &quote!(#name), None, &[]);
        quote!(impl #name { #constant })
    });
    quote!(#item #constant)
}

const CONSTANT: &str = "__dlpack_tensors__";

/// The constant that the derive's check reads, and that PyO3 evaluates. `over` names the getters that it replaces.
fn class_constant(
    options: &Options<'_>,
    self_ty: &TokenStream,
    attribute: Option<TokenStream>,
    over: &[&str],
) -> TokenStream {
    // If a class cannot be exported, the error points to its name in the block.
    let at = location_of(self_ty);
    let k = options.krate.private(at);
    let info = options.info.then(|| quote_spanned!(at=> .info()));
    let iterable = options.iterable.then(|| quote_spanned!(at=> .iterable()));
    let library = options.arrays.iter();
    let arrays = library.map(|library| quote_spanned!(library.span()=> .arrays(#library)));
    let over = (!over.is_empty()).then(|| quote_spanned!(at=> .over(&[#(#over),*])));
    quote_spanned! {at=>
        /// The names of the tensors that are attributes of this class.
        #attribute
        pub const __dlpack_tensors__: #k::Attributes<Self> = {
            use #k::ClassDefaults as _;
            #k::Attributes::<Self>::of(
                #k::Class::<Self>::TENSOR,
                #k::Class::<Self>::TENSORS,
                #k::Class::<Self>::IMPORT,
            ) #info #iterable #over #(#arrays)*
        };
    }
}

/// The constant without PyO3's attribute: suffices for the derive's check after an error was reported.
fn bare_constant(options: &Options<'_>, block: &Block) -> Option<TokenStream> {
    let is_there = block.find_name(CONSTANT).is_some();
    (!is_there).then(|| class_constant(options, &block.self_ty, None, &[]))
}

/// All items that are added. Reports names that the block defines already.
fn added_items(options: &Options<'_>, block: &Block, cx: &Ctxt) -> TokenStream {
    let mut names = vec![
        CONSTANT,
        "__dlpack_c_exchange_api__",
        "__c_dlpack_exchange_api__",
        "__dlpack__",
        "__dlpack_device__",
    ];
    let unseen = Inventory::default();
    let inventory = options.inventory.unwrap_or(&unseen);
    let typed = inventory
        .named
        .iter()
        .filter(|attribute| !block.defines_getter(&attribute.name));
    let typed: Vec<_> = typed.collect();
    let mut over: Vec<_> = typed.iter().map(|typed| typed.name.as_str()).collect();
    let mut shown = Vec::new();
    if inventory.tensor {
        shown.push(("__array__", array_placeholder as Placeholder));
        if options.iterable {
            shown.extend([
                ("__iter__", iter_placeholder as Placeholder),
                ("__len__", len_placeholder),
            ]);
        }
        shown.retain(|(name, _)| block.find_name(name).is_none());
    }
    let has_buffer = |name| block.find_name(name).is_some();
    if (inventory.tensor || inventory.records)
        && !["__buffer__", "__getbuffer__"]
            .iter()
            .any(|name| has_buffer(name))
    {
        shown.push(("__buffer__", buffer_placeholder));
    }
    over.extend(shown.iter().map(|(name, _)| name));
    let attribute = Some(quote!(#[classattr]));
    let mut items = class_constant(options, &block.self_ty, attribute, &over);
    if inventory.tensor {
        items.extend(protocol_placeholders(options));
    }
    items.extend(shown.iter().map(|(_, placeholder)| placeholder(options)));
    items.extend(
        typed
            .iter()
            .filter_map(|attribute| attribute_placeholders(options, attribute)),
    );
    if options.info {
        names.push("__dlpack_info__");
    }
    if let Some(at) = options.pickle {
        names.extend(["__reduce_ex__", "__dlpack_restore__"]);
        items.extend(pickle_methods(options, at));
    }
    for name in names {
        if let Some(own) = block.find_name(name) {
            let message = format!("`#[dlpack_pymethods]` adds `{name}`; remove this one");
            cx.error(own, message);
        }
    }
    items
}

/// Placeholders for the methods of the protocol, for type stubs. The class attribute replaces them by C functions of the same
/// names, which also define the docstrings that `help()` shows.
fn protocol_placeholders(options: &Options<'_>) -> TokenStream {
    let k = options.krate.private(Span::call_site());
    let (version, no_version, info) = if options.info {
        let info = quote! {
            fn __dlpack_info__(slf: &#k::pyo3::Bound<'_, Self>) -> #k::pyo3::PyResult<::core::primitive::i64> {
                #k::placeholder(slf)
            }
        };
        let argument = quote!(, version: #k::Option<::core::primitive::i64>);
        (argument, quote!(, version=None), info)
    } else {
        Default::default()
    };
    quote! {
        #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None #no_version))]
        fn __dlpack__(
            slf: &#k::pyo3::Bound<'_, Self>,
            stream: #k::Option<::core::primitive::i64>,
            max_version: #k::Option<(::core::primitive::u32, ::core::primitive::u32)>,
            dl_device: #k::Option<(::core::primitive::i32, ::core::primitive::i32)>,
            copy: #k::Option<::core::primitive::bool>
            #version
        ) -> #k::pyo3::PyResult<#k::Capsule> {
            #k::placeholder(slf)
        }

        fn __dlpack_device__(
            slf: &#k::pyo3::Bound<'_, Self>,
        ) -> #k::pyo3::PyResult<(::core::primitive::i32, ::core::primitive::i32)> {
            #k::placeholder(slf)
        }

        #info
    }
}

/// A placeholder for a method that the class may define itself.
type Placeholder = fn(&Options<'_>) -> TokenStream;

/// A placeholder for `__array__`.
fn array_placeholder(options: &Options<'_>) -> TokenStream {
    let k = options.krate.private(Span::call_site());
    quote! {
        #[pyo3(signature = (dtype=None, copy=None))]
        fn __array__(
            slf: &#k::pyo3::Bound<'_, Self>,
            dtype: #k::Option<&#k::pyo3::Bound<'_, #k::pyo3::PyAny>>,
            copy: #k::Option<::core::primitive::bool>,
        ) -> #k::pyo3::PyResult<#k::ArrayOf<Self>> {
            #k::placeholder(slf)
        }
    }
}

/// A placeholder for `__buffer__`, which only Python 3.12 calls. Type checkers know buffers of every version by it.
fn buffer_placeholder(options: &Options<'_>) -> TokenStream {
    let k = options.krate.private(Span::call_site());
    quote! {
        #[pyo3(signature = (flags, /))]
        fn __buffer__(
            slf: &#k::pyo3::Bound<'_, Self>,
            flags: ::core::primitive::i32,
        ) -> #k::pyo3::PyResult<#k::Memoryview> {
            #k::placeholder(slf)
        }
    }
}

/// A placeholder for `__iter__`.
fn iter_placeholder(options: &Options<'_>) -> TokenStream {
    let k = options.krate.private(Span::call_site());
    quote! {
        fn __iter__<'py>(
            slf: &#k::pyo3::Bound<'py, Self>,
        ) -> #k::pyo3::PyResult<#k::Tensors<'py>> {
            #k::placeholder(slf)
        }
    }
}

/// A placeholder for `__len__`.
fn len_placeholder(options: &Options<'_>) -> TokenStream {
    let k = options.krate.private(Span::call_site());
    quote! {
        fn __len__(
            slf: &#k::pyo3::Bound<'_, Self>,
        ) -> #k::pyo3::PyResult<::core::primitive::usize> {
            #k::placeholder(slf)
        }
    }
}

/// Placeholders for the attribute of a tensor: a getter, and a setter if Python code may assign an array to it.
fn attribute_placeholders(options: &Options<'_>, attribute: &Attribute) -> Option<TokenStream> {
    let Attribute {
        name,
        doc,
        settable,
    } = attribute;
    let here = Span::call_site();
    let (p, k) = (options.krate.root(here), options.krate.private(here));
    // PyO3 derives the name of a getter from its function, unless the attribute names it.
    let attribute = syn::parse_str::<Ident>(&format!("r#{name}")).ok()?;
    let function = format_ident!("__dlpack_get_{name}");
    let doc = (!doc.is_empty()).then(|| quote!(#[doc = #doc]));
    let ty = match options.arrays.as_ref().map(LitStr::value).as_deref() {
        None => quote!(#p::Tensor),
        Some("numpy") => quote!(#p::Numpy<#p::Tensor>),
        Some("torch") => quote!(#p::Torch<#p::Tensor>),
        Some("jax") => quote!(#p::Jax<#p::Tensor>),
        Some("cupy") => quote!(#p::Cupy<#p::Tensor>),
        Some(_) => quote!(#k::pyo3::Py<#k::pyo3::PyAny>),
    };
    let setter = settable.then(|| {
        let function = format_ident!("__dlpack_set_{name}");
        quote! {
            #[setter(#attribute)]
            fn #function(slf: &#k::pyo3::Bound<'_, Self>, _array: #p::Tensor) -> #k::pyo3::PyResult<()> {
                #k::placeholder(slf)
            }
        }
    });
    Some(quote! {
        #doc
        #[getter(#attribute)]
        fn #function(slf: &#k::pyo3::Bound<'_, Self>) -> #k::pyo3::PyResult<#ty> {
            #k::placeholder(slf)
        }

        #setter
    })
}

/// The methods that `pickle` and `copy` call.
fn pickle_methods(options: &Options<'_>, at: Span) -> TokenStream {
    let k = options.krate.private(Span::call_site());
    let at_k = options.krate.private(at);
    let reduce = quote_spanned!(at=> #at_k::reduce::<Self>);
    quote! {
        /// What pickle writes: the bytes, their type and the shape.
        fn __reduce_ex__<'py>(
            slf: &#k::pyo3::Bound<'py, Self>,
            protocol: ::core::primitive::i32,
        ) -> #k::pyo3::PyResult<#k::pyo3::Bound<'py, #k::pyo3::PyAny>> {
            #reduce(slf, protocol)
        }

        /// The object that was pickled.
        #[classmethod]
        fn __dlpack_restore__(
            _cls: &#k::pyo3::Bound<'_, #k::pyo3::types::PyType>,
            bytes: &#k::pyo3::Bound<'_, #k::pyo3::PyAny>,
            dtype: (::core::primitive::u8, ::core::primitive::u8, ::core::primitive::u16, ::core::primitive::bool),
            shape: &#k::pyo3::Bound<'_, #k::pyo3::PyAny>,
        ) -> #k::pyo3::PyResult<Self> {
            use #k::ClassDefaults as _;
            #k::Class::<Self>::RESTORE(bytes, dtype, shape)
        }
    }
}
