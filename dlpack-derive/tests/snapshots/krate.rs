// #[dlpack(crate = crate::private::dl, shape = [n])]
// struct Rooted { #[dlpack(data)] items: Vec<f32>, n: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths, unused_qualifications)]
impl crate::private::dl::DLPack for Rooted {
    const EXTRAS: crate::private::dl::__private::Extras<Self> = crate::private::dl::__private::of_types::<
        Self,
    >({
        use crate::private::dl::__private::ProbeDefaults as _;
        crate::private::dl::__private::Probe::<Vec<f32>>::FACTS
            .rank(crate::private::dl::__private::RankOf::<[i64; 1]>::RANK)
    });
    #[inline]
    fn describe(&self) -> crate::private::dl::__private::Described<'_> {
        crate::private::dl::Parts::new()
            .shape(
                crate::private::dl::__private::shape_list([
                    crate::private::dl::__private::list_number(self.n),
                ]),
            )
            .describe(
                crate::private::dl::__private::lend_field::<
                    Vec<f32>,
                    crate::private::dl::__private::Inferred<_>,
                >(
                    &self.items,
                    crate::private::dl::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
    #[inline]
    fn describe_mut(&mut self) -> crate::private::dl::__private::Described<'_> {
        crate::private::dl::Parts::new()
            .shape(
                crate::private::dl::__private::shape_list([
                    crate::private::dl::__private::list_number(self.n),
                ]),
            )
            .describe_mut(
                crate::private::dl::__private::lend_field_mut::<
                    Vec<f32>,
                    crate::private::dl::__private::Inferred<_>,
                >(
                    &mut self.items,
                    crate::private::dl::__private::Probe::<Vec<f32>>::NEW.__route(),
                ),
            )
    }
}
