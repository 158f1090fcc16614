// #[dlpack(shape = [])]
// struct Loss([f32; 1]);

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Loss {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<[f32; 1]>::FACTS
            .rank(::dlpack_core::__private::RankOf::<[i64; 0]>::RANK)
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape_list([]))
            .describe(
                ::dlpack_core::__private::lend_field::<
                    [f32; 1],
                    ::dlpack_core::__private::Inferred<_>,
                >(&self.0, ::dlpack_core::__private::Probe::<[f32; 1]>::NEW.__route()),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape_list([]))
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    [f32; 1],
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.0,
                    ::dlpack_core::__private::Probe::<[f32; 1]>::NEW.__route(),
                ),
            )
    }
}
