// struct Series { #[dlpack(data, owner, columns)] candles: Arc<[Candle]>, label: u8 }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Series {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
            use ::dlpack_core::__private::ProbeDefaults as _;
            ::dlpack_core::__private::Probe::<Arc<[Candle]>>::FACTS
        })
        .share(|__this, __request, __other| ::dlpack_core::__private::share_with_owner::<
            Arc<[Candle]>,
            ::dlpack_core::__private::Inferred<_>,
        >(
            &__this.candles,
            ::dlpack_core::DLPack::describe(__this),
            __request,
            __other,
            ::dlpack_core::__private::Probe::<Arc<[Candle]>>::NEW.__route(),
        ));
    #[inline(always)]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Arc<[Candle]>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &self.candles,
                    ::dlpack_core::__private::Probe::<Arc<[Candle]>>::NEW.__route(),
                ),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Arc<[Candle]>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.candles,
                    ::dlpack_core::__private::Probe::<Arc<[Candle]>>::NEW.__route(),
                ),
            )
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPackTensors for Series {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Table::<Arc<[Candle]>>::NAMES
    };
    const FACTS: &'static [::dlpack_core::__private::NamedFacts] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[::dlpack_core::__private::Table::<Arc<[Candle]>>::COLUMNS]
    };
    const DOCS: &'static [::dlpack_core::__private::NamedDocs] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[&[], ::dlpack_core::__private::Table::<Arc<[Candle]>>::DOCS]
    };
    #[inline]
    fn describe_tensor(
        &self,
        __name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::found_or_unknown(
            __name,
            <Self as ::dlpack_core::DLPackTensors>::NAMES,
            ::dlpack_core::__private::describe_column::<
                Arc<[Candle]>,
            >(&self.candles, __name),
        )
    }
}
