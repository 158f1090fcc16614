// #[repr(transparent)]
// struct Pixel<T: Element>([T; 3]);

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl<T: Element> ::dlpack_core::__private::Homogeneous for Pixel<T> {
    type Scalar = <[T; 3] as ::dlpack_core::Element>::Scalar;
    const TRAILING: ::dlpack_core::__private::Axes = ::dlpack_core::__private::FieldDescription::axes(
        &::dlpack_core::__private::describe_element_field::<Self, [T; 3]>(),
    );
    #[inline]
    fn walk_fields<'fields>(
        &'fields self,
        __walk: ::dlpack_core::__private::WalkOf<'fields, Self>,
    ) -> ::dlpack_core::__private::WalkOf<'fields, Self> {
        let __walk = __walk
            .field(
                &self.0,
                ::dlpack_core::__private::describe_element_field::<Self, [T; 3]>(),
            );
        __walk
    }
    #[inline]
    fn walk_fields_mut<'fields>(
        &'fields mut self,
        __walk: ::dlpack_core::__private::WalkMutOf<'fields, Self>,
    ) -> ::dlpack_core::__private::WalkMutOf<'fields, Self> {
        let __walk = __walk
            .field(
                &mut self.0,
                ::dlpack_core::__private::describe_element_field::<Self, [T; 3]>(),
            );
        __walk
    }
    #[inline]
    fn build_from(__source: &mut ::dlpack_core::__private::SourceOf<'_, Self>) -> Self {
        Self {
            0: __source
                .next(::dlpack_core::__private::describe_element_field::<Self, [T; 3]>()),
        }
    }
}
