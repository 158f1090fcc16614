//! A whole tensor: in a field, under a name, one that may be missing; and the way back.

use crate::describe::record::Columns;
use crate::error::text;
use crate::export::{extras::Shared, hand_over::RawExport};
use crate::import::{FromTensor, reader::Import};
use crate::layout::shape::{HOLE, List};
use crate::loan::facts::Facts;
use crate::private::claim::equal;
use crate::private::probe::{RouteToTensor, RouteToTensorMut};
use crate::tensor::view::same_extent;
use crate::{Descriptor, Error, ExportRequest, FromDLPack, Managed, Record};

/// What describing gives.
pub type Described<'a> = Result<Descriptor<'a>, Error>;

/// A field that is the whole tensor.
#[inline]
pub fn whole<T: ?Sized, R: RouteToTensor<T>>(field: &T, _: R) -> Result<Descriptor<'_>, Error> {
    R::describe(field)
}

/// A field that is the whole tensor, for writing where that can be.
#[inline]
pub fn whole_mut<T: ?Sized, R: RouteToTensorMut<T>>(field: &mut T, _: R) -> Described<'_> {
    R::describe_mut(field)
}

/// A field that is the whole tensor, exported without the struct if it can be.
#[inline]
pub fn whole_share<T: ?Sized, R: RouteToTensorMut<T>>(
    field: &T,
    request: Option<&ExportRequest>,
    other: &mut Shared,
    _: R,
) -> Option<RawExport> {
    R::share(field, request, other)
}

/// A field that may be `None`.
pub fn present<'a, T>(field: &'a Option<T>, name: &'static str) -> Result<&'a T, Error> {
    field.as_ref().ok_or(Error::Absent { name })
}

/// That a variant has no tensor.
pub fn skipped<'a>(name: &'static str, variant: &'static str) -> Result<Descriptor<'a>, Error> {
    Err(Error::Skipped { name, variant })
}

/// A field that is read back from a whole tensor.
pub fn import_whole<T: FromDLPack>(tensor: Managed) -> Result<T, Error> {
    T::from_dlpack(tensor)
}

/// Replaces a field by a whole tensor. After an error the field is unchanged.
pub fn replace_whole<T: FromDLPack>(field: &mut T, tensor: Managed) -> Result<(), Error> {
    field.replace_by(tensor)
}

/// Replaces a field by a whole tensor in column-major order. After an error the field is unchanged.
pub fn replace_column_major<D: FromTensor>(field: &mut D, tensor: Managed) -> Result<(), Error> {
    Import::new::<D>(tensor)?.column_major().replace(field)
}

/// The same for elements in column-major order.
pub fn import_column_major<D: FromTensor>(tensor: Managed) -> Result<D, Error> {
    Import::new::<D>(tensor)?.column_major().data()
}

/// What is put into a field that cannot be `None`.
pub fn given(tensor: Option<Managed>, name: &'static str) -> Result<Managed, Error> {
    tensor.ok_or(Error::Absent { name })
}

/// A tensor that is put into a field: of the data type and the rank that the types say, and of the shape that is said.
pub fn fitting(tensor: Managed, facts: Facts, shape: Option<List>) -> Result<Managed, Error> {
    let view = tensor.view();
    let found = view.dtype();
    if let Some(needed) = facts.dtype.filter(|needed| *needed != found) {
        return Err(Error::WrongDataType { found, needed });
    }
    let extents = shape.map(|List(extents)| extents).transpose()?;
    let facts = match &extents {
        Some(extents) => facts.rank(Some(extents.len())),
        None => facts,
    };
    let found = view.shape().len();
    if let Some(needed) = facts.axes().filter(|needed| *needed != found) {
        return Err(Error::Rank { found, needed });
    }
    let extents = extents.iter().flat_map(|extents| extents.iter());
    for (axis, (&needed, &found)) in extents.zip(view.shape()).enumerate() {
        if needed != HOLE {
            same_extent(axis, found, needed)?;
        }
    }
    Ok(tensor)
}

/// Whether a variant's field takes such a tensor.
#[must_use]
pub fn fits<T: FromDLPack>(tensor: &Managed) -> bool {
    T::fits(&tensor.view())
}

/// That no variant takes such a tensor.
#[must_use]
pub fn no_variant(name: &'static str, tensor: Managed) -> Error {
    let view = tensor.view();
    Error::NoVariant {
        name,
        dtype: view.dtype(),
        rank: view.shape().len(),
    }
}

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
    found: Option<Described<'a>>,
) -> Described<'a> {
    found.unwrap_or_else(|| unknown_tensor(name, known))
}

/// That there is no tensor of this name.
pub fn unknown_tensor<'a>(name: &str, known: &'static [&'static str]) -> Described<'a> {
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
