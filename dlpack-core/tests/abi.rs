//! Compares `dlpack_core::abi` with the numbers of the real dlpack.h and with a C compiler (ABI-01 to ABI-12).
//!
//! Three descriptions of the same ABI are compared: the Rust structs, `data/abi.json` (numbers taken from the real header), and
//! `include/dlpack_core.h`, which a C compiler lays out for the current platform. An item that only one of the first two has is a
//! failure.

#![cfg_attr(
    target_os = "linux",
    expect(
        unsafe_code,
        reason = "the last test calls C code and is called back by it"
    )
)]

use core::ffi::{CStr, c_int};
#[cfg(target_os = "linux")]
use core::ffi::{c_char, c_void};
use core::mem::{align_of, offset_of, size_of};
use dlpack_core::abi::{self, *};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = include_str!("../src/abi.rs");

fn spec() -> Value {
    serde_json::from_str(include_str!("data/abi.json")).expect("tests/data/abi.json is JSON")
}

#[derive(Debug, PartialEq)]
struct Field {
    name: &'static str,
    declaration: &'static str,
    offset: usize,
    size: usize,
}

#[derive(Debug, PartialEq)]
struct Struct {
    name: &'static str,
    size: usize,
    align: usize,
    fields: Vec<Field>,
}

fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

/// Pairs each Rust field with its C declaration. Does not compile if a field of the struct is missing.
macro_rules! structs {
    ($($name:ident { $($field:ident: $declaration:literal),+ $(,)? })+) => {
        fn structs() -> Vec<Struct> {
            vec![$(Struct {
                name: stringify!($name),
                size: size_of::<$name>(),
                align: align_of::<$name>(),
                fields: vec![$(Field {
                    name: stringify!($field),
                    declaration: $declaration,
                    offset: offset_of!($name, $field),
                    size: size_of_field(|s: &$name| &s.$field),
                }),+],
            }),+]
        }

        $(const _: fn($name) = |$name { $($field: _),+ }| ();)+
    };
}

structs! {
    DLPackVersion { major: "uint32_t major", minor: "uint32_t minor" }
    DLDevice { device_type: "DLDeviceType device_type", device_id: "int32_t device_id" }
    DLDataType { code: "uint8_t code", bits: "uint8_t bits", lanes: "uint16_t lanes" }
    DLTensor {
        data: "void *data",
        device: "DLDevice device",
        ndim: "int32_t ndim",
        dtype: "DLDataType dtype",
        shape: "int64_t *shape",
        strides: "int64_t *strides",
        byte_offset: "uint64_t byte_offset",
    }
    DLManagedTensor {
        dl_tensor: "DLTensor dl_tensor",
        manager_ctx: "void *manager_ctx",
        deleter: "void (*deleter)(struct DLManagedTensor *self)",
    }
    DLManagedTensorVersioned {
        version: "DLPackVersion version",
        manager_ctx: "void *manager_ctx",
        deleter: "void (*deleter)(struct DLManagedTensorVersioned *self)",
        flags: "uint64_t flags",
        dl_tensor: "DLTensor dl_tensor",
    }
    DLPackExchangeAPIHeader {
        version: "DLPackVersion version",
        prev_api: "struct DLPackExchangeAPIHeader *prev_api",
    }
    DLPackExchangeAPI {
        header: "DLPackExchangeAPIHeader header",
        managed_tensor_allocator: "int (*managed_tensor_allocator)(DLTensor *, DLManagedTensorVersioned **, void *, void (*SetError)(void *, const char *, const char *))",
        managed_tensor_from_py_object_no_sync: "int (*managed_tensor_from_py_object_no_sync)(void *, DLManagedTensorVersioned **)",
        managed_tensor_to_py_object_no_sync: "int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned *, void **)",
        dltensor_from_py_object_no_sync: "int (*dltensor_from_py_object_no_sync)(void *, DLTensor *)",
        current_work_stream: "int (*current_work_stream)(DLDeviceType, int32_t, void **)",
    }
}

type Values = BTreeMap<String, u64>;

macro_rules! values {
    ($($name:ident)+) => {
        BTreeMap::from([$((
            stringify!($name).to_owned(),
            u64::try_from(abi::$name).expect("no constant of dlpack.h is negative"),
        )),+])
    };
}

