//! Tensors under a name: which there are, and which one is meant.

use crate::{Descriptor, Error, Record};
use crate::{describe::record::Columns, error::text, private::claim::equal};

/// The column of this name in a list, if it has one.
pub fn column<'a, L: Columns + ?Sized>(
    list: &'a L,
    name: &str,
) -> Option<Result<Descriptor<'a>, Error>> {
    L::Record::NAMES
        .contains(&name)
        .then(|| L::Record::column(list.rows(), name))
}

/// What was found under a name, or that nothing was.
pub fn find<'a>(
    name: &str,
    known: &'static [&'static str],
    found: Option<Result<Descriptor<'a>, Error>>,
) -> Result<Descriptor<'a>, Error> {
    found.unwrap_or_else(|| unknown_tensor(name, known))
}

/// That there is no tensor of this name.
pub fn unknown_tensor<'a>(
    name: &str,
    known: &'static [&'static str],
) -> Result<Descriptor<'a>, Error> {
    let name = text(name)?;
    Err(Error::NoSuchTensor { name, known })
}

/// How many names there are in all.
#[must_use]
pub const fn count(lists: &[&[&str]]) -> usize {
    let mut names = 0;
    let mut list = 0;
    while list < lists.len() {
        names += lists[list].len();
        list += 1;
    }
    names
}

/// All names in one list.
#[must_use]
pub const fn names<const N: usize>(lists: &[&[&'static str]]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    let mut list = 0;
    while list < lists.len() {
        let mut name = 0;
        while name < lists[list].len() {
            let mut earlier = 0;
            while earlier < at {
                assert!(
                    !equal(names[earlier], lists[list][name]),
                    "two tensors have the same name"
                );
                earlier += 1;
            }
            names[at] = lists[list][name];
            at += 1;
            name += 1;
        }
        list += 1;
    }
    names
}
