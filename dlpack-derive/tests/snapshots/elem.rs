// #[dlpack(elem = Complex<f32>)]
// struct Signal { #[dlpack(data)] bytes: Vec<f32>, rate: f64 }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Signal {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS
            .elem(::dlpack_core::__private::ElementOf::<Complex<f32>>::FACTS)
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .elem::<Complex<f32>>()
            .describe_placed(
                ::dlpack_core::__private::lend_field::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.bytes,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .elem::<Complex<f32>>()
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.bytes,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
}
