//! Compiles `src/tensor.c`, where there is a C compiler; `has_c` tells the program whether there was one.

use std::path::Path;
use std::process::{Command, Stdio};

fn main() {
    println!("cargo::rerun-if-changed=src/tensor.c");
    println!("cargo::rerun-if-changed=../../dlpack-core/include/dlpack_core.h");
    println!("cargo::rerun-if-env-changed=CC");
    println!("cargo::rustc-check-cfg=cfg(has_c)");

    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let object = Path::new(&out).join("tensor.o");
    let archive = Path::new(&out).join("libtensor.a");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());

    let mut compile = Command::new(compiler);
    compile
        .args([
            "-std=c11",
            "-Wall",
            "-Werror",
            "-O1",
            "-fPIC",
            "-I../../dlpack-core/include",
            "-c",
            "src/tensor.c",
            "-o",
        ])
        .arg(&object);
    let mut collect = Command::new("ar");
    collect.arg("crs").arg(&archive).arg(&object);

    if exists_and_succeeds(compile) && exists_and_succeeds(collect) {
        println!("cargo::rustc-cfg=has_c");
        println!("cargo::rustc-link-search=native={out}");
        println!("cargo::rustc-link-lib=static=tensor");
    } else {
        println!("cargo::warning=no C compiler: this example will have nothing to show");
    }
}

/// Whether the program exists. Panics if it fails.
fn exists_and_succeeds(mut command: Command) -> bool {
    let status = command.stdin(Stdio::null()).status();
    status.is_ok_and(|status| {
        assert!(status.success(), "{command:?}: {status}");
        true
    })
}
