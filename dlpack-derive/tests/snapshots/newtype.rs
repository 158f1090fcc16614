// struct Image<const C: usize>(Tensor<3>);

#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl<const C: usize> ::dlpack_core::DLPack for Image<C> {
    const FACTS: ::dlpack_core::__private::Facts = {
        use ::dlpack_core::__private::NoDLPack as _;
        ::dlpack_core::__private::Whole::<Tensor<3>>::FACTS
    };
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::whole::<
            Tensor<3>,
            _,
        >(&self.0, ::dlpack_core::__private::Whole::<Tensor<3>>::NEW.route())
    }
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::whole_mut::<
            Tensor<3>,
            _,
        >(&mut self.0, ::dlpack_core::__private::Whole::<Tensor<3>>::NEW.route())
    }
    fn share(
        &self,
        request: &::dlpack_core::ExportRequest,
    ) -> ::dlpack_core::__private::Option<
        ::dlpack_core::__private::Result<::dlpack_core::Managed, ::dlpack_core::Error>,
    > {
        ::dlpack_core::__private::whole_share::<
            Tensor<3>,
            _,
        >(&self.0, request, ::dlpack_core::__private::Whole::<Tensor<3>>::NEW.route())
    }
}
