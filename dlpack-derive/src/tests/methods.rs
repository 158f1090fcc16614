//! `#[dlpack_pymethods]`: the items that it adds to a block, its errors, and what remains after an error.

use expect_test::expect_file;
use proc_macro2::{TokenStream, TokenTree};

use super::snapshots::{has_unsafe, page, self_paths, unrooted};
use super::{expand_at, place, print};
use crate::pymethods::methods;
use crate::syntax::ctxt::Ctxt;
use crate::syntax::input::Derive;
use crate::syntax::root::Root;

fn tokens(source: &str) -> TokenStream {
    source.parse().expect("the test's own item lexes")
}

/// The expansion, and the error messages with the text they point to.
fn expand(options: &str, source: &str) -> (String, Vec<(String, String)>) {
    let cx = Ctxt::new(Root::Pyo3);
    let found = methods::expand_item(tokens(options), tokens(source), None, &cx);
    let error = |error: &syn::Error| {
        let at = place(error).map_or_else(String::new, |(text, _)| text);
        (error.to_string(), at)
    };
    let errors = cx.into_errors().iter().map(error).collect();
    (found.to_string(), errors)
}

/// The tokens without the attributes that only PyO3 reads, in which `None` is Python's.
fn without_signatures(stream: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for tree in stream {
        match tree {
            TokenTree::Group(group)
                if group.stream().to_string().starts_with("pyo3 (signature") =>
            {
                kept.pop();
            }
            TokenTree::Group(group) => {
                let inner = without_signatures(group.stream());
                kept.push(proc_macro2::Group::new(group.delimiter(), inner).into());
            }
            tree => kept.push(tree),
        }
    }
    kept.into_iter().collect()
}

fn check(options: &str, source: &str, inventory: Option<&str>) -> String {
    let found = match inventory {
        None => methods::expand_attribute(tokens(options), tokens(source), None),
        Some(inventory) => methods::expand_callback(tokens(&format!(
            "[to] {{ {inventory} }} ({options}) {source}"
        ))),
    };
    let checked = without_signatures(found.clone());
    assert!(!has_unsafe(&found), "no word of unsafe");
    assert_eq!(
        unrooted(&checked, source),
        [""; 0],
        "every path starts at the crate"
    );
    assert_eq!(self_paths(&checked), [""; 0], "may be another trait's");
    let attribute = match options {
        "" => "#[dlpack_pymethods]".to_owned(),
        options => format!("#[dlpack_pymethods({options})]"),
    };
    page(&format!("{attribute}\n{source}"), &print(&found))
}

macro_rules! snapshots {
    ($($name:ident: $options:literal, $source:literal $(, knowing: $inventory:literal)?;)*) => {
        $(#[test]
        fn $name() {
            let found = check($options, $source, [$($inventory)?].first().copied());
            expect_file![concat!("../../tests/snapshots/", stringify!($name), ".rs")].assert_eq(&found);
        })*
    };
}
snapshots! {
    pymethods: "", "#[pymethods]\nimpl Image { #[new] fn new() -> Self { todo() } }";
    pymethods_with_all: "info, arrays = \"numpy\"", "#[pymethods]\nimpl Image {}", knowing: "tensor (\"mask\", \"\")";
    pymethods_of_tensors: "", "#[pymethods]\nimpl Batch { #[getter] fn own(&self) {} #[getter(r#type)] fn t(&self) {} #[getter] fn get_mask(&self) {} }",
        knowing: "(\"rewards\", \"One a step.\", set) (\"own\", \"\") (\"type\", \"\") (\"mask\", \"\") (\"fn\", \"\")";
    pymethods_with_pickle: "pickle", "#[pymethods]\nimpl Image {}";
    pymethods_iterable: "iterable", "#[pymethods]\nimpl Image { fn __len__(&self) -> usize { 3 } }", knowing: "tensor";
    pymethods_krate: "crate = crate::private::dl", "#[pymethods]\nimpl Image { #![allow(unused)] const A: u8 = 1; }";
}

