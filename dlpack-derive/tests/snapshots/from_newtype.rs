// struct Wrapper(Vec<f32>);

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::FromDLPack for Wrapper {
    #[inline]
    fn from_dlpack(
        __tensor: ::dlpack_core::Managed,
    ) -> ::dlpack_core::__private::Result<Self, ::dlpack_core::Error> {
        ::dlpack_core::__private::Ok(Self {
            0: ::dlpack_core::__private::import_field::<Vec<f32>>(__tensor)?,
        })
    }
    #[inline]
    fn fits(__tensor: &::dlpack_core::TensorRef<'_>) -> ::dlpack_core::__private::Bool {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Accepts::<Vec<f32>>::TENSOR(__tensor)
    }
}
