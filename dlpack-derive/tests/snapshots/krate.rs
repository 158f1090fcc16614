// #[dlpack(crate = crate::private::dl, shape = [n])]
// struct Rooted { #[dlpack(data)] items: Vec<f32>, n: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl crate::private::dl::DLPack for Rooted {
    const FACTS: crate::private::dl::__private::Facts = {
        use crate::private::dl::__private::NoBuffer as _;
        crate::private::dl::__private::Probe::<Vec<f32>>::FACTS
    }
        .rank(crate::private::dl::__private::rank::<[i64; 1]>());
    fn describe(&self) -> crate::private::dl::__private::Described<'_> {
        crate::private::dl::Parts::new()
            .shape(
                crate::private::dl::__private::dims([
                    crate::private::dl::__private::extent(self.n)?,
                ]),
            )
            .describe(
                crate::private::dl::__private::data::<
                    Vec<f32>,
                    _,
                >(
                    &self.items,
                    crate::private::dl::__private::Probe::<Vec<f32>>::NEW.route(),
                ),
            )
    }
    fn describe_mut(&mut self) -> crate::private::dl::__private::Described<'_> {
        crate::private::dl::Parts::new()
            .shape(
                crate::private::dl::__private::dims([
                    crate::private::dl::__private::extent(self.n)?,
                ]),
            )
            .describe_mut(
                crate::private::dl::__private::data_mut::<
                    Vec<f32>,
                    _,
                >(
                    &mut self.items,
                    crate::private::dl::__private::Probe::<Vec<f32>>::NEW.route(),
                ),
            )
    }
}
