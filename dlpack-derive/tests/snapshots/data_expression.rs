// #[dlpack(data = &self.map[..len], shape = [len])]
// struct Mapped { map: Mmap, len: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Mapped {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::Unsaid as _;
        ::dlpack_core::__private::facts_given::<Self>()
            .rank(::dlpack_core::__private::RankOf::<[i64; 1]>::RANK)
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::described_given(
            self,
            ::dlpack_core::Parts::new()
                .shape(
                    ::dlpack_core::__private::extents([
                        ::dlpack_core::__private::number(self.len),
                    ]),
                ),
        )
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::__private::Expression for Mapped {
    #[inline]
    fn value(
        &self,
    ) -> ::dlpack_core::__private::Result<
        impl ::dlpack_core::__private::Given<'_>,
        ::dlpack_core::Error,
    > {
        use ::dlpack_core::__private::Unfit as _;
        ::dlpack_core::__private::Ok(
            ::dlpack_core::__private::data_given::<
                ::dlpack_core::__private::Inferred<_>,
            >(&self.map[..self.len])
                .given(),
        )
    }
}
