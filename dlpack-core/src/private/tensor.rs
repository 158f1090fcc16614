//! Functions for a tensor in a field, a named tensor or an optional tensor, and for importing it.

use core::marker::PhantomData;

use crate::describe::record::Columns;
use crate::error::text;
use crate::export::{extras::ShareCall, hand_over::RawExport};
use crate::import::{FromTensor, reader::Import};
use crate::layout::shape::{HOLE, List};
use crate::loan::facts::Facts;
use crate::private::assertion::is_same_name;
use crate::private::probe::{RouteToData, RouteToTensor, RouteToTensorMut};
use crate::tensor::view::check_axis_size;
use crate::{Descriptor, Element, Error, ExportRequest, FromDLPack, Managed, Record, TensorRef};

/// The result of describing a tensor.
pub type Described<'a> = Result<Descriptor<'a>, Error>;

/// The key `tensor`: describes a field that is a tensor itself.
#[inline]
pub fn describe_field<T: ?Sized, R: RouteToTensor<T>>(
    field: &T,
    _: R,
) -> Result<Descriptor<'_>, Error> {
    R::describe(field)
}

/// The key `data` without other keys: describes a field that is a tensor itself, or lends its elements.
#[inline]
pub fn describe_data<T: ?Sized, R: RouteToData<T>>(field: &T, _: R) -> Described<'_> {
    R::describe(field)
}

/// The key `tensor`, through `&mut`: describes a field that is a tensor itself, for writing if the type allows it.
#[inline]
pub fn describe_field_mut<T: ?Sized, R: RouteToTensorMut<T>>(field: &mut T, _: R) -> Described<'_> {
    R::describe_mut(field)
}

/// The key `tensor`: exports a field that is a tensor itself without keeping the struct alive, if the type supports that.
#[inline]
pub fn share_field<T: ?Sized, R: RouteToTensorMut<T>>(
    field: &T,
    request: Option<&ExportRequest>,
    call: &mut ShareCall,
    _: R,
) -> Option<RawExport> {
    R::share_tensor(field, request, call)
}

/// Returns the value of an optional field, or the error that the tensor is absent.
pub fn require_present<'a, T>(field: &'a Option<T>, name: &'static str) -> Result<&'a T, Error> {
    field.as_ref().ok_or(Error::Absent { name })
}

/// Returns the error for a variant marked `skip`.
pub fn reject_skipped<'a>(
    name: &'static str,
    variant: &'static str,
) -> Result<Descriptor<'a>, Error> {
    Err(Error::Skipped { name, variant })
}

/// Imports a field that is a tensor itself.
pub fn import_field<T: FromDLPack>(tensor: Managed) -> Result<T, Error> {
    T::from_dlpack(tensor)
}

/// Replaces a field by a whole tensor. After an error the field is unchanged.
pub fn replace_field<T: FromDLPack>(field: &mut T, tensor: Managed) -> Result<(), Error> {
    field.replace_by(tensor)
}

/// Replaces a field by a whole tensor in Fortran order. After an error the field is unchanged.
pub fn replace_column_major<D: FromTensor>(field: &mut D, tensor: Managed) -> Result<(), Error> {
    Import::new::<D>(tensor)?.column_major().replace(field)
}

/// Imports a field that is a tensor itself, with elements in Fortran order.
pub fn import_column_major<D: FromTensor>(tensor: Managed) -> Result<D, Error> {
    Import::new::<D>(tensor)?.column_major().into_data()
}

/// Returns the tensor for a field that cannot be `None`, or the error that the tensor is absent.
pub fn require_tensor(tensor: Option<Managed>, name: &'static str) -> Result<Managed, Error> {
    tensor.ok_or(Error::Absent { name })
}

/// Checks a tensor that is assigned to a field: its dtype and rank against the type, and its shape against `shape`.
pub fn check_assigned(
    tensor: Managed,
    facts: Facts,
    shape: Option<List>,
) -> Result<Managed, Error> {
    check_view(&tensor.view(), facts, shape)?;
    Ok(tensor)
}

