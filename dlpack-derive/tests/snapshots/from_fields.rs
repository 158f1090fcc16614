// struct Image {
//     #[dlpack(data)] pixels: Vec<f32>,
//     #[dlpack(shape)] dims: [usize; 3],
//     #[dlpack(dtype)] kind: DataType,
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
        tensor: ::dlpack_core::Managed,
    ) -> ::dlpack_core::__private::Result<Self, ::dlpack_core::Error> {
        let import = ::dlpack_core::__private::Import::new::<Vec<f32>>(tensor)?;
        ::dlpack_core::__private::Ok(Self {
            dims: import.shape::<[usize; 3]>()?,
            kind: import.dtype::<DataType>()?,
            device: import.device::<Device>()?,
            strides: import.strides::<Vec<i64>>()?,
            start: import.byte_offset::<usize>()?,
            label: <String as ::dlpack_core::__private::Default>::default(),
            pixels: import.into_data::<Vec<f32>>()?,
        })
    }
    #[inline]
    fn fits(tensor: &::dlpack_core::TensorRef<'_>) -> ::dlpack_core::__private::Bool {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Accepts::<
            Vec<f32>,
        >::DATA(tensor, ::dlpack_core::__private::RankOf::<[usize; 3]>::RANK)
    }
}
