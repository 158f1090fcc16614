// #[dlpack(shape = [self.1, self.2])]
// struct Matrix(#[dlpack(data)] Vec<f64>, usize, usize);

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Matrix {
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
                    ::dlpack_core::__private::list_number(self.1),
                    ::dlpack_core::__private::list_number(self.2),
                ]),
            )
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Vec<f64>,
                    ::dlpack_core::__private::Inferred<_>,
                >(&self.0, ::dlpack_core::__private::Probe::<Vec<f64>>::NEW.__route()),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                    ::dlpack_core::__private::list_number(self.1),
                    ::dlpack_core::__private::list_number(self.2),
                ]),
            )
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Vec<f64>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.0,
                    ::dlpack_core::__private::Probe::<Vec<f64>>::NEW.__route(),
                ),
            )
    }
}