/// In a build for type stubs, the block is passed through the macros of the derive and of its records.
#[test]
fn an_inventory_is_asked_for_and_read() {
    let text = |tokens: TokenStream| print(&tokens);
    let asked = methods::request_for_stubs(
        tokens("info, crate = crate::dl"),
        tokens("#[pymethods] impl super::Batch { fn f(&self) {} }"),
    );
    let wanted = "super::Batch! { [crate::dl::__private0::dlpack_pymethods_knowing] (info, crate = crate::dl) \
                  #[pymethods] impl super::Batch { fn f(&self) {} } }";
    assert_eq!(text(asked), text(tokens(wanted)));
    let item = "#[doc(hidden)] impl A {}";
    for (inventories, wanted) in [
        (
            "{ tensor (\"a\", \"b\") [m::Row] [Other] }",
            "Other! { [to] { tensor (\"a\", \"b\") [m::Row] }",
        ),
        (
            "{ (\"c\", \"\") } { tensor (\"a\", \"b\", set) [m::Row] }",
            "m::Row! { [to] { tensor (\"c\", \"\") (\"a\", \"b\", set) }",
        ),
    ] {
        let answer = methods::expand_callback(tokens(&format!("[to] {inventories} (info) {item}")));
        let wanted = tokens(&format!("{wanted} (info) {item} }}"));
        assert_eq!(text(answer), text(wanted));
    }
    // An item that is not a class, or has errors, is expanded at once.
    for source in ["#[pymethods] impl T for A {}", "impl A {}", "struct A;"] {
        let found = methods::request_for_stubs(TokenStream::new(), tokens(source)).to_string();
        assert!(found.contains("compile_error"), "{found}");
    }
    assert!(
        methods::expand_callback(tokens("what else"))
            .to_string()
            .contains("compile_error")
    );
}

/// The inventories of the derives: the names that the attribute needs, and the records to request more from.
#[test]
fn derives_leave_an_inventory() {
    let left = |derive, source: &str| {
        let item = syn::parse_str(source).expect("the test's own item parses");
        let cx = Ctxt::new(Root::Pyo3);
        let found = crate::try_derive(derive, &item, true, &cx)
            .expect("no mistake")
            .to_string();
        let (_, found) = found.split_once("[$ ($ to) *] {").expect("a macro");
        let (inventory, rest) = found.split_once('}').expect("its end");
        assert!(rest.contains("pub (crate) use __dlpack_A as A"), "{rest}");
        inventory.replace(' ', "")
    };
    assert_eq!(left(Derive::DLPack, "struct A(Vec<f32>);"), "tensor");
    assert_eq!(left(Derive::DLPack, "enum A { B(Vec<f32>) }"), "tensor");
    let fields = "/// Doc.\n #[dlpack(tensor)] a: Vec<u8>, #[dlpack(tensor(set))] b: Vec<u8>, #[dlpack(columns)] rows: Arc<[m::Row]>";
    assert_eq!(
        left(Derive::DLPack, &format!("struct A {{ {fields} }}")),
        "(\"a\",\"Doc.\")(\"b\",\"\",set)[m::Row]"
    );
    for rows in [
        "Vec<Row>",
        "Box<[Row]>",
        "[Row; 2]",
        "Arc<Vec<Row<u8>>>",
        "my::Rows<Row>",
    ] {
        let source = format!("struct A {{ #[dlpack(columns)] rows: {rows} }}");
        assert_eq!(left(Derive::DLPack, &source), "records[Row]", "{rows}");
    }
    let item = syn::parse_str("struct A(Vec<f32>);").expect("the test's own item parses");
    let of_core = crate::try_derive(Derive::DLPack, &item, true, &Ctxt::new(Root::Core));
    let of_core = of_core.expect("no mistake").to_string();
    assert!(!of_core.contains("macro_rules"), "no class");
    let record = "#[repr(C)] struct A { x: f32, #[dlpack(skip)] pad: u8, r#fn: u8 }";
    assert_eq!(left(Derive::Record, record), "(\"x\",\"\")(\"fn\",\"\")");
}

