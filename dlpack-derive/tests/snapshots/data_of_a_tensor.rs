// struct Scan {
//     #[dlpack(data)]
//     image: Image,
//     taken: u64,
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Scan {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
            use ::dlpack_core::__private::ProbeDefaults as _;
            ::dlpack_core::__private::Whole::<Image>::FACTS
        })
        .exclusive_as({
            use ::dlpack_core::__private::ProbeDefaults as _;
            ::dlpack_core::__private::Whole::<Image>::EXCLUSIVE
        })
        .share(|__this, __request, __other| ::dlpack_core::__private::share_field::<
            Image,
            ::dlpack_core::__private::Inferred<_>,
        >(
            &__this.image,
            __request,
            __other,
            ::dlpack_core::__private::Whole::<Image>::NEW.__route(),
        ));
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_data::<
            Image,
            ::dlpack_core::__private::Inferred<_>,
        >(&self.image, ::dlpack_core::__private::Whole::<Image>::NEW.__route())
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::__private::describe_field_mut::<
            Image,
            ::dlpack_core::__private::Inferred<_>,
        >(&mut self.image, ::dlpack_core::__private::Whole::<Image>::NEW.__route())
    }
}
