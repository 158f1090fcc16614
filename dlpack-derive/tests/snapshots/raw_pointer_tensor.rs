// #[dlpack(tensor(name = "kv", unsafe(data = ptr, len = 3), device = Device::cuda(0)))]
// struct Cache { ptr: *const f32 }

#[automatically_derived]
#[allow(deprecated, clippy::absolute_paths)]
impl Cache {
    /// Describes the tensor `kv`.
    #[inline]
    fn describe_kv(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .device(::dlpack_core::__private::device::<_>(&(Device::cuda(0))))
            .describe(
                match (
                    ::dlpack_core::__private::address(self.ptr),
                    ::dlpack_core::__private::len(3_i64)?,
                ) {
                    (__data, __len) => {
                        unsafe { ::dlpack_core::__private::raw(__data, __len) }
                    }
                },
            )
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPackTensors for Cache {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = &["kv"];
    const FACTS: &'static [::dlpack_core::__private::NamedFacts] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[&[("kv", ::dlpack_core::__private::Facts::HOST.dynamic_device().shared())]]
    };
    #[inline]
    fn describe_tensor(
        &self,
        __name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'_> {
        match __name {
            "kv" => self.describe_kv(),
            _ => {
                ::dlpack_core::__private::unknown_tensor(
                    __name,
                    <Self as ::dlpack_core::DLPackTensors>::NAMES,
                )
            }
        }
    }
}
