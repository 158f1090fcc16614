// struct Image<const C: usize>(Tensor<3>);

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl<const C: usize> ::dlpack_core::DLPack for Image<C> {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
            use ::dlpack_core::__private::ProbeDefaults as _;
            ::dlpack_core::__private::Whole::<Tensor<3>>::FACTS
        })
        .exclusive_as({
            use ::dlpack_core::__private::ProbeDefaults as _;
            ::dlpack_core::__private::Whole::<Tensor<3>>::EXCLUSIVE
        })
        .share(|__this, __request, __other| ::dlpack_core::__private::share_field::<
            Tensor<3>,
            ::dlpack_core::__private::Inferred<_>,
        >(
            &__this.0,
            __request,
            __other,
            ::dlpack_core::__private::Whole::<Tensor<3>>::NEW.__route(),
        ));
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_field::<
            Tensor<3>,
            ::dlpack_core::__private::Inferred<_>,
        >(&self.0, ::dlpack_core::__private::Whole::<Tensor<3>>::NEW.__route())
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_field_mut::<
            Tensor<3>,
            ::dlpack_core::__private::Inferred<_>,
        >(&mut self.0, ::dlpack_core::__private::Whole::<Tensor<3>>::NEW.__route())
    }
}