/// The derive of `dlpack_pyo3` checks types that can be classes for their methods.
#[test]
fn a_class_is_asked_for_its_methods() {
    let show = |source: &str| {
        let found = expand_at(Root::Pyo3, Derive::DLPack, source).expect("no mistake");
        assert_eq!(
            unrooted(&found, source),
            [""; 0],
            "every path starts at the crate"
        );
        print(&found)
    };
    let (image, batch) = (
        "struct Image(Vec<f32>);",
        "#[dlpack(crate = crate::dl)] struct Batch { #[dlpack(tensor)] obs: Vec<f32>, #[dlpack(columns)] rows: Vec<Row> }",
    );
    let found = [image, batch]
        .map(|source| page(source, &show(source)))
        .join("\n");
    expect_file!["../../tests/snapshots/class.rs"].assert_eq(&found);
    for source in [
        "struct Image<const N: usize>([f32; N]);",
        "struct Image<T>(Vec<T>);",
    ] {
        assert!(!show(source).contains("attached"), "{source}");
    }
    let core = expand_at(Root::Core, Derive::DLPack, image).expect("no mistake");
    assert!(!core.to_string().contains("attached"));
    let stub = crate::run_derive(
        Derive::DLPack,
        Root::Pyo3,
        tokens("struct Image(#[dlpack(dat)] Vec<f32>);"),
    );
    assert!(
        stub.to_string()
            .contains(":: dlpack_pyo3 :: DLPack for Image")
    );
    assert!(!stub.to_string().contains("attached"));
}

#[test]
fn the_other_derives_call_the_crate_that_they_are_from() {
    for (derive, source) in [
        (Derive::FromDLPack, "struct Image(Vec<f32>);"),
        (
            Derive::Element,
            "#[repr(C)] struct Point { x: f32, y: f32 }",
        ),
        (
            Derive::Record,
            "#[repr(C)] struct Trade { price: f64, size: u32 }",
        ),
    ] {
        let found = expand_at(Root::Pyo3, derive, source)
            .expect("no mistake")
            .to_string();
        assert!(
            found.contains(":: dlpack_pyo3 ::") && !found.contains("dlpack_core"),
            "{found}"
        );
    }
    let Err(errors) = expand_at(
        Root::Pyo3,
        Derive::DLPack,
        "#[dlpack(crate)] struct Image(Vec<f32>);",
    ) else {
        panic!("accepted");
    };
    assert_eq!(
        errors[0].0,
        "`crate` needs a value, such as `crate = ::dlpack_pyo3`"
    );
}

/// The first item of the block, which shows whether anything was added, and what.
#[test]
fn every_way_to_say_pymethods_is_found() {
    for source in [
        "#[pymethods] impl Foo {}",
        "#[pyo3::pymethods] impl Foo {}",
        "#[::pyo3::pymethods] impl Foo {}",
        "#[cfg(feature = \"python\")] #[doc = \"x\"] #[pymethods] impl inner::Foo {}",
        "#[cfg_attr(feature = \"python\", pymethods)] impl Foo {}",
        "#[cfg_attr(all(a, b), inline, pyo3::pymethods)] impl Foo {}",
        "#[cfg_attr(a, cfg_attr(b, pymethods))] impl Foo {}",
        "#[pymethods] impl Foo where Self: Sized {}",
        "#[pymethods] impl Foo<for<'a> fn(&'a u8)> {}",
    ] {
        let (found, errors) = expand("", source);
        assert_eq!(errors, [], "{source}");
        assert!(found.contains("__dlpack_tensors__"), "{source}");
        let ours = "#[pyo3(crate = \":: dlpack_pyo3 :: __private0 :: methods\")]";
        let ours = tokens(ours).to_string();
        assert!(found.contains(&ours), "{source}: {found}");
        let found = found.replacen(&ours, "", 1);
        let header = tokens(source).into_iter().count() - 1;
        let kept: TokenStream = tokens(&found).into_iter().take(header).collect();
        let own: TokenStream = tokens(source).into_iter().take(header).collect();
        assert_eq!(
            kept.to_string(),
            own.to_string(),
            "the header is the user's"
        );
    }
}

