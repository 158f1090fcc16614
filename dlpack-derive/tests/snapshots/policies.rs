// #[dlpack(legacy = "refuse", release = "immediate")]
// struct Weights { #[dlpack(data)] items: CudaSlice<f32>, epoch: u32 }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Weights {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<CudaSlice<f32>>::FACTS
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .legacy_refuse()
            .release_immediate()
            .describe(
                ::dlpack_core::__private::lend_field::<
                    CudaSlice<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.items,
                    ::dlpack_core::__private::Probe::<CudaSlice<f32>>::NEW.__route(),
                ),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .legacy_refuse()
            .release_immediate()
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    CudaSlice<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.items,
                    ::dlpack_core::__private::Probe::<CudaSlice<f32>>::NEW.__route(),
                ),
            )
    }
}
