//! Run the tests of core under valgrind; a wrong access or a lost block fails them.
//!
//! usage: `cargo xtask valgrind [--cases N] [filter]`
//!   --cases N   cases per property test (default 500; valgrind makes each some fifty times slower)
//!   filter      only tests whose name contains it

use crate::prelude::*;

pub(crate) fn main(sh: &Shell, mut args: Arguments) -> Result<()> {
    let cases: Option<u64> = args.opt_value_from_str("--cases")?;
    let filter: Option<String> = args.opt_free_from_str()?;
    finish(args)?;
    let step = Step::new("tests under valgrind", move |sh| {
        needed(sh)?;
        // Cargo starts what it built through this, in the folder of its package.
        let runner = "target.'cfg(all())'.runner = 'valgrind --quiet --error-exitcode=9 \
            --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite'";
        let tests = sh.cmd("cargo").args(["--config", runner]);
        let tests = tests.line("test -p dlpack-core --all-features --lib --tests");
        let tests = tests.line("--no-fail-fast -- --test-threads=1");
        let tests = tests.env("DLPACK_CASES", cases.unwrap_or(500).to_string());
        Ok(tests.args(filter).run()?)
    });
    step.alone(sh, "valgrind")
}

pub(crate) fn needed(sh: &Shell) -> Result<()> {
    if succeeds(cmd!(sh, "valgrind --version")) {
        return Ok(());
    }
    skip("valgrind is missing; `apt-get install valgrind` installs it on Debian and Ubuntu")
}
