// #[dlpack(legacy = "copy", release = "safe")]
// struct Weights { #[dlpack(data)] items: CudaSlice<f32>, epoch: u32 }

#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl ::dlpack_core::DLPack for Weights {
    const FACTS: ::dlpack_core::__private::Facts = {
        use ::dlpack_core::__private::NoBuffer as _;
        ::dlpack_core::__private::Probe::<CudaSlice<f32>>::FACTS
    };
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .describe(
                ::dlpack_core::__private::data::<
                    CudaSlice<f32>,
                    _,
                >(
                    &self.items,
                    ::dlpack_core::__private::Probe::<CudaSlice<f32>>::NEW.route(),
                ),
            )
    }
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .describe_mut(
                ::dlpack_core::__private::data_mut::<
                    CudaSlice<f32>,
                    _,
                >(
                    &mut self.items,
                    ::dlpack_core::__private::Probe::<CudaSlice<f32>>::NEW.route(),
                ),
            )
    }
}
