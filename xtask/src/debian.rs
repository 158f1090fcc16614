//! Debian's packages, fetched by the machine's package manager into a folder of ours; nothing is installed.

use crate::prelude::*;

/// Whether this machine has the package manager at all.
pub(crate) fn is_here(sh: &Shell) -> bool {
    succeeds(cmd!(sh, "apt-get --version"))
}

/// The archive that this machine installs its packages from, with lists and settings that are ours alone.
pub(crate) struct Archive<'a> {
    sh: &'a Shell,
    folder: PathBuf,
}

impl<'a> Archive<'a> {
    /// Learns what the archive holds. Each source is a line of `sources.list`, with `{}` for the archive's address.
    pub(crate) fn open(sh: &'a Shell, folder: &Path, sources: &[&str]) -> Result<Self> {
        let state = folder.join("apt");
        sh.create_dir(state.join("state/lists/partial"))?;
        sh.create_dir(state.join("cache/archives/partial"))?;
        let format = "$(SITE)";
        let sites = cmd!(sh, "apt-get indextargets --format {format}").quiet().read()?;
        let mirror = sites.lines().find(|site| site.trim_end_matches('/').ends_with("/debian"));
        let mirror = mirror.context("this machine installs its packages from no archive of Debian")?;
        let lines = sources.iter().map(|source| source.replace("{}", mirror) + "\n");
        sh.write_file(state.join("sources.list"), lines.collect::<String>())?;
        let archive = Self { sh, folder: folder.to_owned() };
        // Without this word, an archive that cannot be reached is no failure.
        let update = archive.apt("apt-get", &["-o", "APT::Update::Error-Mode=any", "update"]);
        update.run().context("the archive cannot be reached")?;
        Ok(archive)
    }

    /// A program of `apt` that knows this archive only.
    pub(crate) fn apt(&self, name: &str, words: &[&str]) -> Cmd<'a> {
        let state = self.folder.join("apt");
        let mut apt = self.sh.cmd(name);
        for (key, value) in [
            ("Dir::Etc::sourcelist", state.join("sources.list")),
            ("Dir::Etc::sourceparts", "-".into()),
            ("Dir::State", state.join("state")),
            ("Dir::Cache", state.join("cache")),
            ("APT::Sandbox::User", "root".into()),
        ] {
            apt = apt.arg("-o").arg(format!("{key}={}", value.display()));
        }
        apt.arg("-qq").args(words)
    }

    /// The version of a package that this archive would install, if it has one.
    pub(crate) fn version(&self, package: &str) -> Option<String> {
        let policy = self.apt("apt-cache", &["policy", package]).read().ok()?;
        let version = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "))?;
        (version != "(none)").then(|| version.to_owned())
    }

    /// Unpacks a package into a folder, alone or with all that it needs and this machine lacks.
    pub(crate) fn unpack(&self, package: &str, alone: bool, into: &Path) -> Result<()> {
        let fetched = self.folder.join(format!("fetched-{package}"));
        self.sh.create_dir(fetched.join("partial"))?;
        let archives = format!("Dir::Cache::archives={}", fetched.display());
        // What is missing follows from what the machine has; this file is only read.
        let status = "Dir::State::status=/var/lib/dpkg/status";
        let with_needs = "--no-install-recommends --download-only --reinstall --yes install";
        let fetch = match alone {
            true => self.apt("apt-get", &["download"]),
            false => self.apt("apt-get", &["-o", &archives, "-o", status]).args(with_needs.split(' ')),
        };
        let _there = self.sh.push_dir(&fetched);
        fetch.arg(package).run().with_context(|| format!("the archive does not send {package}"))?;
        let mut packages = self.sh.read_dir(&fetched)?;
        packages.retain(|path| path.extension().is_some_and(|suffix| suffix == "deb"));
        ensure!(!packages.is_empty(), "the archive sent no {package}");
        Ok(packages.iter().try_for_each(|package| cmd!(self.sh, "dpkg -x {package} {into}").run())?)
    }
}
