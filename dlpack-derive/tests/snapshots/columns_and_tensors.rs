// struct Series {
//     #[dlpack(tensor)] times: Vec<i64>,
//     #[dlpack(columns)] candles: Vec<Candle>,
//     #[dlpack(columns)] trades: Arc<[Trade]>,
// }

#[automatically_derived]
#[allow(deprecated)]
impl Series {
    /// Describes the tensor `times`.
    fn describe_times(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::whole::<
            Vec<i64>,
            _,
        >(&self.times, ::dlpack_core::__private::Whole::<Vec<i64>>::NEW.route())
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl ::dlpack_core::DLPackTensors for Series {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = &::dlpack_core::__private::names::<
        {
            ::dlpack_core::__private::count(
                &[
                    &["times"],
                    <::dlpack_core::__private::RecordOf<
                        Vec<Candle>,
                    > as ::dlpack_core::Record>::NAMES,
                    <::dlpack_core::__private::RecordOf<
                        Arc<[Trade]>,
                    > as ::dlpack_core::Record>::NAMES,
                ],
            )
        },
    >(
        &[
            &["times"],
            <::dlpack_core::__private::RecordOf<
                Vec<Candle>,
            > as ::dlpack_core::Record>::NAMES,
            <::dlpack_core::__private::RecordOf<
                Arc<[Trade]>,
            > as ::dlpack_core::Record>::NAMES,
        ],
    );
    fn describe_tensor(
        &self,
        name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'_> {
        match name {
            "times" => self.describe_times(),
            _ => {
                ::dlpack_core::__private::find(
                    name,
                    <Self as ::dlpack_core::DLPackTensors>::NAMES,
                    ::dlpack_core::__private::column::<Vec<Candle>>(&self.candles, name)
                        .or_else(|| ::dlpack_core::__private::column::<
                            Arc<[Trade]>,
                        >(&self.trades, name)),
                )
            }
        }
    }
}
