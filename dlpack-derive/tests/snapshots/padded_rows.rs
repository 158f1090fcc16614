// #[dlpack(shape = [height, width, 3], byte_strides = [linesize, _, _])]
// struct Frame { #[dlpack(data)] data: Bytes, height: u32, width: u32, linesize: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Frame {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Bytes>::FACTS
            .rank(::dlpack_core::__private::RankOf::<[i64; 3]>::RANK)
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                        ::dlpack_core::__private::list_number(self.height),
                        ::dlpack_core::__private::list_number(self.width),
                        ::dlpack_core::__private::list_number(3_i64),
                    ])
                    .check()?,
            )
            .byte_strides(
                ::dlpack_core::__private::strides_list([
                        ::dlpack_core::__private::list_number(self.linesize),
                        ::dlpack_core::__private::None,
                        ::dlpack_core::__private::None,
                    ])
                    .check()?,
            )
            .describe_placed(
                ::dlpack_core::__private::lend_field::<
                    Bytes,
                    ::dlpack_core::__private::Inferred<_>,
                >(&self.data, ::dlpack_core::__private::Probe::<Bytes>::NEW.__route()),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(
                ::dlpack_core::__private::shape_list([
                        ::dlpack_core::__private::list_number(self.height),
                        ::dlpack_core::__private::list_number(self.width),
                        ::dlpack_core::__private::list_number(3_i64),
                    ])
                    .check()?,
            )
            .byte_strides(
                ::dlpack_core::__private::strides_list([
                        ::dlpack_core::__private::list_number(self.linesize),
                        ::dlpack_core::__private::None,
                        ::dlpack_core::__private::None,
                    ])
                    .check()?,
            )
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Bytes,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.data,
                    ::dlpack_core::__private::Probe::<Bytes>::NEW.__route(),
                ),
            )
    }
}
