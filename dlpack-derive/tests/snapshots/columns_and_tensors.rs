// struct Series {
//     /// In seconds,
//     ///
//     ///  all of them.
//     #[dlpack(tensor)] times: Vec<i64>,
//     /// No tensor's.
//     #[dlpack(columns)] candles: Vec<Candle>,
//     #[dlpack(columns)] trades: Arc<[Trade]>,
// }

#[automatically_derived]
#[allow(deprecated, clippy::absolute_paths)]
impl Series {
    /// Describes the tensor `times`.
    #[inline]
    fn describe_times(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_field::<
            Vec<i64>,
            ::dlpack_core::__private::Inferred<_>,
        >(&self.times, ::dlpack_core::__private::Whole::<Vec<i64>>::NEW.__route())
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPackTensors for Series {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &::dlpack_core::__private::concat_names::<
            {
                ::dlpack_core::__private::count_names(
                    &[
                        &["times"],
                        ::dlpack_core::__private::Table::<Vec<Candle>>::NAMES,
                        ::dlpack_core::__private::Table::<Arc<[Trade]>>::NAMES,
                    ],
                )
            },
        >(
            &[
                &["times"],
                ::dlpack_core::__private::Table::<Vec<Candle>>::NAMES,
                ::dlpack_core::__private::Table::<Arc<[Trade]>>::NAMES,
            ],
        )
    };
    const FACTS: &'static [::dlpack_core::__private::NamedFacts] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[
            &[("times", ::dlpack_core::__private::Whole::<Vec<i64>>::FACTS.shared())],
            ::dlpack_core::__private::Table::<Vec<Candle>>::COLUMNS,
            ::dlpack_core::__private::Table::<Arc<[Trade]>>::COLUMNS,
        ]
    };
    const DOCS: &'static [::dlpack_core::__private::NamedDocs] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[
            &[("times", "In seconds,\n\n all of them.")],
            ::dlpack_core::__private::Table::<Vec<Candle>>::DOCS,
            ::dlpack_core::__private::Table::<Arc<[Trade]>>::DOCS,
        ]
    };
    #[inline]
    fn describe_tensor(
        &self,
        __name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'_> {
        match __name {
            "times" => self.describe_times(),
            _ => {
                ::dlpack_core::__private::found_or_unknown(
                    __name,
                    <Self as ::dlpack_core::DLPackTensors>::NAMES,
                    ::dlpack_core::__private::describe_column::<
                        Vec<Candle>,
                    >(&self.candles, __name)
                        .or_else(|| ::dlpack_core::__private::describe_column::<
                            Arc<[Trade]>,
                        >(&self.trades, __name)),
                )
            }
        }
    }
}