fn device_types() -> Values {
    values! {
        kDLCPU kDLCUDA kDLCUDAHost kDLOpenCL kDLVulkan kDLMetal kDLVPI kDLROCM kDLROCMHost kDLExtDev
        kDLCUDAManaged kDLOneAPI kDLWebGPU kDLHexagon kDLMAIA kDLTrn
    }
}

fn type_codes() -> Values {
    values! {
        kDLInt kDLUInt kDLFloat kDLOpaqueHandle kDLBfloat kDLComplex kDLBool kDLFloat8_e3m4
        kDLFloat8_e4m3 kDLFloat8_e4m3b11fnuz kDLFloat8_e4m3fn kDLFloat8_e4m3fnuz kDLFloat8_e5m2
        kDLFloat8_e5m2fnuz kDLFloat8_e8m0fnu kDLFloat6_e2m3fn kDLFloat6_e3m2fn kDLFloat4_e2m1fn
    }
}

/// Device types that the header's main branch has added since release 1.3.
fn later_device_types() -> Values {
    values! { kDLTPU kDLTPUHost kDLAscend }
}

fn later_type_codes() -> Values {
    values! { kDLBcomplex }
}

fn flags() -> Values {
    values! {
        DLPACK_FLAG_BITMASK_READ_ONLY DLPACK_FLAG_BITMASK_IS_COPIED
        DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED
    }
}

fn object(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let object = value.as_object().expect("an object in abi.json");
    object.iter().map(|(key, value)| (key.as_str(), value))
}

fn numbers(value: &Value) -> Values {
    let number = |v: &Value| v.as_u64().expect("a number in abi.json");
    object(value)
        .map(|(key, v)| (key.to_owned(), number(v)))
        .collect()
}

fn number(value: &Value) -> usize {
    let number = value.as_u64().expect("a number in abi.json");
    usize::try_from(number).expect("a number in abi.json fits usize")
}

/// The names that `abi.rs` declares after `keyword` and, for constants, with the type `ty`.
fn declared<'a>(keyword: &'a str, ty: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    SOURCE.lines().filter_map(move |line| {
        let rest = line.strip_prefix("pub ")?.strip_prefix(keyword)?.trim();
        let (name, rest) = rest.split_once([':', ' '])?;
        rest.trim().starts_with(ty).then_some(name)
    })
}

/// The names that `abi.rs` declares with the type `ty`, by `const` or in a list of `constants!`.
fn constants(ty: &str) -> impl Iterator<Item = &'static str> {
    let start = format!("\nconstants! {{ {ty},");
    let lists = SOURCE.split(&*start).skip(1).collect::<Vec<_>>();
    let names = |list: &'static str| {
        let rows = list.lines().skip(1);
        rows.map_while(|row| Some(row.trim().split_once(" = ")?.0))
    };
    let lists = lists.into_iter().flat_map(names);
    lists.chain(declared("const", ty).collect::<Vec<_>>())
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

/// ABI-01, ABI-02, ABI-03, ABI-04, ABI-05, ABI-06, ABI-07, ABI-08.
#[test]
fn structs_are_those_of_the_header() {
    let spec = spec();
    assert_eq!(
        sorted(object(&spec["structs"]).map(|(name, _)| name)),
        sorted(structs().iter().map(|s| s.name)),
    );
    assert_eq!(
        sorted(declared("struct", "")),
        sorted(structs().iter().map(|s| s.name)),
    );
    for s in structs() {
        let fields = &spec["structs"][s.name]["fields"];
        assert_eq!(
            sorted(object(fields).map(|(name, _)| name)),
            sorted(s.fields.iter().map(|f| f.name)),
            "the fields of {}",
            s.name,
        );
    }
}

