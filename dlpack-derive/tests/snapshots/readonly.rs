// struct Table { #[dlpack(data, readonly)] items: Vec<f32>, name: String }

#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl ::dlpack_core::DLPack for Table {
    const FACTS: ::dlpack_core::__private::Facts = {
        use ::dlpack_core::__private::NoBuffer as _;
        ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS
    }
        .read_only();
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .read_only()
            .describe(
                ::dlpack_core::__private::data::<
                    Vec<f32>,
                    _,
                >(&self.items, ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.route()),
            )
    }
}
