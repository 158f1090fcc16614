// struct Series { #[dlpack(data, owner, columns)] candles: Arc<[Candle]>, label: u8 }

#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl ::dlpack_core::DLPack for Series {
    const FACTS: ::dlpack_core::__private::Facts = {
        use ::dlpack_core::__private::NoBuffer as _;
        ::dlpack_core::__private::Probe::<Arc<[Candle]>>::FACTS
    };
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .describe(
                ::dlpack_core::__private::data::<
                    Arc<[Candle]>,
                    _,
                >(
                    &self.candles,
                    ::dlpack_core::__private::Probe::<Arc<[Candle]>>::NEW.route(),
                ),
            )
    }
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .describe_mut(
                ::dlpack_core::__private::data_mut::<
                    Arc<[Candle]>,
                    _,
                >(
                    &mut self.candles,
                    ::dlpack_core::__private::Probe::<Arc<[Candle]>>::NEW.route(),
                ),
            )
    }
    fn share(
        &self,
        request: &::dlpack_core::ExportRequest,
    ) -> ::dlpack_core::__private::Option<
        ::dlpack_core::__private::Result<::dlpack_core::Managed, ::dlpack_core::Error>,
    > {
        ::dlpack_core::__private::Some(
            ::dlpack_core::__private::share::<
                Arc<[Candle]>,
                _,
            >(
                &self.candles,
                ::dlpack_core::DLPack::describe(self),
                request,
                ::dlpack_core::__private::Probe::<Arc<[Candle]>>::NEW.route(),
            ),
        )
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl ::dlpack_core::DLPackTensors for Series {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = <::dlpack_core::__private::RecordOf<
        Arc<[Candle]>,
    > as ::dlpack_core::Record>::NAMES;
    fn describe_tensor(
        &self,
        name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::find(
            name,
            <Self as ::dlpack_core::DLPackTensors>::NAMES,
            ::dlpack_core::__private::column::<Arc<[Candle]>>(&self.candles, name),
        )
    }
}
