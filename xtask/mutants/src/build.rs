//! Builds a package with all its bugs behind switches, and finds the bugs that do not compile.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::list::{Kind, Mutant};
use crate::plant::{Mode, Part, plant};

/// A copy of the workspace, and how a package in it is built.
#[derive(Clone)]
pub struct Tree {
    pub root: PathBuf,
    /// The folder in which cargo builds.
    pub target: PathBuf,
    pub package: String,
    /// The arguments with which cargo compiles the package as for its tests.
    pub words: Vec<String>,
}

const SWITCH: &str = include_str!("planted.rs");
/// The reason why a bug cannot have a switch.
pub const CONSTANT: &str = "no switch can be there";
/// The compiler features that the switch needs.
const FEATURES: &str =
    "#![feature(core_intrinsics, const_eval_select)]#![allow(internal_features)]";

/// The files of a package, by their paths from the root.
pub type Sources = HashMap<String, String>;
type Parts = HashMap<String, Vec<Part>>;

/// A package whose sources were written with bugs.
#[derive(Default)]
struct Written {
    parts: Parts,
    unfit: Vec<usize>,
    places: BTreeMap<usize, usize>,
}

/// The result of planting.
pub struct Garden {
    /// Each bug that compiles, with the number that its place records.
    pub places: BTreeMap<usize, usize>,
    /// Each bug that does not compile behind a switch, and the first error about it.
    pub unfit: BTreeMap<usize, String>,
}

impl Tree {
    /// Copies the files of the workspace that git tracks. An unchanged file is not written, so that cargo does not rebuild it.
    /// The sources of the package are excluded if a build has written them with bugs: [`plant`](Self::plant) writes these.
    pub fn copy(&self, from: &Path) -> Result<()> {
        let mut list = Command::new("git");
        list.args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let output = list.current_dir(from).output().context("git")?;
        let paths = String::from_utf8(output.stdout)?;
        let paths: BTreeSet<&str> = paths.split('\0').filter(|path| !path.is_empty()).collect();
        let sources = format!("{}/src/", self.package);
        let has_bugs = self.root.join(&sources).join("planted.rs").exists();
        for path in &paths {
            let (old, new) = (from.join(path), self.root.join(path));
            let is_planted = has_bugs && path.starts_with(&sources) && new.exists();
            // `git ls-files` also lists files that were removed and not committed.
            if !old.is_file() || is_planted {
                continue;
            }
            let text = fs::read(&old)?;
            if fs::read(&new).is_ok_and(|known| known == text) {
                continue;
            }
            fs::create_dir_all(new.parent().context("a folder")?)?;
            fs::copy(old, new).with_context(|| (*path).to_owned())?;
        }
        self.remove_others(from, &paths)
    }