/// ABI-01 to ABI-08 and ABI-11, where the header's numbers apply.
#[test]
fn layouts_are_those_of_the_header() {
    let spec = spec();
    if size_of::<*const u8>() != number(&spec["pointer_size"]) {
        eprintln!("SKIPPED: abi.json has the layouts for 64-bit pointers only");
        return;
    }
    for s in structs() {
        let expected = &spec["structs"][s.name];
        assert_eq!(s.size, number(&expected["size"]), "size of {}", s.name);
        assert_eq!(s.align, number(&expected["align"]), "align of {}", s.name);
        for f in s.fields {
            let expected = &expected["fields"][f.name];
            let name = format!("{}.{}", s.name, f.name);
            assert_eq!(f.offset, number(&expected["offset"]), "offset of {name}");
            assert_eq!(f.size, number(&expected["size"]), "size of {name}");
        }
    }
    // ABI-11: one set of structs serves every 1.x.
    for (version, facts) in object(&spec["per_version"]) {
        assert_eq!(facts["major"], DLPACK_MAJOR_VERSION, "{version}");
        assert_eq!(facts["layout_equal_to_1.3"], true, "{version}");
    }
}

/// ABI-08, ABI-10: the functions' types have the header's names, arity and size.
#[test]
fn function_types_are_those_of_the_header() {
    let spec = spec();
    let sizes = BTreeMap::from([
        ("DLDeviceType", (size_of::<i32>(), align_of::<i32>())),
        // A C enum is an int; in `DLDataType` the code is kept in one byte.
        ("DLDataTypeCode", (size_of::<c_int>(), align_of::<c_int>())),
        sized::<DLPackManagedTensorAllocator>("DLPackManagedTensorAllocator"),
        sized::<DLPackManagedTensorFromPyObjectNoSync>("DLPackManagedTensorFromPyObjectNoSync"),
        sized::<DLPackManagedTensorToPyObjectNoSync>("DLPackManagedTensorToPyObjectNoSync"),
        sized::<DLPackDLTensorFromPyObjectNoSync>("DLPackDLTensorFromPyObjectNoSync"),
        sized::<DLPackCurrentWorkStream>("DLPackCurrentWorkStream"),
    ]);
    let expected = object(&spec["scalars"])
        .map(|(name, v)| (name, (number(&v["size"]), number(&v["align"]))))
        .collect();
    if size_of::<*const u8>() == number(&spec["pointer_size"]) {
        assert_eq!(sizes, expected);
    }
    let table = structs().pop().expect("the exchange table comes last");
    for (name, signature) in object(&spec["exchange_api_signatures"]) {
        let field = table.fields.iter().find(|f| f.name == name);
        let declaration = field.expect(name).declaration;
        // The first entry is the result; commas inside the parameter list of SetError do not count.
        let arguments = signature.as_array().expect("a list").len() - 1;
        let parameters = declaration.split("SetError").next().expect("one part");
        assert_eq!(parameters.matches(',').count() + 1, arguments, "{name}");
    }
}

fn sized<T>(name: &str) -> (&str, (usize, usize)) {
    (name, (size_of::<T>(), align_of::<T>()))
}

/// ABI-02: the crate has exactly the header's device types, in the numbers and in the source.
#[test]
fn device_types_are_those_of_the_header() {
    assert_eq!(device_types(), numbers(&spec()["enums"]["DLDeviceType"]));
    let later = later_device_types();
    assert_eq!(later, numbers(&spec()["main_branch"]["DLDeviceType"]));
    let ours = device_types();
    assert_eq!(
        sorted(constants("i32")),
        sorted(ours.keys().chain(later.keys()).map(String::as_str)),
    );
}

/// ABI-03.
#[test]
fn type_codes_are_those_of_the_header() {
    assert_eq!(type_codes(), numbers(&spec()["enums"]["DLDataTypeCode"]));
    let later = later_type_codes();
    assert_eq!(later, numbers(&spec()["main_branch"]["DLDataTypeCode"]));
    let ours = type_codes();
    assert_eq!(
        sorted(constants("u8")),
        sorted(ours.keys().chain(later.keys()).map(String::as_str)),
    );
    assert_eq!(object(&spec()["enums"]).count(), 2);
}

/// ABI-09: the masks are 64 bits wide, whatever the width of `1UL` on this platform.
#[test]
fn flags_are_those_of_the_header() {
    assert_eq!(flags(), numbers(&spec()["flags"]));
    let ours = flags();
    assert_eq!(
        sorted(declared("const", "u64")),
        sorted(ours.keys().map(String::as_str)),
    );
}

