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
        import.rank(4)?;
        import.expect(2, 3)?;
        import.expect(3, import.extent::<_>(0)?)?;
        ::dlpack_core::__private::Ok(Self {
            height: import.extent::<u32>(0)?,
            width: import.extent::<u32>(1)?,
            linesize: import.byte_stride::<usize>(0)?,
            data: import.data::<Vec<u8>>()?,
        })
    }
}
