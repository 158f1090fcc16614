// struct Observation { #[dlpack(data, writable)] items: Vec<f32>, #[dlpack(shape)] dims: [usize; 2] }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Observation {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
            use ::dlpack_core::__private::ProbeDefaults as _;
            ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS
                .rank(::dlpack_core::__private::RankOf::<[usize; 2]>::RANK)
                .writable()
        })
        .exclusive();
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<[usize; 2]>(&self.dims))
            .writable()
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.items,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::require_writable::<
            Vec<f32>,
            ::dlpack_core::__private::Inferred<_>,
        >(::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route());
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<[usize; 2]>(&self.dims))
            .writable()
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.items,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
}
