// struct Series { #[dlpack(columns)] candles: Vec<Candle>, name: String }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPackTensors for Series {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Table::<Vec<Candle>>::NAMES
    };
    const FACTS: &'static [::dlpack_core::__private::NamedFacts] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[::dlpack_core::__private::Table::<Vec<Candle>>::COLUMNS]
    };
    const DOCS: &'static [::dlpack_core::__private::NamedDocs] = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[&[], ::dlpack_core::__private::Table::<Vec<Candle>>::DOCS]
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
                Vec<Candle>,
            >(&self.candles, __name),
        )
    }
    const HAS_RECORDS: ::dlpack_core::__private::Bool = true;
    #[inline]
    fn records(
        &self,
    ) -> ::dlpack_core::__private::Option<::dlpack_core::__private::Records<'_>> {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Table::<Vec<Candle>>::records(&self.candles)
    }
}
