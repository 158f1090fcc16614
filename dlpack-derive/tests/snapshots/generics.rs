// #[dlpack(bound = "E: Element, Vec<E>: Send")]
// struct Tensor<E: Copy + 'static, const N: usize = 2>
// where
//     E: Clone,
// {
//     #[dlpack(data)] items: Vec<E>,
//     #[dlpack(shape)] shape: [usize; N],
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl<E: Copy + 'static, const N: usize> ::dlpack_core::DLPack for Tensor<E, N>
where
    E: Clone,
    E: Element,
    Vec<E>: Send,
{
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Probe::<Vec<E>>::FACTS
            .rank(::dlpack_core::__private::RankOf::<[usize; N]>::RANK)
    });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<[usize; N]>(&self.shape))
            .describe(
                ::dlpack_core::__private::lend_field::<
                    Vec<E>,
                    ::dlpack_core::__private::Inferred<_>,
                >(&self.items, ::dlpack_core::__private::Probe::<Vec<E>>::NEW.__route()),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new()
            .shape(::dlpack_core::__private::shape::<[usize; N]>(&self.shape))
            .describe_mut(
                ::dlpack_core::__private::lend_field_mut::<
                    Vec<E>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    &mut self.items,
                    ::dlpack_core::__private::Probe::<Vec<E>>::NEW.__route(),
                ),
            )
    }
}
