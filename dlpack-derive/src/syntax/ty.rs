//! Recognizes types by their tokens alone; the core checks the others by their traits.

use syn::{GenericArgument, Ident, Path, PathArguments, Type, TypeParamBound, TypePath};

/// Removes parentheses around a type.
pub(crate) fn peel_parentheses(mut ty: &Type) -> &Type {
    while let Type::Paren(paren) = ty {
        ty = &paren.elem;
    }
    ty
}

/// `Vec`, `Box` or `array`, if the tokens of a type show that it is one of them.
pub(crate) fn owned_container(ty: &Type) -> Option<&'static str> {
    match peel_parentheses(ty) {
        Type::Array(_) => Some("array"),
        Type::Path(path) => {
            let last = &path.path.segments.last()?.ident;
            ["Vec", "Box"].into_iter().find(|name| last == name)
        }
        _ => None,
    }
}

/// Whether the tokens of a type show that it is a single list of numbers.
pub(crate) fn is_list(ty: &Type) -> bool {
    let ty = peel_parentheses(ty);
    matches!(ty, Type::Tuple(_) | Type::Reference(_)) || owned_container(ty).is_some()
}

/// The name of a scalar type, if the tokens show that it is one.
pub(crate) fn scalar_name(ty: &Type) -> Option<&Ident> {
    const SCALARS: [&str; 15] = [
        "bool", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32",
        "u64", "u128", "usize",
    ];
    let Type::Path(path) = peel_parentheses(ty) else {
        return None;
    };
    let ident = path.path.get_ident()?;
    SCALARS.iter().any(|name| ident == name).then_some(ident)
}

/// Whether the tokens of a type show that it is a raw pointer.
pub(crate) fn is_pointer(ty: &Type) -> bool {
    matches!(peel_parentheses(ty), Type::Ptr(_))
}

/// The path of `R` in `Vec<R>`, `Arc<[R]>` and other lists of records, without generic arguments.
pub(crate) fn type_of_rows(list: &Type) -> Option<Path> {
    let inner = match peel_parentheses(list) {
        Type::Path(path) => generic_argument(path)?,
        Type::Slice(slice) => &slice.elem,
        Type::Array(array) => &array.elem,
        _ => return None,
    };
    match peel_parentheses(inner) {
        Type::Path(row) if owned_container(inner).is_none() => {
            let mut path = row.path.clone();
            path.segments.last_mut()?.arguments = PathArguments::None;
            Some(path)
        }
        _ => type_of_rows(inner),
    }
}

/// Whether a type has the name of `Rc<T>`. Another type may have the name, too.
pub(crate) fn is_named_rc(ty: &Type) -> bool {
    let Type::Path(path) = peel_parentheses(ty) else {
        return false;
    };
    let last = path.path.segments.last();
    last.is_some_and(|last| last.ident == "Rc" && !last.arguments.is_none())
}

/// The rows of a list of vectors, if the tokens of a type show that it is one.
pub(crate) fn row_vectors(ty: &Type) -> Option<&Type> {
    let elements = match peel_parentheses(ty) {
        Type::Array(array) => &*array.elem,
        Type::Slice(slice) => &*slice.elem,
        Type::Path(path) => {
            let last = &path.path.segments.last()?.ident;
            if last == "Box" || last == "Arc" {
                return row_vectors(generic_argument(path)?);
            }
            (last == "Vec").then(|| generic_argument(path)).flatten()?
        }
        _ => return None,
    };
    (owned_container(elements) == Some("Vec")).then_some(elements)
}

/// The trait object in a `Box<dyn AsRef<[T]>>` (also `Deref` or `Borrow`, also in an `Arc`), if the tokens show that a type is
/// one. Traits of the user are ignored: the user can implement `Buffer` for a `Box` of such a trait object.
pub(crate) fn slice_object(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = peel_parentheses(ty) else {
        return None;
    };
    let last = &path.path.segments.last()?.ident;
    let inner = generic_argument(path).filter(|_| last == "Box" || last == "Arc")?;
    let Type::TraitObject(object) = peel_parentheses(inner) else {
        return None;
    };
    let TypeParamBound::Trait(bound) = object.bounds.first()? else {
        return None;
    };
    let name = &bound.path.segments.last()?.ident;
    (name == "AsRef" || name == "Deref" || name == "Borrow").then_some(inner)
}

/// The `T` of an `Option<T>`, if the tokens of a type show that it is one.
pub(crate) fn option_inner(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = peel_parentheses(ty) else {
        return None;
    };
    let last = path.path.segments.last()?;
    (last.ident == "Option")
        .then(|| generic_argument(path))
        .flatten()
}

/// The only generic argument of a type, if it is a type.
fn generic_argument(path: &TypePath) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(ty) if arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}
