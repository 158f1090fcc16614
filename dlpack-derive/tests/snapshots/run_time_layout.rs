// #[dlpack(byte_offset = header + 8, device = Device::CPU)]
// struct File {
//     #[dlpack(data)] map: Mmap,
//     header: usize,
//     #[dlpack(dtype)] kind: Kind,
//     #[dlpack(order)] order: Layout,
//     #[dlpack(shape)] shape: Vec<u64>,
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for File {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Mmap>::FACTS
            .rank(::dlpack_core::__private::RankOf::<Vec<u64>>::RANK)
            .dynamic_dtype()
            .dynamic_device()
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<Vec<u64>>(&self.shape))
            .order(::dlpack_core::__private::order::<Layout>(&self.order))
            .byte_offset(::dlpack_core::__private::offset::<_>(&(self.header + 8)))
            .dtype(::dlpack_core::__private::dtype::<Kind>(&self.kind))
            .device(::dlpack_core::__private::device::<_>(&(Device::CPU)))
            .describe_placed(
                ::dlpack_core::__private::lend_field::<
                    Mmap,
                    ::dlpack_core::__private::Inferred<_>,
                >(&self.map, ::dlpack_core::__private::Probe::<Mmap>::NEW.__route()),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<Vec<u64>>(&self.shape))
            .order(::dlpack_core::__private::order::<Layout>(&self.order))
            .byte_offset(::dlpack_core::__private::offset::<_>(&(self.header + 8)))
            .dtype(::dlpack_core::__private::dtype::<Kind>(&self.kind))
            .device(::dlpack_core::__private::device::<_>(&(Device::CPU)))
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Mmap,
                    ::dlpack_core::__private::Inferred<_>,
                >(&mut self.map, ::dlpack_core::__private::Probe::<Mmap>::NEW.__route()),
            )
    }
}
