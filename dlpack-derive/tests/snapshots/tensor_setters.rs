// struct Batch {
//     #[dlpack(tensor(set, shape = [n, _], order = "F"))] mask: Option<Vec<bool>>,
//     n: usize,
// }

#[automatically_derived]
#[allow(deprecated, clippy::absolute_paths)]
impl Batch {
    /// Describes the tensor `mask`.
    #[inline]
    fn describe_mask(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::list_number(self.n),
                    ::dlpack_core::__private::None,
                ]),
            )
            .column_major()
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Vec<bool>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    ::dlpack_core::__private::require_present(&self.mask, "mask")?,
                    ::dlpack_core::__private::Probe::<Vec<bool>>::NEW.__route(),
                ),
            )
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPackTensors for Batch {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = &["mask"];
    const FACTS: &'static [::dlpack_core::__private::NamedFacts] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[
            &[
                (
                    "mask",
                    ::dlpack_core::__private::Probe::<Vec<bool>>::FACTS
                        .rank(::dlpack_core::__private::RankOf::<[i64; 2]>::RANK)
                        .shared(),
                ),
            ],
        ]
    };
    #[inline]
    fn describe_tensor(
        &self,
        __name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'_> {
        match __name {
            "mask" => self.describe_mask(),
            _ => {
                ::dlpack_core::__private::unknown_tensor(
                    __name,
                    <Self as ::dlpack_core::DLPackTensors>::NAMES,
                )
            }
        }
    }
    const SETTABLE: &'static [&'static ::dlpack_core::__private::Str] = &["mask"];
    fn set_tensor(
        &mut self,
        __name: &::dlpack_core::__private::Str,
        __tensor: ::dlpack_core::__private::Option<::dlpack_core::Managed>,
    ) -> ::dlpack_core::__private::Result<(), ::dlpack_core::Error> {
        match __name {
            "mask" => {
                self.mask = match __tensor {
                    ::dlpack_core::__private::Some(__tensor) => {
                        ::dlpack_core::__private::Some(
                            ::dlpack_core::__private::import_column_major::<
                                Vec<bool>,
                            >({
                                use ::dlpack_core::__private::ProbeDefaults as _;
                                ::dlpack_core::__private::check_assigned(
                                    __tensor,
                                    ::dlpack_core::__private::Probe::<Vec<bool>>::FACTS
                                        .rank(::dlpack_core::__private::RankOf::<[i64; 2]>::RANK),
                                    ::dlpack_core::__private::Some(
                                        ::dlpack_core::__private::shape_list([
                                            ::dlpack_core::__private::list_number(self.n),
                                            ::dlpack_core::__private::None,
                                        ]),
                                    ),
                                )?
                            })?,
                        )
                    }
                    ::dlpack_core::__private::None => ::dlpack_core::__private::None,
                };
            }
            _ => {
                return ::dlpack_core::__private::unknown_tensor(
                        __name,
                        <Self as ::dlpack_core::DLPackTensors>::SETTABLE,
                    )
                    .map(|_| ());
            }
        }
        ::dlpack_core::__private::Ok(())
    }
}
