// #[dlpack(shape = [])]
// struct Loss([f32; 1]);

#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl ::dlpack_core::DLPack for Loss {
    const FACTS: ::dlpack_core::__private::Facts = {
        use ::dlpack_core::__private::NoBuffer as _;
        ::dlpack_core::__private::Probe::<[f32; 1]>::FACTS
    }
        .rank(::dlpack_core::__private::rank::<[i64; 0]>());
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::dims([]))
            .describe(
                ::dlpack_core::__private::data::<
                    [f32; 1],
                    _,
                >(&self.0, ::dlpack_core::__private::Probe::<[f32; 1]>::NEW.route()),
            )
    }
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::dims([]))
            .describe_mut(
                ::dlpack_core::__private::data_mut::<
                    [f32; 1],
                    _,
                >(&mut self.0, ::dlpack_core::__private::Probe::<[f32; 1]>::NEW.route()),
            )
    }
}
