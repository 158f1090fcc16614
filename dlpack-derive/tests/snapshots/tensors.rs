// #[dlpack(tensor(name = "head", data = &self.obs[..n], shape = [n, 1], readonly))]
// pub struct Batch {
//     #[dlpack(tensor)] pub obs: Vec<f32>,
//     #[dlpack(tensor(name = "reward", shape = [_, n], elem = f32))] rewards: Vec<f32>,
//     #[dlpack(tensor)] pub(crate) mask: Option<Array2<bool>>,
//     #[dlpack(tensor(shape = [n]))] done: Option<Vec<bool>>,
//     n: usize,
// }

#[automatically_derived]
#[allow(deprecated, clippy::absolute_paths)]
impl Batch {
    /// Describes the tensor `head`.
    #[inline]
    pub fn describe_head(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::list_number(self.n),
                    ::dlpack_core::__private::list_number(1_i64),
                ]),
            )
            .read_only()
            .describe(
                ::dlpack_core::__private::lend_expression::<
                    ::dlpack_core::__private::Inferred<_>,
                >(&self.obs[..self.n]),
            )
    }
    /// Describes the tensor `obs`.
    #[inline]
    pub fn describe_obs(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_field::<
            Vec<f32>,
            ::dlpack_core::__private::Inferred<_>,
        >(&self.obs, ::dlpack_core::__private::Whole::<Vec<f32>>::NEW.__route())
    }
    /// Describes the tensor `reward`.
    #[inline]
    fn describe_reward(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::None,
                    ::dlpack_core::__private::list_number(self.n),
                ]),
            )
            .elem::<f32>()
            .describe_placed(
                ::dlpack_core::__private::lend_field::<
                    Vec<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.rewards,
                    ::dlpack_core::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
    /// Describes the tensor `mask`.
    #[inline]
    pub(crate) fn describe_mask(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_field::<
            Array2<bool>,
            ::dlpack_core::__private::Inferred<_>,
        >(
            ::dlpack_core::__private::require_present(&self.mask, "mask")?,
            ::dlpack_core::__private::Whole::<Array2<bool>>::NEW.__route(),
        )
    }
    /// Describes the tensor `done`.
    #[inline]
    fn describe_done(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::list_number(self.n),
                ]),
            )
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Vec<bool>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    ::dlpack_core::__private::require_present(&self.done, "done")?,
                    ::dlpack_core::__private::Probe::<Vec<bool>>::NEW.__route(),
                ),
            )
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPackTensors for Batch {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = &[
        "head",
        "obs",
        "reward",
        "mask",
        "done",
    ];
    const FACTS: &'static [::dlpack_core::__private::NamedFacts] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[
            &[
                (
                    "head",
                    ::dlpack_core::__private::Facts::UNKNOWN
                        .rank(::dlpack_core::__private::RankOf::<[i64; 2]>::RANK)
                        .read_only()
                        .shared(),
                ),
                ("obs", ::dlpack_core::__private::Whole::<Vec<f32>>::FACTS.shared()),
                (
                    "reward",
                    ::dlpack_core::__private::Probe::<Vec<f32>>::FACTS
                        .rank(::dlpack_core::__private::RankOf::<[i64; 2]>::RANK)
                        .elem(::dlpack_core::__private::ElementOf::<f32>::FACTS)
                        .shared(),
                ),
                (
                    "mask",
                    ::dlpack_core::__private::Whole::<Array2<bool>>::FACTS.shared(),
                ),
                (
                    "done",
                    ::dlpack_core::__private::Probe::<Vec<bool>>::FACTS
                        .rank(::dlpack_core::__private::RankOf::<[i64; 1]>::RANK)
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
            "head" => self.describe_head(),
            "obs" => self.describe_obs(),
            "reward" => self.describe_reward(),
            "mask" => self.describe_mask(),
            "done" => self.describe_done(),
            _ => {
                ::dlpack_core::__private::unknown_tensor(
                    __name,
                    <Self as ::dlpack_core::DLPackTensors>::NAMES,
                )
            }
        }
    }
}