    /// Removes sources and tests that the workspace no longer has.
    fn remove_others(&self, from: &Path, paths: &BTreeSet<&str>) -> Result<()> {
        for (path, _) in texts(&self.root, &["rs", "py", "toml"])? {
            let relative = path.strip_prefix(&self.root)?;
            let is_known = paths.contains(&*relative.to_string_lossy());
            let is_there = is_known && from.join(relative).is_file();
            if !is_there && !relative.ends_with("src/planted.rs") {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// The folder for output of the tests.
    pub fn scratch(&self) -> PathBuf {
        self.target.join("tests")
    }

    /// The sources of the package.
    pub fn sources(&self) -> Result<Sources> {
        let texts = texts(&self.root.join(&self.package).join("src"), &["rs"])?;
        let relative = |(path, text): (PathBuf, String)| {
            let path = path
                .strip_prefix(&self.root)?
                .to_string_lossy()
                .into_owned();
            Ok((path, text))
        };
        texts.into_iter().map(relative).collect()
    }

    pub fn cargo(&self, words: &[&str]) -> Command {
        let mut cargo = Command::new("cargo");
        cargo.args(words).args(&self.words).current_dir(&self.root);
        cargo.env("CARGO_TARGET_DIR", &self.target);
        // The switch can be called in a `const fn`, which requires a compiler feature.
        cargo.env("RUSTC_BOOTSTRAP", self.package.replace('-', "_"));
        cargo.env("RUSTFLAGS", "--cap-lints=warn -Awarnings");
        cargo
    }

    /// Writes the package with these bugs, and returns their places.
    fn write(
        &self,
        sources: &Sources,
        all: &[Mutant],
        which: &BTreeSet<usize>,
        mode: Mode,
    ) -> Result<Written> {
        let mut written = Written::default();
        for (file, source) in sources {
            let here = which
                .iter()
                .copied()
                .filter(|&index| all[index].file == *file);
            let here: Vec<_> = here.collect();
            let mut planted = plant(source, all, &here, mode).context(file.clone())?;
            if *file == format!("{}/src/lib.rs", self.package) {
                planted.parts.iter_mut().for_each(|part| {
                    part.range.start += FEATURES.len();
                    part.range.end += FEATURES.len();
                });
                // The switch exports a function, which counts as unsafe.
                let text = planted
                    .text
                    .replace("#![forbid(unsafe_code)]", "                       ");
                planted.text = format!("{FEATURES}{text}\nmod planted;\n");
            }
            self.put(file, &planted.text)?;
            written.parts.insert(file.clone(), planted.parts);
            written.unfit.extend(planted.unfit);
            written.places.extend(planted.places);
        }
        self.put(&format!("{}/src/planted.rs", self.package), SWITCH)?;
        Ok(written)
    }

    fn put(&self, file: &str, text: &str) -> Result<()> {
        let path = self.root.join(file);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        fs::write(&path, text).with_context(|| file.to_owned())
    }

    /// Plants all bugs that compile behind a switch, and returns the others; `unfit` are those that did not compile in an earlier
    /// run.
    pub fn plant(
        &self,
        sources: &Sources,
        all: &[Mutant],
        mut unfit: BTreeMap<usize, String>,
    ) -> Result<Garden> {
        let mut which: BTreeSet<usize> = (0..all.len()).collect();
        which.retain(|index| !unfit.contains_key(index));
        for round in 1..40 {
            let written = self.write(sources, all, &which, Mode::Switches)?;
            for index in written.unfit {
                which.remove(&index);
                unfit.insert(index, CONSTANT.to_owned());
            }
            // A check is fast, and finds nearly all errors.
            let mut errors = self.errors("check")?;
            if errors.is_empty() {
                errors = self.errors("build")?;
            }
            println!(
                "mutants: build {round}, {} bugs, {} errors",
                which.len(),
                errors.len()
            );
            if errors.is_empty() {
                return Ok(Garden {
                    places: written.places,
                    unfit,
                });
            }
            let before = which.len();
            for error in &errors {
                let mut about = error.about(&written.parts);
                if about.is_empty() {
                    // For example if a `match` has too few arms left, or a type is inferred elsewhere.
                    about = error.near(sources, all, &which);
                }
                for index in about {
                    which.remove(&index);
                    unfit.entry(index).or_insert_with(|| error.text.clone());
                }
            }
            ensure!(
                which.len() < before,
                "no bug is at fault for: {} {:?}",
                errors[0].text,
                errors[0].lines
            );
        }
        bail!("after 40 builds there are errors still")
    }

    /// The bugs whose place is compiled at all: each gets an error instead of a switch, to find out.
    pub fn compiled(
        &self,
        sources: &Sources,
        all: &[Mutant],
        which: &BTreeSet<usize>,
    ) -> Result<BTreeSet<usize>> {
        let parts = self.write(sources, all, which, Mode::Broken)?.parts;
        let errors = self.errors("check")?;
        Ok(errors
            .iter()
            .flat_map(|error| error.about(&parts))
            .collect())
    }

    /// Plants one bug without a switch next to those with one. Returns whether it compiles.
    pub fn plant_alone(
        &self,
        sources: &Sources,
        all: &[Mutant],
        garden: &Garden,
        index: usize,
    ) -> Result<bool> {
        let mut which: BTreeSet<usize> = garden.places.keys().copied().collect();
        which.insert(index);
        self.write(sources, all, &which, Mode::Always(index))?;
        Ok(self.errors("check")?.is_empty())
    }

    /// The errors of the package; `command` is `check` or `build`.
    fn errors(&self, command: &str) -> Result<Vec<Fault>> {
        let mut build = self.cargo(&[command, "--quiet", "--message-format=json"]);
        let output = build.stderr(Stdio::piped()).output()?;
        let mut faults = Vec::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let message = &message["message"];
            if message["level"] == "error" {
                faults.extend(Fault::of(message));
            }
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success() || !faults.is_empty(),
            "cargo {command}: {errors}"
        );
        Ok(faults)
    }
}

/// The files below a folder whose names end with one of these, sorted.
pub fn texts(folder: &Path, ends: &[&str]) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(texts(&path, ends)?);
        } else if path
            .extension()
            .is_some_and(|end| ends.iter().any(|wanted| end == *wanted))
        {
            found.push((path.clone(), fs::read_to_string(&path)?));
        }
    }
    found.sort();
    Ok(found)
}