#[test]
fn version_is_that_of_the_header() {
    let version = [DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION];
    assert_eq!(spec()["header"]["version"], serde_json::json!(version));
    assert_eq!(
        sorted(declared("const", "u32")),
        ["DLPACK_MAJOR_VERSION", "DLPACK_MINOR_VERSION"],
    );
}

#[test]
fn names_are_those_of_the_protocol() {
    let spec = spec();
    let text = |name: &CStr| name.to_str().expect("ASCII").to_owned();
    let ours = BTreeMap::from([
        ("legacy", text(CAPSULE_LEGACY)),
        ("legacy_used", text(CAPSULE_LEGACY_USED)),
        ("versioned", text(CAPSULE_VERSIONED)),
        ("versioned_used", text(CAPSULE_VERSIONED_USED)),
        ("exchange_api", text(CAPSULE_EXCHANGE_API)),
    ]);
    assert_eq!(serde_json::json!(ours), spec["capsule_names"]);
    assert_eq!(declared("const", "&CStr").count(), ours.len());

    let attributes = &spec["python_attributes"];
    let (new, old) = ("exchange_api_v1.3", "exchange_api_v1.2");
    assert_eq!(attributes[new]["name"], ATTRIBUTE_EXCHANGE_API);
    assert_eq!(attributes[old]["name"], ATTRIBUTE_EXCHANGE_API_1_2);
    assert_eq!(attributes[new]["capsule_name"], text(CAPSULE_EXCHANGE_API));
    assert_eq!(
        declared("const", "&str").count(),
        object(attributes).count(),
    );
}

/// ABI-12: the struct of the unreleased draft does not exist, and no struct of ours can be mistaken for it.
#[test]
fn draft_structs_are_absent() {
    let draft = &spec()["draft_pr101_never_released"]["structs"];
    let managed = &draft["DLManagedTensorVersioned"];
    if size_of::<*const u8>() == 8 {
        assert_ne!(
            size_of::<DLManagedTensorVersioned>(),
            number(&managed["size"])
        );
    }
    assert_ne!(offset_of!(DLManagedTensorVersioned, dl_tensor), 0);
    assert_ne!(
        size_of::<DLPackVersion>(),
        number(&draft["DLPackVersion"]["size"])
    );
    assert!(structs().iter().all(|s| s.name != "DLTensorVersioned"));
}

/// The header that C code includes.
const HEADER: &str = include_str!("../include/dlpack_core.h");

/// The header, from the constants and structs of `abi` and the declarations of the table above.
fn generated_header() -> String {
    let mut c = String::from(HEADER_START);
    for (name, value) in [
        ("DLPACK_MAJOR_VERSION", DLPACK_MAJOR_VERSION),
        ("DLPACK_MINOR_VERSION", DLPACK_MINOR_VERSION),
    ] {
        c += &format!("#define {name} {value}\n");
    }
    c += "\n";
    for (name, value) in by_value(flags()) {
        c += &format!("#define {name} UINT64_C({value})\n");
    }
    for (name, values) in [
        ("DLDeviceType", device_types()),
        ("DLDataTypeCode", type_codes()),
    ] {
        let base = "#ifdef __cplusplus\ntypedef enum : int32_t {\n#else\ntypedef enum {\n#endif\n";
        c += &format!("\n{base}");
        for (value, number) in by_value(values) {
            c += &format!("  {value} = {number},\n");
        }
        c += &format!("}} {name};\n");
    }
    for s in structs() {
        let fields: String = s.fields.iter().fold(String::new(), |all, f| {
            format!("{all}  {};\n", f.declaration)
        });
        c += &format!("\ntypedef struct {0} {{\n{fields}}} {0};\n", s.name);
    }
    c + HEADER_END
}

const HEADER_START: &str = "\
/* The structs and constants of DLPack 1.3, for C and C++ code that exchanges tensors with Rust.
 *
 * `Managed::into_raw` returns a `DLManagedTensorVersioned *`, and `Managed::from_raw` takes one. The owner of such a pointer calls
 * `deleter(self)` exactly once. Check `version.major` before any field after `flags` is read. `byte_offset` is added to `data`.
 *
 * The names are those of dlpack.h. Code that uses dlpack.h too includes it first; then this file declares nothing.
 * Written by `UPDATE_EXPECT=1 cargo test -p dlpack-core --test abi`, which compares it with the Rust structs.
 */