/// The user's own path to PyO3 is kept.
#[test]
fn where_pyo3_is_found() {
    for source in [
        "#[pymethods] #[pyo3(crate = \"x\")] impl Foo {}",
        "#[pymethods(crate = \"x\")] impl Foo {}",
        "#[cfg_attr(a, pyo3::pymethods(crate = \"x\"))] impl Foo {}",
    ] {
        let (found, _) = expand("", source);
        assert!(!found.contains("methods\")"), "{found}");
    }
}

/// rustc reports the lifetimes of PyO3's code only.
#[test]
fn results_do_not_borrow() {
    let message = "an array owns its data, as it may outlive this object: return a clone, hold the data in an `Arc`, \
                   or make the field an attribute by `#[dlpack(tensor)]`";
    for (result, count) in [
        ("Numpy<&Vec<f32>>", 1),
        ("PyResult<dlpack_pyo3::Torch<&[f32]>>", 1),
        ("(Numpy<&Vec<f32>>, Exported<&'a A>)", 2),
        ("Numpy<&'static [f32]>", 0),
        ("Numpy<Vec<f32>>", 0),
        ("Like<Shaped<Vec<f32>, 2>>", 0),
        ("&Numpy<u8>", 0),
    ] {
        let source = format!(
            "#[pymethods] impl Foo {{ #[getter] fn f(&self) -> {result} {{}} fn g(&self, a: Numpy<&A>) {{}} }}"
        );
        let (found, errors) = expand("", &source);
        assert_eq!(
            errors,
            vec![(message.to_owned(), "&".to_owned()); count],
            "{result}"
        );
        assert_eq!(found.contains("# [pymethods]"), count == 0, "{result}");
    }
}

/// A setter alone puts an attribute into the class, too.
#[test]
fn each_accessor_is_checked() {
    let source = "#[pymethods] impl Foo { \
        #[getter] fn get_a(&self) {} \
        #[setter] fn set_b(&self) {} \
        #[deleter] fn delete_c(&self) {} \
        #[setter(d)] fn set_e(&self) {} \
        #[setter] fn f(&self) {} \
        #[getter] fn set_g(&self) {} \
        fn set_h(&self) {} }";
    let found = print(&tokens(&expand("", source).0));
    let checked: Vec<_> = found
        .split("TENSOR_NAMES,")
        .skip(1)
        .filter_map(|rest| rest.trim_start().split('"').nth(1))
        .collect();
    assert_eq!(checked, ["a", "b", "c", "d", "f", "set_g"], "{found}");
}

/// A function that is no accessor in this build hides no tensor.
#[test]
fn the_check_of_an_accessor_has_its_conditions() {
    let source = "#[pymethods] impl Foo { \
        #[cfg(a)] #[getter] #[cfg(any(b, c))] fn x(&self) {} \
        #[cfg_attr(all(d, e), getter)] fn y(&self) {} \
        #[cfg(f)] fn z(&self) {} \
        #[getter] fn w(&self) {} }";
    let found = print(&tokens(&expand("", source).0));
    let checks = found
        .split("#[allow(unused_imports)]\nconst _: () =")
        .collect::<Vec<_>>();
    assert_eq!(checks.len(), 4, "three getters: {found}");
    assert!(
        checks[0].ends_with("#[cfg(a)]\n#[cfg(any(b, c))]\n"),
        "{found}"
    );
    assert!(checks[1].ends_with("#[cfg(all(d, e))]\n"), "{found}");
    assert!(checks[2].ends_with("};\n"), "{found}");
}

