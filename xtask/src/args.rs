//! The words after the subcommand: flags, options with a value, and plain words.

/// What the user wrote after the subcommand; each question takes its answer out, and `finish` refuses what is left.
pub(crate) struct Args {
    words: Vec<String>,
}

impl Args {
    pub(crate) fn new(words: Vec<String>) -> Self {
        Self { words }
    }

    /// Whether the flag was given.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.words.len();
        self.words.retain(|word| word != name);
        self.words.len() < before
    }

    /// The value of `--name value` or `--name=value`.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>, String> {
        let prefix = format!("{name}=");
        let Some(at) = self
            .words
            .iter()
            .position(|word| word == name || word.starts_with(&prefix))
        else {
            return Ok(None);
        };
        let word = self.words.remove(at);
        if let Some(value) = word.strip_prefix(&prefix) {
            return Ok(Some(value.to_owned()));
        }
        if at == self.words.len() {
            return Err(format!("`{name}` needs a value"));
        }
        Ok(Some(self.words.remove(at)))
    }

    /// The next word that is not an option.
    pub(crate) fn word(&mut self) -> Option<String> {
        let at = self.words.iter().position(|word| !word.starts_with('-'))?;
        Some(self.words.remove(at))
    }

    /// Refuses whatever nobody asked for.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(format!("unexpected argument `{word}`; try `--help`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Args;

    fn args(line: &str) -> Args {
        Args::new(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn a_flag_is_taken_once() {
        let mut args = args("--keep-going");
        assert!(args.flag("--keep-going"));
        assert!(!args.flag("--keep-going"));
        args.finish().unwrap();
    }

    #[test]
    fn a_value_follows_or_is_joined() {
        assert_eq!(
            args("--seconds 5").value("--seconds").unwrap().as_deref(),
            Some("5")
        );
        assert_eq!(
            args("--seconds=7").value("--seconds").unwrap().as_deref(),
            Some("7")
        );
        assert_eq!(args("extent").value("--seconds").unwrap(), None);
        assert!(args("--seconds").value("--seconds").is_err());
    }

    #[test]
    fn a_word_may_stand_anywhere() {
        let mut args = args("--seconds 5 extent");
        assert_eq!(args.value("--seconds").unwrap().as_deref(), Some("5"));
        assert_eq!(args.word().as_deref(), Some("extent"));
        args.finish().unwrap();
    }

    #[test]
    fn what_is_left_is_refused() {
        assert!(
            args("--sceonds 5")
                .finish()
                .unwrap_err()
                .contains("`--sceonds`")
        );
    }
}
