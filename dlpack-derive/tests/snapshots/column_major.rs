// #[dlpack(shape = [nrows, ncols], order = "F")]
// struct ColMajor { #[dlpack(data)] v: Vec<f64>, nrows: usize, ncols: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for ColMajor {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Vec<f64>>::FACTS
            .rank(::dlpack_core::__private::RankOf::<[i64; 2]>::RANK)
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::list_number(self.nrows),
                    ::dlpack_core::__private::list_number(self.ncols),
                ]),
            )
            .column_major()
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Vec<f64>,
                    ::dlpack_core::__private::Inferred<_>,
                >(&self.v, ::dlpack_core::__private::Probe::<Vec<f64>>::NEW.__route()),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::list_number(self.nrows),
                    ::dlpack_core::__private::list_number(self.ncols),
                ]),
            )
            .column_major()
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Vec<f64>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.v,
                    ::dlpack_core::__private::Probe::<Vec<f64>>::NEW.__route(),
                ),
            )
    }
}
