// #[dlpack(shape = [_, dim])]
// struct Vectors { #[dlpack(data, owner)] values: ScalarBuffer<f32>, dim: i32 }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Vectors {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
            use ::dlpack_core::__private::ProbeDefaults as _;
            ::dlpack_core::__private::Probe::<ScalarBuffer<f32>>::FACTS
                .rank(::dlpack_core::__private::RankOf::<[i64; 2]>::RANK)
        })
        .share(|__this, __request, __other| ::dlpack_core::__private::share_with_owner::<
            ScalarBuffer<f32>,
            ::dlpack_core::__private::Inferred<_>,
        >(
            &__this.values,
            ::dlpack_core::DLPack::describe(__this),
            __request,
            __other,
            ::dlpack_core::__private::Probe::<ScalarBuffer<f32>>::NEW.__route(),
        ));
    #[inline(always)]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::None,
                    ::dlpack_core::__private::list_number(self.dim),
                ]),
            )
            .describe(
                ::dlpack_core::__private::lend_field::<
                    ScalarBuffer<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.values,
                    ::dlpack_core::__private::Probe::<ScalarBuffer<f32>>::NEW.__route(),
                ),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::None,
                    ::dlpack_core::__private::list_number(self.dim),
                ]),
            )
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    ScalarBuffer<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.values,
                    ::dlpack_core::__private::Probe::<ScalarBuffer<f32>>::NEW.__route(),
                ),
            )
    }
}
