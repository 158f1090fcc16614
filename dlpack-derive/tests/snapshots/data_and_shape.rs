// struct Image {
//     #[dlpack(data)]
//     pixels: Vec<f32>,
//     #[dlpack(shape)]
//     dims: [usize; 3],
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Image {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS
            .rank(::dlpack_core::__private::RankOf::<[usize; 3]>::RANK)
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<[usize; 3]>(&self.dims))
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.pixels,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<[usize; 3]>(&self.dims))
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.pixels,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
}
