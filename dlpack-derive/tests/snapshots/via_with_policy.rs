// #[dlpack(via = self.to_array(), legacy = "refuse")]
// struct Lazy { graph: Graph }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Lazy {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >(::dlpack_core::__private::expression_facts::<Self>())
        .share(|__this, __request, __other| ::dlpack_core::__private::share_expression(
            __this,
            ::dlpack_core::Parts::new().legacy_refuse(),
            __request,
            __other,
        ));
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_expression(
            self,
            ::dlpack_core::Parts::new().legacy_refuse(),
        )
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::__private::Expression for Lazy {
    #[inline]
    fn evaluate(
        &self,
    ) -> ::dlpack_core::__private::Result<
        impl ::dlpack_core::__private::ExpressionValue<'_>,
        ::dlpack_core::Error,
    > {
        use ::dlpack_core::__private::RejectedExpression as _;
        ::dlpack_core::__private::Ok(
            ::dlpack_core::__private::via_expression::<
                ::dlpack_core::__private::Inferred<_>,
            >(self.to_array())
                .into_value(),
        )
    }
}