#ifndef DLPACK_CORE_H
#define DLPACK_CORE_H
#ifndef DLPACK_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif

";

const HEADER_END: &str = "
#ifdef __cplusplus
}
#endif

#endif
#endif
";

fn by_value(values: Values) -> Vec<(String, u64)> {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_by_key(|(_, value)| *value);
    values
}

/// ABI-01 to ABI-09: the header for C code has the constants and fields of the Rust structs.
#[test]
fn header_is_that_of_the_structs() {
    let generated = generated_header();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("include/dlpack_core.h");
        std::fs::write(path, &generated).expect("the package can be written");
    } else {
        assert!(
            HEADER == generated,
            "include/dlpack_core.h is out of date; `UPDATE_EXPECT=1 cargo test -p dlpack-core --test abi` writes it"
        );
    }
}

/// Without a C++ compiler only the next test compiles the header.
#[test]
fn header_is_also_cpp() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("abi_header.cpp");
    let code = format!(
        "{HEADER}\nstatic_assert(sizeof(DLDeviceType) == 4 && sizeof(DLTensor) == {}, \"sizes\");\n",
        size_of::<DLTensor>()
    );
    std::fs::write(&file, code).expect("cargo's temporary directory is writable");
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let options = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"];
    match Command::new(&compiler).args(options).arg(&file).output() {
        Ok(run) => assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        ),
        Err(error) => eprintln!("SKIPPED: no C++ compiler ({compiler}: {error})"),
    }
}

/// The start of a program. It includes the header twice: the second inclusion declares nothing.
fn header() -> String {
    format!("{HEADER}\n{HEADER}\n#include <stdio.h>\n")
}

/// Compiles C code. `None` if this machine has no compiler; an error of the compiler fails the test.
fn compile(name: &str, code: &str, options: &[&str]) -> Option<PathBuf> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, output) = (directory.join(format!("{name}.c")), directory.join(name));
    std::fs::write(&source, code).expect("cargo's temporary directory is writable");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let run = Command::new(&compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror"])
        .args(options)
        .arg("-o")
        .args([&output, &source])
        .output();
    match run {
        Ok(run) => {
            let errors = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{compiler}: {errors}\n{code}");
            Some(output)
        }
        Err(error) => {
            eprintln!("SKIPPED: no C compiler ({compiler}: {error}); set CC to run this test");
            None
        }
    }
}

/// ABI-01 to ABI-09 on the current platform, 32 bits included.
#[test]
fn layouts_are_those_of_the_c_compiler() {
    let mut expected = String::new();
    let mut prints = String::new();
    for s in structs() {
        let mut line = |what: String, c: String, rust: usize| {
            expected += &format!("{what} {rust}\n");
            prints += &format!("  printf(\"{what} %zu\\n\", (size_t)({c}));\n");
        };
        let n = s.name;
        line(format!("size {n}"), format!("sizeof({n})"), s.size);
        line(format!("align {n}"), format!("_Alignof({n})"), s.align);
        for f in s.fields {
            let name = format!("{n}.{}", f.name);
            let member = format!("sizeof((({n} *)0)->{})", f.name);
            let offset = format!("offsetof({n}, {})", f.name);
            line(format!("offset {name}"), offset, f.offset);
            line(format!("size {name}"), member, f.size);
        }
    }
    expected += &format!("size DLDeviceType {}\n", size_of_val(&kDLCPU));
    prints += "  printf(\"size DLDeviceType %zu\\n\", sizeof(DLDeviceType));\n";

    let code = format!("{}int main(void) {{\n{prints}  return 0;\n}}\n", header());
    let Some(program) = compile("abi_layout", &code, &[]) else {
        return;
    };
    let run = Command::new(program)
        .output()
        .expect("the program just built runs");
    assert_eq!(String::from_utf8_lossy(&run.stdout), expected);
}

