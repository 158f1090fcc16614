// #[dlpack(unsafe(data = self.storage.as_ptr(), len = self.storage.len()))]
// struct Tensor<const N: usize> {
//     storage: Storage,
//     #[dlpack(shape)] shape: [usize; N],
//     #[dlpack(strides)] strides: [usize; N],
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl<const N: usize> ::dlpack_core::DLPack for Tensor<N> {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Facts::HOST
            .rank(::dlpack_core::__private::RankOf::<[usize; N]>::RANK)
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<[usize; N]>(&self.shape).check()?)
            .strides(
                ::dlpack_core::__private::strides::<
                    [usize; N],
                    [usize; N],
                >(&self.strides)
                    .check()?,
            )
            .describe_placed(
                match (
                    ::dlpack_core::__private::address(self.storage.as_ptr()),
                    ::dlpack_core::__private::len(self.storage.len())?,
                ) {
                    (__data, __len) => {
                        unsafe { ::dlpack_core::__private::raw(__data, __len) }
                    }
                },
            )
    }
}
