// #[dlpack(shape = self.shape(), order = self.order(), dtype = DataType::F32, stream = self.queue())]
// struct Part { #[dlpack(data)] items: Pool, #[dlpack(offset)] first: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl ::dlpack_core::DLPack for Part {
    const FACTS: ::dlpack_core::__private::Facts = {
        use ::dlpack_core::__private::NoBuffer as _;
        ::dlpack_core::__private::Probe::<Pool>::FACTS
    }
        .rank(::dlpack_core::__private::rank::<::dlpack_core::__private::AnyRank>())
        .dynamic_dtype();
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<_>(&(self.shape()))?)
            .order(::dlpack_core::__private::order::<_>(&(self.order())))
            .offset(::dlpack_core::__private::offset::<usize>(&self.first)?)
            .dtype(::dlpack_core::__private::dtype::<_>(&(DataType::F32)))
            .stream(::dlpack_core::__private::stream::<_>(&(self.queue())))
            .describe(
                ::dlpack_core::__private::data::<
                    Pool,
                    _,
                >(&self.items, ::dlpack_core::__private::Probe::<Pool>::NEW.route()),
            )
    }
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<_>(&(self.shape()))?)
            .order(::dlpack_core::__private::order::<_>(&(self.order())))
            .offset(::dlpack_core::__private::offset::<usize>(&self.first)?)
            .dtype(::dlpack_core::__private::dtype::<_>(&(DataType::F32)))
            .stream(::dlpack_core::__private::stream::<_>(&(self.queue())))
            .describe_mut(
                ::dlpack_core::__private::data_mut::<
                    Pool,
                    _,
                >(&mut self.items, ::dlpack_core::__private::Probe::<Pool>::NEW.route()),
            )
    }
}
