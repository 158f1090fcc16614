// #[dlpack(data = &self.map[header..])]
// struct Mapped { #[dlpack(owner)] map: Arc<Mmap>, header: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Mapped {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
            use ::dlpack_core::__private::ProbeDefaults as _;
            ::dlpack_core::__private::expression_facts::<Self>()
        })
        .share(|__this, __request, __other| ::dlpack_core::__private::share_with_owner::<
            Arc<Mmap>,
            ::dlpack_core::__private::Inferred<_>,
        >(
            &__this.map,
            ::dlpack_core::DLPack::describe(__this),
            __request,
            __other,
            ::dlpack_core::__private::Probe::<Arc<Mmap>>::NEW.__route(),
        ));
    #[inline(always)]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_expression(self, ::dlpack_core::Parts::new())
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::__private::Expression for Mapped {
    #[inline]
    fn evaluate(
        &self,
    ) -> ::dlpack_core::__private::Result<
        impl ::dlpack_core::__private::ExpressionValue<'_>,
        ::dlpack_core::Error,
    > {
        use ::dlpack_core::__private::RejectedExpression as _;
        ::dlpack_core::__private::Ok(
            ::dlpack_core::__private::data_expression::<
                ::dlpack_core::__private::Inferred<_>,
            >(&self.map[self.header..])
                .into_value(),
        )
    }
}
