// struct Observation { #[dlpack(data, writable)] items: Vec<f32>, #[dlpack(shape)] dims: [usize; 2] }

#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl ::dlpack_core::DLPack for Observation {
    const FACTS: ::dlpack_core::__private::Facts = {
        use ::dlpack_core::__private::NoBuffer as _;
        ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS
    }
        .rank(::dlpack_core::__private::rank::<[usize; 2]>())
        .writable();
    const EXCLUSIVE: bool = true;
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<[usize; 2]>(&self.dims)?)
            .writable()
            .describe(
                ::dlpack_core::__private::data::<
                    Vec<f32>,
                    _,
                >(&self.items, ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.route()),
            )
    }
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::writable::<
            Vec<f32>,
            _,
        >(::dlpack_core::__private::Probe::<Vec<f32>>::NEW.route());
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<[usize; 2]>(&self.dims)?)
            .writable()
            .describe_mut(
                ::dlpack_core::__private::data_mut::<
                    Vec<f32>,
                    _,
                >(
                    &mut self.items,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.route(),
                ),
            )
    }
}
