//! Debian's packages, fetched by the machine's package manager into a folder of ours; nothing is installed.

use crate::prelude::*;

/// The archive that this machine installs its packages from, with lists and settings that are ours alone.
pub(crate) struct Archive<'a> {
    sh: &'a Shell,
    folder: PathBuf,
}

impl<'a> Archive<'a> {
    /// Learns what the archive holds. Each source is a line of `sources.list`, with `{}` for the archive's address.
    pub(crate) fn open(sh: &'a Shell, folder: &Path, sources: &str) -> Result<Self> {
        if !succeeds(cmd!(sh, "apt-get --version")) {
            return skip("it comes with Debian's package manager, which is not here");
        }
        let state = folder.join("apt");
        sh.create_dir(state.join("state/lists/partial"))?;
        sh.create_dir(state.join("cache/archives/partial"))?;
        let sites = sh.line("apt-get indextargets --format $(SITE)");
        let sites = sites.quiet().read()?;
        let is_mirror = |site: &&str| site.trim_end_matches('/').ends_with("/debian");
        let mirror = sites.lines().find(is_mirror);
        let mirror = mirror.context("this machine installs from no archive of Debian")?;
        sh.write_file(state.join("sources.list"), sources.replace("{}", mirror))?;
        let folder = folder.to_owned();
        let archive = Self { sh, folder };
        // Without this word, an archive that cannot be reached is no failure.
        let update = archive.apt("apt-get", "-o APT::Update::Error-Mode=any update");
        update.run().context("the archive cannot be reached")?;
        Ok(archive)
    }

    /// A program of `apt` that knows this archive only.
    pub(crate) fn apt(&self, name: &str, words: &str) -> Cmd<'a> {
        let state = self.folder.join("apt");
        let [list, lists, cache] = ["sources.list", "state", "cache"].map(|name| state.join(name));
        let apt = self.sh.cmd(name).args(["-qq", "-o"]);
        let apt = apt.arg(format!("Dir::Etc::sourcelist={}", list.display()));
        let apt = apt.line("-o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root -o");
        let apt = apt.arg(format!("Dir::State={}", lists.display()));
        let apt = apt.arg("-o").arg(format!("Dir::Cache={}", cache.display()));
        apt.line(words)
    }

    /// The version of a package that this archive would install, if it has one.
    pub(crate) fn version(&self, package: &str) -> Option<String> {
        let policy = self.apt("apt-cache", "policy").arg(package).read().ok()?;
        let mut lines = policy.lines().map(str::trim);
        let version = lines.find_map(|line| line.strip_prefix("Candidate: "))?;
        (version != "(none)").then(|| version.to_owned())
    }

    /// Unpacks a package into a folder, alone or with all that it needs and this machine lacks.
    pub(crate) fn unpack(&self, package: &str, alone: bool, into: &Path) -> Result<()> {
        let fetched = self.folder.join(format!("fetched-{package}"));
        self.sh.create_dir(fetched.join("partial"))?;
        let mut fetch = self.apt("apt-get", "download");
        if !alone {
            // What is missing follows from what the machine has; this file is only read.
            fetch = self.apt("apt-get", "-o Dir::State::status=/var/lib/dpkg/status -o");
            fetch = fetch.arg(format!("Dir::Cache::archives={}", fetched.display()));
            fetch = fetch.line("--no-install-recommends --download-only --reinstall --yes install");
        }
        let _there = self.sh.push_dir(&fetched);
        let fetch = fetch.arg(package).run();
        fetch.with_context(|| format!("the archive does not send {package}"))?;
        let mut packages = self.sh.read_dir(&fetched)?;
        packages.retain(|path| path.extension().is_some_and(|suffix| suffix == "deb"));
        ensure!(!packages.is_empty(), "the archive sent no {package}");
        for package in packages {
            cmd!(self.sh, "dpkg -x {package} {into}").run()?;
        }
        Ok(())
    }
}
