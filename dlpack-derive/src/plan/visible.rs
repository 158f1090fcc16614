//! Rejects field types that cannot fit, as far as their tokens show it. rustc rejects them too, by the traits of the core, but
//! cannot say what to write instead. Behind an alias, rustc's error is the only one.

use syn::Type;

use crate::plan::tensor::Data;
use crate::plan::{Main, Plan, Source};
use crate::syntax::ctxt::Ctxt;
use crate::syntax::ty::{option_inner, owned_container, row_vectors, slice_object};

impl Plan<'_> {
    /// Reports fields with types that cannot be exported, as far as their tokens show it.
    pub(crate) fn check_types(&self, cx: &Ctxt) {
        for ty in self.data_types() {
            // An `Option` of another type may be the user's own type with that name.
            if option_inner(ty).and_then(owned_container).is_some() {
                let message = "an `Option` may hold no data: store an empty container instead of `None`, \
                               or make the field a tensor that may be absent, `#[dlpack(tensor)]`";
                cx.error(ty, message);
            }
            if let Some(row) = row_vectors(ty) {
                let message = "each of these rows is an allocation of its own: store all of them in one `Vec`, \
                               and declare a shape, such as `#[dlpack(shape = [_, columns])]` on the struct";
                cx.error(row, message);
            }
            if let Some(object) = slice_object(ty) {
                let message = "the elements behind a `dyn` type may move: use `Vec<T>`, `Box<[T]>` or `Arc<[T]>`";
                cx.error(object, message);
            }
        }
    }

    /// The types of the data fields; for an optional tensor the type inside of the `Option`.
    fn data_types(&self) -> impl Iterator<Item = &Type> {
        fn data_type<'a>(data: &Data<'a>) -> Option<&'a Type> {
            match data {
                Data::Field(field) => Some(field.ty),
                Data::Present(_, ty) => Some(ty),
                Data::Expr(_) | Data::Raw { .. } => None,
            }
        }
        let main: Vec<_> = match &self.main {
            Main::Tensor { tensor, .. } => data_type(&tensor.data).into_iter().collect(),
            Main::Whole(field, _) => vec![field.ty],
            Main::Variants(arms) => arms.iter().filter_map(|arm| Some(arm.field?.ty)).collect(),
            Main::None | Main::Via(..) => Vec::new(),
        };
        let named = self.tensors.iter().filter_map(|named| match &named.source {
            Source::Whole(data) => data_type(data),
            Source::Tensor(tensor) => data_type(&tensor.data),
        });
        main.into_iter().chain(named)
    }
}
