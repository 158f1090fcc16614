// #[dlpack(shape = self.shape(), order = self.order(), dtype = DataType::F32, stream = self.queue())]
// struct Part { #[dlpack(data)] items: Pool, #[dlpack(offset)] first: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Part {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Pool>::FACTS
            .rank(
                ::dlpack_core::__private::RankOf::<[::dlpack_core::__private::I64]>::RANK,
            )
            .dynamic_dtype()
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<_>(&(self.shape())))
            .order(::dlpack_core::__private::order::<_>(&(self.order())))
            .offset(::dlpack_core::__private::offset::<usize>(&self.first))
            .dtype(::dlpack_core::__private::dtype::<_>(&(DataType::F32)))
            .stream(::dlpack_core::__private::stream_expression::<_>(self.queue()))
            .describe_placed(
                ::dlpack_core::__private::lend_field::<
                    Pool,
                    ::dlpack_core::__private::Inferred<_>,
                >(&self.items, ::dlpack_core::__private::Probe::<Pool>::NEW.__route()),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<_>(&(self.shape())))
            .order(::dlpack_core::__private::order::<_>(&(self.order())))
            .offset(::dlpack_core::__private::offset::<usize>(&self.first))
            .dtype(::dlpack_core::__private::dtype::<_>(&(DataType::F32)))
            .stream(::dlpack_core::__private::stream_expression::<_>(self.queue()))
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Pool,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.items,
                    ::dlpack_core::__private::Probe::<Pool>::NEW.__route(),
                ),
            )
    }
}
