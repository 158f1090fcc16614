// #[dlpack(data = &self.map[header..])]
// struct Mapped { #[dlpack(owner)] map: Arc<Mmap>, header: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl ::dlpack_core::DLPack for Mapped {
    const FACTS: ::dlpack_core::__private::Facts = ::dlpack_core::__private::Facts::UNKNOWN;
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .describe(::dlpack_core::__private::data_of(&self.map[self.header..]))
    }
    fn share(
        &self,
        request: &::dlpack_core::ExportRequest,
    ) -> ::dlpack_core::__private::Option<
        ::dlpack_core::__private::Result<::dlpack_core::Managed, ::dlpack_core::Error>,
    > {
        ::dlpack_core::__private::Some(
            ::dlpack_core::__private::share::<
                Arc<Mmap>,
                _,
            >(
                &self.map,
                ::dlpack_core::DLPack::describe(self),
                request,
                ::dlpack_core::__private::Probe::<Arc<Mmap>>::NEW.route(),
            ),
        )
    }
}
