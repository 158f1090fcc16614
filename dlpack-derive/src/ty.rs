//! What a type shows by its tokens alone; the rest is core's to ask of its traits.

use syn::{GenericArgument, PathArguments, Type};

/// A type without the parentheses and invisible groups around it.
pub(crate) fn peel(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            ty => return ty,
        };
    }
}

/// `Vec`, `Box` or `array` for a type that is visibly one of them.
pub(crate) fn owned_container(ty: &Type) -> Option<&'static str> {
    match peel(ty) {
        Type::Array(_) => Some("array"),
        Type::Path(path) => {
            let last = &path.path.segments.last()?.ident;
            ["Vec", "Box"].into_iter().find(|name| last == name)
        }
        _ => None,
    }
}

/// Whether a type is visibly a raw pointer.
pub(crate) fn is_pointer(ty: &Type) -> bool {
    matches!(peel(ty), Type::Ptr(_))
}

/// The `T` of a type that is visibly an `Option<T>`.
pub(crate) fn optional(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = peel(ty) else {
        return None;
    };
    let last = path
        .path
        .segments
        .last()
        .filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(ty) if arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}
