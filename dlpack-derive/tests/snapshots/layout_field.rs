// struct Frame {
//     #[dlpack(data)] pixels: SharedBuffer<f32>,
//     #[dlpack(shape, strides)] layout: Layout<3>,
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Frame {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
            use ::dlpack_core::__private::ProbeDefaults as _;
            ::dlpack_core::__private::Probe::<SharedBuffer<f32>>::FACTS
                .rank(::dlpack_core::__private::RankOf::<Layout<3>>::RANK)
        })
        .lists(
            {
                use ::dlpack_core::__private::ProbeDefaults as _;
                ::dlpack_core::__private::LentLists::<Layout<3>>::LIE_THERE
            },
            |__this| {
                use ::dlpack_core::__private::ProbeDefaults as _;
                ::dlpack_core::__private::LentLists::<Layout<3>>::of(&__this.layout)
            },
        );
    #[inline(always)]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<Layout<3>>(&self.layout).check()?)
            .strides(
                ::dlpack_core::__private::strides::<Layout<3>, Layout<3>>(&self.layout)
                    .check()?,
            )
            .describe_placed(
                ::dlpack_core::__private::lend_field::<
                    SharedBuffer<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.pixels,
                    ::dlpack_core::__private::Probe::<SharedBuffer<f32>>::NEW.__route(),
                ),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<Layout<3>>(&self.layout).check()?)
            .strides(
                ::dlpack_core::__private::strides::<Layout<3>, Layout<3>>(&self.layout)
                    .check()?,
            )
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    SharedBuffer<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.pixels,
                    ::dlpack_core::__private::Probe::<SharedBuffer<f32>>::NEW.__route(),
                ),
            )
    }
}