/// C code that compiles only if the layouts agree, so that a difference is a message and not a stray pointer at run time.
#[cfg(target_os = "linux")]
fn same_layout() -> String {
    let mut c = String::new();
    for s in structs() {
        let n = s.name;
        c += &format!(
            "_Static_assert(sizeof({n}) == {}, \"size of {n}\");\n",
            s.size
        );
        for f in s.fields {
            let (f, at) = (f.name, f.offset);
            c += &format!("_Static_assert(offsetof({n}, {f}) == {at}, \"{n}.{f}\");\n");
        }
    }
    c
}

/// C that reads every field of a tensor, calls its deleter, and calls every function of an exchange table.
#[cfg(target_os = "linux")]
const ROUND_TRIP: &str = r#"
static void set_error(void *context, const char *kind, const char *message) {
  *(int *)context = kind[0] == 'K' && message[0] == 'M';
}

int take(DLManagedTensorVersioned *m, uint64_t *seen) {
  DLTensor *t = &m->dl_tensor;
  uint64_t all[] = {
    m->version.major, m->version.minor, (uintptr_t)m->manager_ctx, m->flags, (uintptr_t)t->data,
    t->device.device_type, t->device.device_id, t->ndim, t->dtype.code, t->dtype.bits,
    t->dtype.lanes, t->shape[0], t->shape[1], t->strides[0], t->strides[1], t->byte_offset,
  };
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) seen[i] = all[i];
  m->deleter(m);
  return (int)(sizeof(all) / sizeof(all[0]));
}

int call(DLPackExchangeAPI *api, DLTensor *t, DLManagedTensorVersioned *m) {
  int error_seen = 0;
  void *out = NULL;
  DLManagedTensorVersioned *made = NULL;
  DLTensor borrowed;
  if (api->header.version.major != 1 || api->header.version.minor != 3 || api->header.prev_api) return 1;
  if (api->managed_tensor_allocator(t, &made, &error_seen, set_error) != -1 || !error_seen) return 2;
  if (api->managed_tensor_from_py_object_no_sync(m, &made) != 0 || made != m) return 3;
  if (api->managed_tensor_to_py_object_no_sync(m, &out) != 0 || out != (void *)m) return 4;
  if (api->dltensor_from_py_object_no_sync(m, &borrowed) != 0 || borrowed.shape != m->dl_tensor.shape) return 5;
  if (api->current_work_stream(kDLCUDA, 3, &out) != 0 || (uintptr_t)out != 2003) return 6;
  return 0;
}
"#;

