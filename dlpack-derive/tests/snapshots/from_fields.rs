// struct Image {
//     #[dlpack(data)] pixels: Vec<f32>,
//     #[dlpack(shape)] dims: [usize; 3],
//     #[dlpack(device)] device: Device,
//     #[dlpack(strides)] strides: Vec<i64>,
//     #[dlpack(byte_offset)] start: usize,
//     label: String,
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::FromDLPack for Image {
    #[inline]
    fn from_dlpack(
        __tensor: ::dlpack_core::Managed,
    ) -> ::dlpack_core::__private::Result<Self, ::dlpack_core::Error> {
        let __import = ::dlpack_core::__private::Import::new::<Vec<f32>>(__tensor)?;
        ::dlpack_core::__private::Ok(Self {
            dims: ::dlpack_core::__private::Import::shape::<[usize; 3]>(&__import)?,
            device: ::dlpack_core::__private::Import::device::<Device>(&__import)?,
            strides: ::dlpack_core::__private::Import::strides::<Vec<i64>>(&__import)?,
            start: ::dlpack_core::__private::Import::byte_offset::<usize>(&__import)?,
            label: <String as ::dlpack_core::__private::Default>::default(),
            pixels: __import.into_data::<Vec<f32>>()?,
        })
    }
    #[inline]
    fn fits(__tensor: &::dlpack_core::TensorRef<'_>) -> ::dlpack_core::__private::Bool {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Accepts::<
            Vec<f32>,
        >::DATA(__tensor, ::dlpack_core::__private::RankOf::<[usize; 3]>::RANK)
    }
}
