// struct Page {
//     #[dlpack(data)] kv: CudaSlice<bf16>,
//     #[dlpack(shape)] dims: (usize, usize, usize),
//     #[dlpack(stream)] s: Arc<CudaStream>,
//     #[dlpack(device)] device: Device,
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Page {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<CudaSlice<bf16>>::FACTS
            .rank(::dlpack_core::__private::RankOf::<(usize, usize, usize)>::RANK)
            .dynamic_device()
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<(usize, usize, usize)>(&self.dims))
            .device(::dlpack_core::__private::device::<Device>(&self.device))
            .stream(::dlpack_core::__private::stream::<Arc<CudaStream>>(&self.s))
            .describe(
                ::dlpack_core::__private::lend_field::<
                    CudaSlice<bf16>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.kv,
                    ::dlpack_core::__private::Probe::<CudaSlice<bf16>>::NEW.__route(),
                ),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<(usize, usize, usize)>(&self.dims))
            .device(::dlpack_core::__private::device::<Device>(&self.device))
            .stream(::dlpack_core::__private::stream::<Arc<CudaStream>>(&self.s))
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    CudaSlice<bf16>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.kv,
                    ::dlpack_core::__private::Probe::<CudaSlice<bf16>>::NEW.__route(),
                ),
            )
    }
}
