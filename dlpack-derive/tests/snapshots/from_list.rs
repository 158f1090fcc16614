// #[dlpack(shape = [height, self.width, 3, height], byte_strides = [linesize, _, _, _])]
// struct Frame { #[dlpack(data)] data: Vec<u8>, height: u32, width: u32, linesize: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::FromDLPack for Frame {
    #[inline]
    fn from_dlpack(
        tensor: ::dlpack_core::Managed,
    ) -> ::dlpack_core::__private::Result<Self, ::dlpack_core::Error> {
        let import = ::dlpack_core::__private::Import::new::<Vec<u8>>(tensor)?;
        import.check_rank(4)?;
        import.check_size(2, ::dlpack_core::__private::constant_size(3))?;
        import.check_size(3, import.axis_size::<_>(0)?)?;
        ::dlpack_core::__private::Ok(Self {
            height: import.axis_size::<u32>(0)?,
            width: import.axis_size::<u32>(1)?,
            linesize: import.byte_stride::<usize>(0)?,
            data: import.into_data::<Vec<u8>>()?,
        })
    }
    #[inline]
    fn fits(tensor: &::dlpack_core::TensorRef<'_>) -> ::dlpack_core::__private::Bool {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Accepts::<
            Vec<u8>,
        >::DATA(tensor, ::dlpack_core::__private::Some(4))
            && ::dlpack_core::__private::has_size(
                tensor,
                2,
                ::dlpack_core::__private::constant_size(3),
            )
    }
}
