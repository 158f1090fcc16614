// #[dlpack(strides = vec![self.step])]
// struct Every { #[dlpack(data)] items: Vec<f32>, step: i64 }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Every {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .strides(
                ::dlpack_core::__private::strides::<
                    _,
                    [::dlpack_core::__private::I64],
                >(&(vec![self.step]))
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
            .strides(
                ::dlpack_core::__private::strides::<
                    _,
                    [::dlpack_core::__private::I64],
                >(&(vec![self.step]))
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
