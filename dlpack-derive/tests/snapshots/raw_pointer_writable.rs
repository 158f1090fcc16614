// #[dlpack(unsafe(data = ptr, len = len), device = Device::cuda(0), writable)]
// struct Tensor { ptr: *mut f32, len: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Tensor {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
            use ::dlpack_core::__private::ProbeDefaults as _;
            ::dlpack_core::__private::Facts::HOST.dynamic_device().writable()
        })
        .exclusive();
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .device(::dlpack_core::__private::device::<_>(&(Device::cuda(0))))
            .writable()
            .describe(
                match (
                    ::dlpack_core::__private::address(self.ptr),
                    ::dlpack_core::__private::len(self.len)?,
                ) {
                    (__data, __len) => {
                        unsafe { ::dlpack_core::__private::raw(__data, __len) }
                    }
                },
            )
    }
}