/// Whether an array passes the checks of [`check_assigned`].
#[must_use]
pub fn is_assignable(view: &TensorRef<'_>, facts: Facts, shape: Option<List>) -> bool {
    check_view(view, facts, shape).is_ok()
}

fn check_view(view: &TensorRef<'_>, facts: Facts, shape: Option<List>) -> Result<(), Error> {
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
            check_axis_size(axis, found, needed)?;
        }
    }
    Ok(())
}

/// Whether a type accepts a tensor. If the type cannot be imported, the constants of `private::probe::ProbeDefaults` apply, so that
/// only the call that imports it reports the error.
#[derive(Debug)]
pub struct Accepts<T: ?Sized>(PhantomData<T>);

impl<T: FromDLPack> Accepts<T> {
    /// Whether dtype and rank of a tensor are those that a field of this type imports.
    pub const TENSOR: fn(&TensorRef<'_>) -> bool = T::fits;

    /// Copies the elements of an array to a field. Returns `false`, with the field unchanged, if that needs a tensor or fails.
    pub fn replace(field: &mut T, view: &TensorRef<'_>) -> bool {
        field.replace_by_view(view)
    }
}

impl<D: FromTensor> Accepts<D> {
    /// Whether dtype and rank of a tensor are those that a struct imports whose data field has this type. The rank counts
    /// the axes before those of the element type.
    pub const DATA: fn(&TensorRef<'_>, Option<usize>) -> bool = |tensor, rank| {
        let axes = |rank| rank + D::Element::TRAILING.len();
        D::fits(tensor) && rank.is_none_or(|rank| axes(rank) == tensor.shape().len())
    };
}

/// Whether an axis of this tensor has this size.
#[must_use]
pub fn has_size(tensor: &TensorRef<'_>, axis: usize, size: i64) -> bool {
    tensor.shape().get(axis) == Some(&size)
}

/// Returns the error that no variant accepts this tensor.
#[must_use]
pub fn no_variant(name: &'static str, variants: &'static [&'static str], tensor: Managed) -> Error {
    let view = tensor.view();
    Error::NoVariant {
        name,
        dtype: view.dtype(),
        rank: view.shape().len(),
        variants,
    }
}

/// Describes the column with this name in a list of records, if the record has it.
pub fn describe_column<'a, L: Columns + ?Sized>(
    list: &'a L,
    name: &str,
) -> Option<Result<Descriptor<'a>, Error>> {
    L::Record::NAMES
        .contains(&name)
        .then(|| L::Record::column(list.rows(), name))
}

/// Returns the tensor found under a name, or the error that there is none.
pub fn found_or_unknown<'a>(
    name: &str,
    known: &'static [&'static str],
    found: Option<Described<'a>>,
) -> Described<'a> {
    found.unwrap_or_else(|| unknown_tensor(name, known))
}

/// Returns the error that there is no tensor with this name.
pub fn unknown_tensor<'a>(name: &str, known: &'static [&'static str]) -> Described<'a> {
    let name = text(name)?;
    Err(Error::NoSuchTensor { name, known })
}

/// The number of names in several lists.
#[must_use]
pub const fn count_names(lists: &[&[&str]]) -> usize {
    let mut names = 0;
    let mut list = 0;
    while list < lists.len() {
        names += lists[list].len();
        list += 1;
    }
    names
}

/// Concatenates several lists of names. Two equal names in different lists are a compile-time error; those of one list are the fields
/// of one struct.
#[must_use]
pub const fn concat_names<const N: usize>(lists: &[&[&'static str]]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    let mut list = 0;
    while list < lists.len() {
        let mut name = 0;
        let before = at;
        while name < lists[list].len() {
            let mut earlier = 0;
            while earlier < before {
                assert!(
                    !is_same_name(names[earlier], lists[list][name]),
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