/// An error of the compiler.
struct Fault {
    text: String,
    /// Its locations: file, and byte range.
    places: Vec<(String, usize, usize)>,
    /// The lines of these locations. A changed file has the same lines as its original.
    lines: Vec<(String, usize)>,
}

impl Fault {
    fn of(message: &Value) -> Option<Self> {
        let (mut places, mut lines) = (Vec::new(), Vec::new());
        for span in message["spans"].as_array()? {
            let mut span = Some(span);
            // The location of a macro's error is the use of the macro.
            while let Some(here) = span.filter(|span| span.is_object()) {
                let number = |name: &str| usize::try_from(here[name].as_u64()?).ok();
                let file = here["file_name"].as_str()?.to_owned();
                lines.push((file.clone(), number("line_start")?));
                places.push((file, number("byte_start")?, number("byte_end")?));
                span = here["expansion"].get("span");
            }
        }
        let code = message["code"]["code"].as_str().unwrap_or_default();
        let text = message["message"].as_str()?.lines().next()?;
        (!places.is_empty()).then(|| Self {
            text: format!("{code} {text}").trim().to_owned(),
            places,
            lines,
        })
    }

    /// The bugs that may cause an error outside of all parts: omitted arms at most ten lines away, or else the nearest bug.
    fn near(&self, sources: &Sources, all: &[Mutant], which: &BTreeSet<usize>) -> Vec<usize> {
        let distance = |index: usize| {
            let mutant = &all[index];
            let line = sources[&mutant.file][..mutant.start].matches('\n').count() + 1;
            let here = self.lines.iter().filter(|(file, _)| *file == mutant.file);
            here.map(|(_, at)| at.abs_diff(line)).min()
        };
        let bugs = which
            .iter()
            .filter_map(|&index| Some((distance(index)?, index)));
        let bugs: Vec<_> = bugs.collect();
        let arms = bugs
            .iter()
            .filter(|bug| bug.0 <= 10 && all[bug.1].kind == Kind::Arm);
        let arms: Vec<_> = arms.map(|bug| bug.1).collect();
        match bugs.iter().min() {
            Some(nearest) if arms.is_empty() => vec![nearest.1],
            _ => arms,
        }
    }

    /// The bugs whose smallest part contains the error.
    fn about(&self, parts: &Parts) -> Vec<usize> {
        let found = self.places.iter().find_map(|(file, start, end)| {
            let around = parts.get(file)?.iter();
            let around = around.filter(|part| part.range.start <= *start && *end <= part.range.end);
            around.min_by_key(|part| part.range.len())
        });
        found.map_or_else(Vec::new, |part| part.mutants.clone())
    }
}