/// ABI-06, ABI-08, ABI-10: the structs and functions work when real C code uses them.
#[test]
#[cfg(target_os = "linux")]
fn c_code_reads_our_structs_and_calls_our_functions() {
    unsafe extern "C" {
        fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    type Take = unsafe extern "C" fn(*mut DLManagedTensorVersioned, *mut u64) -> c_int;
    type Call = unsafe extern "C" fn(
        *mut DLPackExchangeAPI,
        *mut DLTensor,
        *mut DLManagedTensorVersioned,
    ) -> c_int;

    unsafe extern "C" fn delete(this: *mut DLManagedTensorVersioned) {
        // SAFETY: `take` passes the pointer to the test's struct, which is live and not used otherwise.
        unsafe { (*this).deleter = None };
    }
    unsafe extern "C" fn allocate(
        prototype: *mut DLTensor,
        out: *mut *mut DLManagedTensorVersioned,
        error_ctx: *mut c_void,
        set_error: DLPackSetError,
    ) -> c_int {
        assert!(!prototype.is_null() && !out.is_null());
        let set_error = set_error.expect("C passed its callback");
        // SAFETY: `call` passes its own callback and the context that belongs to it.
        unsafe { set_error(error_ctx, c"Kind".as_ptr(), c"Message".as_ptr()) };
        -1
    }
    unsafe extern "C" fn from_object(
        object: *mut c_void,
        out: *mut *mut DLManagedTensorVersioned,
    ) -> c_int {
        // SAFETY: `call` passes the address of a variable of its own.
        unsafe { *out = object.cast() };
        0
    }
    unsafe extern "C" fn to_object(
        tensor: *mut DLManagedTensorVersioned,
        out: *mut *mut c_void,
    ) -> c_int {
        // SAFETY: `call` passes the address of a variable of its own.
        unsafe { *out = tensor.cast() };
        0
    }
    unsafe extern "C" fn borrow(object: *mut c_void, out: *mut DLTensor) -> c_int {
        // SAFETY: the object is the test's tensor.
        let managed = unsafe { *object.cast::<DLManagedTensorVersioned>() };
        // SAFETY: `call` passes the address of a variable of its own.
        unsafe { *out = managed.dl_tensor };
        0
    }
    unsafe extern "C" fn stream(device_type: i32, id: i32, out: *mut *mut c_void) -> c_int {
        let number = usize::try_from(device_type * 1000 + id).expect("not negative");
        // SAFETY: `call` passes the address of a variable of its own.
        unsafe { *out = core::ptr::without_provenance_mut(number) };
        0
    }

    let code = header() + &same_layout() + ROUND_TRIP;
    let Some(library) = compile("abi_round_trip.so", &code, &["-shared", "-fPIC"]) else {
        return;
    };
    let path = std::ffi::CString::new(library.to_str().expect("UTF-8")).expect("no NUL");
    // SAFETY: the library was built from the text above, which has no initialisers; 2 is RTLD_NOW.
    let library = unsafe { dlopen(path.as_ptr(), 2) };
    assert!(!library.is_null());
    // SAFETY: an open library and a NUL-terminated name.
    let take = unsafe { dlsym(library, c"take".as_ptr()) };
    // SAFETY: an open library and a NUL-terminated name.
    let call = unsafe { dlsym(library, c"call".as_ptr()) };
    assert!(!take.is_null() && !call.is_null());
    // SAFETY: the C text above declares `take` with this signature.
    let take = unsafe { core::mem::transmute::<*mut c_void, Take>(take) };
    // SAFETY: the C text above declares `call` with this signature.
    let call = unsafe { core::mem::transmute::<*mut c_void, Call>(call) };

    let (mut shape, mut strides) = ([21, 22], [23, -24]);
    let mut managed = DLManagedTensorVersioned {
        version: DLPackVersion { major: 1, minor: 2 },
        manager_ctx: core::ptr::without_provenance_mut(3),
        deleter: Some(delete),
        flags: 1 << 40,
        dl_tensor: DLTensor {
            data: core::ptr::without_provenance_mut(5),
            device: DLDevice {
                device_type: 6,
                device_id: 7,
            },
            ndim: 8,
            dtype: DLDataType {
                code: 9,
                bits: 10,
                lanes: 11,
            },
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut_ptr(),
            byte_offset: u64::MAX,
        },
    };
    let mut api = DLPackExchangeAPI {
        header: DLPackExchangeAPIHeader {
            version: DLPackVersion {
                major: DLPACK_MAJOR_VERSION,
                minor: DLPACK_MINOR_VERSION,
            },
            prev_api: core::ptr::null_mut(),
        },
        managed_tensor_allocator: Some(allocate),
        managed_tensor_from_py_object_no_sync: Some(from_object),
        managed_tensor_to_py_object_no_sync: Some(to_object),
        dltensor_from_py_object_no_sync: Some(borrow),
        current_work_stream: Some(stream),
    };

    let mut prototype = managed.dl_tensor;
    // SAFETY: three live structs that nothing else uses during the call.
    let failed = unsafe { call(&raw mut api, &raw mut prototype, &raw mut managed) };
    assert_eq!(failed, 0, "the number of the step that failed in C");

    let mut seen = [0_u64; 16];
    // SAFETY: the struct is live, and its shape has the two entries that C reads; `seen` has space for the 16 numbers that C
    // writes.
    let count = unsafe { take(&raw mut managed, seen.as_mut_ptr()) };
    assert_eq!(usize::try_from(count), Ok(seen.len()));
    let expected = [
        1,
        2,
        3,
        1 << 40,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        21,
        22,
        23,
        u64::MAX - 23,
        u64::MAX,
    ];
    assert_eq!(seen, expected);
    assert!(managed.deleter.is_none(), "C called the deleter");
}
