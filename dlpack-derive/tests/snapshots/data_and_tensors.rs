// struct Batch {
//     #[dlpack(data, tensor(name = "obs"), tensor(name = "pairs", shape = [_, 2]))] items: Vec<f32>,
//     #[dlpack(tensor)] rewards: Vec<f32>,
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Batch {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.items,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.items,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
}
#[automatically_derived]
#[allow(deprecated, clippy::absolute_paths)]
impl Batch {
    /// Describes the tensor `obs`.
    #[inline]
    fn describe_obs(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_field::<
            Vec<f32>,
            ::dlpack_core::__private::Inferred<_>,
        >(&self.items, ::dlpack_core::__private::Whole::<Vec<f32>>::NEW.__route())
    }
    /// Describes the tensor `pairs`.
    #[inline]
    fn describe_pairs(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::None,
                    ::dlpack_core::__private::list_number(2_i64),
                ]),
            )
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.items,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
    /// Describes the tensor `rewards`.
    #[inline]
    fn describe_rewards(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_field::<
            Vec<f32>,
            ::dlpack_core::__private::Inferred<_>,
        >(&self.rewards, ::dlpack_core::__private::Whole::<Vec<f32>>::NEW.__route())
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPackTensors for Batch {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = &[
        "obs",
        "pairs",
        "rewards",
    ];
    const FACTS: &'static [::dlpack_core::__private::NamedFacts] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[
            &[
                ("obs", ::dlpack_core::__private::Whole::<Vec<f32>>::FACTS.shared()),
                (
                    "pairs",
                    ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS
                        .rank(::dlpack_core::__private::RankOf::<[i64; 2]>::RANK)
                        .shared(),
                ),
                ("rewards", ::dlpack_core::__private::Whole::<Vec<f32>>::FACTS.shared()),
            ],
        ]
    };
    #[inline]
    fn describe_tensor(
        &self,
        __name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'_> {
        match __name {
            "obs" => self.describe_obs(),
            "pairs" => self.describe_pairs(),
            "rewards" => self.describe_rewards(),
            _ => {
                ::dlpack_core::__private::unknown_tensor(
                    __name,
                    <Self as ::dlpack_core::DLPackTensors>::NAMES,
                )
            }
        }
    }
}
