// struct Table { #[dlpack(data, readonly)] items: Vec<f32>, name: String }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Table {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS.read_only()
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .read_only()
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
}
