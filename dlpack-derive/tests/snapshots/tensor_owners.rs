// struct Batch {
//     #[dlpack(tensor(owner))] state: SharedBuffer<f32>,
//     #[dlpack(tensor, owner)] mask: Option<Arc<Bytes>>,
// }

#[automatically_derived]
#[allow(deprecated, clippy::absolute_paths)]
impl Batch {
    /// Describes the tensor `state`.
    #[inline]
    fn describe_state(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .describe(
                ::dlpack_core::__private::lend_field::<
                    SharedBuffer<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.state,
                    ::dlpack_core::__private::Probe::<SharedBuffer<f32>>::NEW.__route(),
                ),
            )
    }
    /// Describes the tensor `mask`.
    #[inline]
    fn describe_mask(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Arc<Bytes>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    ::dlpack_core::__private::require_present(&self.mask, "mask")?,
                    ::dlpack_core::__private::Probe::<Arc<Bytes>>::NEW.__route(),
                ),
            )
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPackTensors for Batch {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = &["state", "mask"];
    const FACTS: &'static [::dlpack_core::__private::NamedFacts] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[
            &[
                (
                    "state",
                    ::dlpack_core::__private::Probe::<SharedBuffer<f32>>::FACTS.shared(),
                ),
                ("mask", ::dlpack_core::__private::Probe::<Arc<Bytes>>::FACTS.shared()),
            ],
        ]
    };
    #[inline]
    fn describe_tensor(
        &self,
        __name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'_> {
        match __name {
            "state" => self.describe_state(),
            "mask" => self.describe_mask(),
            _ => {
                ::dlpack_core::__private::unknown_tensor(
                    __name,
                    <Self as ::dlpack_core::DLPackTensors>::NAMES,
                )
            }
        }
    }
    const SHARED: &'static [&'static ::dlpack_core::__private::Str] = &["state", "mask"];
    fn share_tensor(
        &self,
        __name: &::dlpack_core::__private::Str,
        __request: ::dlpack_core::__private::Option<&::dlpack_core::ExportRequest>,
    ) -> ::dlpack_core::__private::SharedTensor {
        match __name {
            "state" => {
                ::dlpack_core::__private::Ok(
                    ::dlpack_core::__private::Some(
                        ::dlpack_core::__private::export_with_owner::<
                            SharedBuffer<f32>,
                            ::dlpack_core::__private::Inferred<_>,
                        >(
                            &self.state,
                            self.describe_state(),
                            __request,
                            ::dlpack_core::__private::Probe::<SharedBuffer<f32>>::NEW
                                .__route(),
                        )?,
                    ),
                )
            }
            "mask" => {
                ::dlpack_core::__private::Ok(
                    ::dlpack_core::__private::Some(
                        ::dlpack_core::__private::export_with_owner::<
                            Arc<Bytes>,
                            ::dlpack_core::__private::Inferred<_>,
                        >(
                            ::dlpack_core::__private::require_present(
                                &self.mask,
                                "mask",
                            )?,
                            self.describe_mask(),
                            __request,
                            ::dlpack_core::__private::Probe::<Arc<Bytes>>::NEW.__route(),
                        )?,
                    ),
                )
            }
            _ => ::dlpack_core::__private::Ok(::dlpack_core::__private::None),
        }
    }
}
