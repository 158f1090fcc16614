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
        let sites = sh.line("apt-get indextargets --format $(SITE)").read()?;
        let is_mirror = |site: &&str| site.trim_end_matches('/').ends_with("/debian");
        let mirror = sites.lines().find(is_mirror);
        let mirror = mirror.context("this machine installs from no archive of Debian")?;
        sh.write_file(state.join("sources.list"), sources.replace("{}", mirror))?;
        let settings = include_str!("../apt.conf").replace("{}", &state.display().to_string());
        sh.write_file(state.join("settings"), settings)?;
        let folder = folder.to_owned();
        let archive = Self { sh, folder };
        // Without this word, an archive that cannot be reached is no failure.
        let update = archive.apt("apt-get", "-o APT::Update::Error-Mode=any update");
        update.run().context("the archive cannot be reached")?;
        Ok(archive)
    }

    /// A program of `apt` that knows this archive only.
    pub(crate) fn apt(&self, name: &str, words: &str) -> Cmd<'a> {
        let settings = self.folder.join("apt/settings");
        let apt = self.sh.cmd(name).env("APT_CONFIG", settings);
        apt.arg("-qq").line(words)
    }

    /// Unpacks a package into a folder, alone or with all that it needs and this machine lacks.
    pub(crate) fn unpack(&self, package: &str, alone: bool, into: &Path) -> Result<()> {
        let fetched = self.folder.join(format!("fetched-{package}"));
        self.sh.create_dir(fetched.join("partial"))?;
        let mut fetch = self.apt("apt-get", "download");
        if !alone {
            fetch = self.apt("apt-get", "-o");
            fetch = fetch.arg(format!("Dir::Cache::archives={}", fetched.display()));
            fetch = fetch.line("--no-install-recommends --download-only --reinstall --yes install");
        }
        let _there = self.sh.push_dir(&fetched);
        fetch.arg(package).run()?;
        let mut packages = self.sh.read_dir(&fetched)?;
        packages.retain(|path| path.extension().is_some_and(|suffix| suffix == "deb"));
        ensure!(!packages.is_empty(), "the archive sent no {package}");
        for package in packages {
            cmd!(self.sh, "dpkg -x {package} {into}").run()?;
        }
        Ok(())
    }
}
