//! `demo`: what the workspace can do, shown by a program.

use crate::args::Args;
use crate::step::{cargo, run};

pub(crate) const HELP: &str = "
Builds and runs examples/quickstart: an annotated image, a point cloud with columns, a newtype, an enum over data
types and a frame with padded rows, each exported, printed and read back. It asserts what it prints: when it ends
without an error, every line was true.

usage: cargo xtask demo
";

pub(crate) fn main(args: Args) -> Result<(), String> {
    args.finish()?;
    println!("The Rust demonstration: annotated structs become tensors, nothing is copied.");
    run(cargo(&["run", "--quiet", "-p", "quickstart"])).map(drop)
}