/// The fragments `$item` and `$ty` of a macro are groups without delimiters.
#[test]
fn groups_of_macros_are_seen_through() {
    let group = |inner: &str| proc_macro2::Group::new(proc_macro2::Delimiter::None, tokens(inner));
    let item = group("impl Foo {}");
    let ty = group("Foo");
    for source in [
        quote::quote!(#[pymethods] #item),
        quote::quote!(#[pymethods] impl #ty {}),
    ] {
        let cx = Ctxt::new(Root::Pyo3);
        let found = methods::expand_item(TokenStream::new(), source, None, &cx);
        assert!(cx.check().is_some());
        assert!(found.to_string().contains("__dlpack_tensors__"));
    }
}

/// Each mistake is reported once, and the block is returned with the constants that the derive's check reads.
#[test]
fn mistakes_are_named_where_they_are_made() {
    const LIBRARY: &str =
        "expected the name of a module of Python's, such as `\"numpy\"` or `\"jax.numpy\"`";
    const KNOWN: &str = "one of `info`, `arrays`, `pickle`, `iterable`, `crate`";
    const BELOW: &str =
        "no `#[pymethods]` below: write `#[dlpack_pymethods]` on the line above `#[pymethods]`";
    const MISSING: &str =
        "no `#[pymethods]` below: write `#[pymethods]` on the line under `#[dlpack_pymethods]`";
    const USUAL: &str = "#[pymethods] impl Foo {}";
    let unknown = |word: &str, hint: &str| {
        format!("unknown dlpack class option `{word}`, expected {KNOWN}{hint}")
    };
    let given = |name: &str| format!("`#[dlpack_pymethods]` adds `{name}`; remove this one");
    let elsewhere = |word: &str| {
        format!("`#[dlpack_pymethods]` belongs above `#[pymethods] impl ..`, not on this `{word}`")
    };
    let generic = "a Python class has no parameters: \
         make each type that Python shall see a class of its own, such as `struct ImageF32(Image<f32>);`";
    for (options, source, message, at) in [
        (
            "inf",
            USUAL,
            unknown("inf", "; did you mean `info`?").as_str(),
            "",
        ),
        ("tensors", USUAL, &unknown("tensors", ""), ""),
        ("readonly", USUAL, &unknown("readonly", ""), ""),
        ("info, info", USUAL, "`info` is given twice; remove one", ""),
        (
            "info = true",
            USUAL,
            "`info` is a flag: remove its value",
            "",
        ),
        (
            "info()",
            USUAL,
            "`info` is a flag: remove the parentheses",
            "",
        ),
        (
            "arrays",
            USUAL,
            "`arrays` needs a value, such as `arrays = \"numpy\"`",
            "",
        ),
        (
            "arrays = numpy",
            USUAL,
            "expected a string literal, such as `arrays = \"numpy\"`",
            "",
        ),
        ("arrays = \"\"", USUAL, LIBRARY, ""),
        ("arrays = \"jax.\"", USUAL, LIBRARY, ""),
        ("arrays = \"num py\"", USUAL, LIBRARY, ""),
        ("arrays = \"3d\"", USUAL, LIBRARY, ""),
        ("info crate", USUAL, "expected `,` after `info`", ""),
        ("\"info\"", USUAL, &format!("expected a key, {KNOWN}"), ""),
        (
            "crate",
            USUAL,
            "`crate` needs a value, such as `crate = ::dlpack_pyo3`",
            "",
        ),
        (
            "crate = \"dl\"",
            USUAL,
            "expected a path, such as `crate = ::dlpack_pyo3`; remove the quotes",
            "",
        ),
        (
            "crate = ::dlpack_core",
            USUAL,
            "this is the macro of `dlpack_pyo3`: write `crate = ::dlpack_pyo3`, or import the macro of `dlpack_core`",
            "",
        ),
        ("", "impl Foo {}", BELOW, ""),
        ("", "#[allow(x)] impl Foo { fn f(&self) {} }", BELOW, ""),
        (
            "",
            "impl Foo { #[new] fn new() -> Self { Self } }",
            MISSING,
            "",
        ),
        (
            "",
            "impl Foo { fn f(#[pyo3(from_py_with = g)] a: u8) {} }",
            MISSING,
            "",
        ),
        (
            "",
            "#[dlpack_pymethods] #[pymethods] impl Foo {}",
            "`#[dlpack_pymethods]` is written twice; remove one",
            "dlpack_pymethods",
        ),
        (
            "",
            "#[pymethods] #[dlpack_pyo3::dlpack_pymethods(info)] impl Foo {}",
            "`#[dlpack_pymethods]` is written twice; remove one",
            "dlpack_pymethods",
        ),
        (
            "",
            "#[pymethods] impl Foo { fn __dlpack__(&self) {} }",
            &given("__dlpack__"),
            "__dlpack__",
        ),
        (
            "",
            "#[pymethods] impl Foo { #[pyo3(name = \"__dlpack_device__\")] fn f(&self) {} }",
            &given("__dlpack_device__"),
            "\"__dlpack_device__\"",
        ),
        (
            "",
            "#[pymethods] impl Foo { #[classattr] const __dlpack_tensors__: u8 = 1; }",
            &given("__dlpack_tensors__"),
            "__dlpack_tensors__",
        ),
        (
            "pickle",
            "#[pymethods] impl Foo { fn __reduce_ex__(&self, protocol: i32) {} }",
            &given("__reduce_ex__"),
            "__reduce_ex__",
        ),
        (
            "",
            "#[pymethods] impl<T: Fn() -> u8> Foo<T> {}",
            generic,
            "<T: Fn() -> u8>",
        ),
        (
            "",
            "#[pymethods] impl Tr for Foo {}",
            "`#[dlpack_pymethods]` belongs above the `#[pymethods]` of the class, not above an `impl` of a trait",
            "Tr for",
        ),
        (
            "",
            "pub struct Foo { a: u8 }",
            &elsewhere("struct"),
            "struct",
        ),
        ("", "#[pyclass] enum Foo { A }", &elsewhere("enum"), "enum"),
        ("", "pub(crate) unsafe fn f() {}", &elsewhere("fn"), "fn"),
        ("", "mod m { struct S; }", &elsewhere("mod"), "mod"),
    ] {
        let (found, errors) = expand(options, source);
        let [(text, place)] = &errors[..] else {
            panic!("{options} {source}\n{errors:#?}");
        };
        assert_eq!(text, message, "{options} {source}");
        if !at.is_empty() {
            assert_eq!(place, at, "{source}");
        }
        syn::parse_str::<syn::File>(&found).unwrap_or_else(|error| panic!("{error}: {found}"));
        let is_class = !["<T", " fn f() ", "mod m"]
            .iter()
            .any(|word| source.contains(word));
        assert_eq!(
            found.matches("const __dlpack_tensors__ ").count(),
            usize::from(is_class),
            "{found}"
        );
        assert!(!found.contains("fn __dlpack__ <"), "{found}");
        assert!(!found.contains("dlpack_pymethods"), "{found}");
        let stays = source.contains("#[pymethods]")
            && !source.contains("impl<")
            && !source.contains("for Foo");
        assert_eq!(found.contains("# [pymethods]"), stays, "{found}");
        assert!(
            stays || !found.contains("# [new]") && !found.contains("from_py_with"),
            "{found}"
        );
    }
}

/// The user's own Python methods are kept, whatever the options would add.
#[test]
fn names_that_are_not_added_are_the_users() {
    for (options, source) in [
        (
            "",
            "#[pymethods] impl Foo { fn __dlpack_info__(&self) {} unsafe fn __getbuffer__(&self) {} }",
        ),
        (
            "",
            "#[pymethods] impl Foo { fn f(&self) { fn __dlpack__() {} } #[pyo3(name = \"dlpack\")] fn g() {} }",
        ),
    ] {
        assert_eq!(expand(options, source).1, [], "{source}");
    }
}

/// A policy also applies to named tensors.
#[test]
fn a_policy_goes_with_a_tensor_by_name() {
    let named = |keys: &str| {
        let source = format!("{keys} struct A {{ #[dlpack(tensor)] items: Vec<f32> }}");
        let found = expand_at(Root::Core, Derive::DLPack, &source);
        found.expect("no mistake").to_string()
    };
    for keys in [
        "#[dlpack(release = \"immediate\")]",
        "#[dlpack(legacy = \"refuse\")]",
    ] {
        assert_ne!(named(keys), named(""), "{keys}");
    }
}
