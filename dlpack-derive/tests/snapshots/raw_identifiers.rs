// #[dlpack(shape = [r#type, 2])]
// struct Raw { #[dlpack(data, tensor)] r#fn: Vec<f32>, r#type: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Raw {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS
            .rank(::dlpack_core::__private::RankOf::<[i64; 2]>::RANK)
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::list_number(self.r#type),
                    ::dlpack_core::__private::list_number(2_i64),
                ]),
            )
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(&self.r#fn, ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route()),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::list_number(self.r#type),
                    ::dlpack_core::__private::list_number(2_i64),
                ]),
            )
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.r#fn,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
}
#[automatically_derived]
#[allow(deprecated, clippy::absolute_paths)]
impl Raw {
    /// Describes the tensor `fn`.
    #[inline]
    fn describe_fn(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_field::<
            Vec<f32>,
            ::dlpack_core::__private::Inferred<_>,
        >(&self.r#fn, ::dlpack_core::__private::Whole::<Vec<f32>>::NEW.__route())
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPackTensors for Raw {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = &["fn"];
    const FACTS: &'static [::dlpack_core::__private::NamedFacts] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[&[("fn", ::dlpack_core::__private::Whole::<Vec<f32>>::FACTS.shared())]]
    };
    #[inline]
    fn describe_tensor(
        &self,
        __name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'_> {
        match __name {
            "fn" => self.describe_fn(),
            _ => {
                ::dlpack_core::__private::unknown_tensor(
                    __name,
                    <Self as ::dlpack_core::DLPackTensors>::NAMES,
                )
            }
        }
    }
}
