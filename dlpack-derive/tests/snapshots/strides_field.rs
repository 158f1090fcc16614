// struct View {
//     #[dlpack(data)] items: Vec<f32>,
//     #[dlpack(shape)] shape: [i64; 3],
//     #[dlpack(strides)] strides: [i64; 2],
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for View {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS
            .rank(::dlpack_core::__private::RankOf::<[i64; 3]>::RANK)
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<[i64; 3]>(&self.shape).check()?)
            .strides(
                ::dlpack_core::__private::strides::<[i64; 2], [i64; 3]>(&self.strides)
                    .check()?,
            )
            .describe_placed(
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
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<[i64; 3]>(&self.shape).check()?)
            .strides(
                ::dlpack_core::__private::strides::<[i64; 2], [i64; 3]>(&self.strides)
                    .check()?,
            )
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
