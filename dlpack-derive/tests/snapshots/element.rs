// #[repr(C)]
// struct Point { x: f32, y: f32, z: f32 }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::__private::Homogeneous for Point {
    type Scalar = <f32 as ::dlpack_core::Element>::Scalar;
    const TRAILING: ::dlpack_core::__private::Axes = ::dlpack_core::__private::Axes::of_fields(
        &[
            ::dlpack_core::__private::FieldDescription::axes(
                &::dlpack_core::__private::describe_element_field::<Self, f32>(),
            ),
            ::dlpack_core::__private::FieldDescription::axes(
                &::dlpack_core::__private::describe_element_field::<Self, f32>(),
            ),
            ::dlpack_core::__private::FieldDescription::axes(
                &::dlpack_core::__private::describe_element_field::<Self, f32>(),
            ),
        ],
    );
    #[inline]
    fn walk_fields<'fields>(
        &'fields self,
        __walk: ::dlpack_core::__private::WalkOf<'fields, Self>,
    ) -> ::dlpack_core::__private::WalkOf<'fields, Self> {
        let __walk = __walk
            .field(
                &self.x,
                ::dlpack_core::__private::describe_element_field::<Self, f32>(),
            );
        let __walk = __walk
            .field(
                &self.y,
                ::dlpack_core::__private::describe_element_field::<Self, f32>(),
            );
        let __walk = __walk
            .field(
                &self.z,
                ::dlpack_core::__private::describe_element_field::<Self, f32>(),
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
                &mut self.x,
                ::dlpack_core::__private::describe_element_field::<Self, f32>(),
            );
        let __walk = __walk
            .field(
                &mut self.y,
                ::dlpack_core::__private::describe_element_field::<Self, f32>(),
            );
        let __walk = __walk
            .field(
                &mut self.z,
                ::dlpack_core::__private::describe_element_field::<Self, f32>(),
            );
        __walk
    }
    #[inline]
    fn build_from(__source: &mut ::dlpack_core::__private::SourceOf<'_, Self>) -> Self {
        Self {
            x: __source
                .next(::dlpack_core::__private::describe_element_field::<Self, f32>()),
            y: __source
                .next(::dlpack_core::__private::describe_element_field::<Self, f32>()),
            z: __source
                .next(::dlpack_core::__private::describe_element_field::<Self, f32>()),
        }
    }
}
#[allow(deprecated)]
const _: () = ::dlpack_core::__private::no_padding::<Point>();
