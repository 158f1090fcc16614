//! Debian's packages, fetched by the machine's package manager into a folder of ours; nothing is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{output, program, run, succeeds};
use crate::tree::files;

/// Whether this machine has the package manager at all.
pub(crate) fn is_here() -> bool {
    succeeds(program("apt-get", &["--version"]))
}

/// The archive that this machine installs its packages from, with lists and settings that are ours alone.
pub(crate) struct Archive {
    folder: PathBuf,
}

impl Archive {
    /// Learns what the archive holds. Each source is a line of `sources.list`, with `{}` for the archive's address.
    pub(crate) fn open(folder: &Path, sources: &[&str]) -> Result<Self, String> {
        let state = folder.join("apt");
        make_folder(&state.join("state/lists/partial"))?;
        make_folder(&state.join("cache/archives/partial"))?;
        let mirror = mirror()?;
        let lines: String = sources
            .iter()
            .map(|source| format!("{}\n", source.replace("{}", &mirror)))
            .collect();
        std::fs::write(state.join("sources.list"), lines).map_err(|error| error.to_string())?;
        let archive = Self {
            folder: folder.to_owned(),
        };
        // Without this word, an archive that cannot be reached is no failure.
        let update = ["-o", "APT::Update::Error-Mode=any", "update"];
        run(archive.apt("apt-get", &update)).map_err(|_| "the archive cannot be reached")?;
        Ok(archive)
    }

    /// A program of `apt` that knows this archive only; what it fetches comes into the folder.
    pub(crate) fn apt(&self, name: &str, words: &[&str]) -> Command {
        let state = self.folder.join("apt");
        let mut apt = Command::new(name);
        apt.current_dir(&self.folder).stdin(Stdio::null());
        for (key, value) in [
            ("Dir::Etc::sourcelist", state.join("sources.list")),
            ("Dir::Etc::sourceparts", "-".into()),
            ("Dir::State", state.join("state")),
            ("Dir::Cache", state.join("cache")),
        ] {
            apt.arg("-o").arg(format!("{key}={}", value.display()));
        }
        apt.args(["-o", "APT::Sandbox::User=root", "-qq"]);
        apt.args(words);
        apt
    }

    /// The version of a package that this archive would install, if it has one.
    pub(crate) fn version(&self, package: &str) -> Option<String> {
        let told = output(self.apt("apt-cache", &["policy", package])).ok()?;
        let version = told
            .lines()
            .find_map(|line| line.trim().strip_prefix("Candidate: "))?;
        (version != "(none)").then(|| version.to_owned())
    }

    /// Unpacks a package into a folder, alone or with all that it needs and this machine lacks.
    pub(crate) fn unpack(&self, package: &str, needs: Needs, into: &Path) -> Result<(), String> {
        let fetched = self.folder.join(format!("fetched-{package}"));
        make_folder(&fetched.join("partial"))?;
        let archives = format!("Dir::Cache::archives={}", fetched.display());
        let mut fetch = match needs {
            Needs::Left => self.apt("apt-get", &["download"]),
            Needs::Unpacked => self.apt(
                "apt-get",
                &[
                    "-o",
                    &archives,
                    // What is missing follows from what the machine has; this file is only read.
                    "-o",
                    "Dir::State::status=/var/lib/dpkg/status",
                    "--no-install-recommends",
                    "--download-only",
                    "--reinstall",
                    "--yes",
                    "install",
                ],
            ),
        };
        fetch.current_dir(&fetched).arg(package);
        run(fetch).map_err(|_| format!("the archive does not send {package}"))?;
        let packages = files(&fetched, "deb")?;
        if packages.is_empty() {
            return Err(format!("the archive sent no {package}"));
        }
        for package in packages {
            let mut unpack = Command::new("dpkg");
            unpack.arg("-x").arg(package).arg(into).stdin(Stdio::null());
            run(unpack)?;
        }
        Ok(())
    }
}

/// What becomes of the packages that a package needs.
#[derive(Clone, Copy)]
pub(crate) enum Needs {
    /// They are fetched and unpacked with it.
    Unpacked,
    /// Nothing: its library is of use without them.
    Left,
}

fn mirror() -> Result<String, String> {
    let told = output(program("apt-get", &["indextargets", "--format", "$(SITE)"]))?;
    told.lines()
        .find(|site| site.trim_end_matches('/').ends_with("/debian"))
        .map(str::to_owned)
        .ok_or_else(|| "this machine installs its packages from no archive of Debian".into())
}

pub(crate) fn make_folder(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path)
        .map_err(|error| format!("cannot make {}: {error}", path.display()))
}
