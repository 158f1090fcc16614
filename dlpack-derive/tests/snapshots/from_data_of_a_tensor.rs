// struct Scan {
//     #[dlpack(data)]
//     image: Image,
//     taken: u64,
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::FromDLPack for Scan {
    #[inline]
    fn from_dlpack(
        __tensor: ::dlpack_core::Managed,
    ) -> ::dlpack_core::__private::Result<Self, ::dlpack_core::Error> {
        ::dlpack_core::__private::Ok(Self {
            image: ::dlpack_core::__private::import_field::<Image>(__tensor)?,
            taken: <u64 as ::dlpack_core::__private::Default>::default(),
        })
    }
    #[inline]
    fn fits(__tensor: &::dlpack_core::TensorRef<'_>) -> ::dlpack_core::__private::Bool {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Accepts::<Image>::TENSOR(__tensor)
    }
}
