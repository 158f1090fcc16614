// #[dlpack(shape = [height, self.width, 3, height], byte_strides = [linesize, _, _, _])]
// struct Frame { #[dlpack(data)] data: Vec<u8>, height: u32, width: u32, linesize: usize }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::FromDLPack for Frame {
    #[inline]
    fn from_dlpack(
        __tensor: ::dlpack_core::Managed,
    ) -> ::dlpack_core::__private::Result<Self, ::dlpack_core::Error> {
        let __import = ::dlpack_core::__private::Import::new::<Vec<u8>>(__tensor)?;
        ::dlpack_core::__private::Import::check_rank(&__import, 4)?;
        ::dlpack_core::__private::Import::check_size(
            &__import,
            2,
            ::dlpack_core::__private::constant_size(3_i64),
        )?;
        ::dlpack_core::__private::Import::check_size(
            &__import,
            3,
            ::dlpack_core::__private::Import::axis_size::<_>(&__import, 0)?,
        )?;
        ::dlpack_core::__private::Import::check_byte_strides(
            &__import,
            &[
                ::dlpack_core::__private::Some(
                    ::dlpack_core::__private::Import::byte_stride(&__import, 0)?,
                ),
                ::dlpack_core::__private::None,
                ::dlpack_core::__private::None,
                ::dlpack_core::__private::None,
            ],
        )?;
        ::dlpack_core::__private::Ok(Self {
            height: ::dlpack_core::__private::Import::axis_size::<u32>(&__import, 0)?,
            width: ::dlpack_core::__private::Import::axis_size::<u32>(&__import, 1)?,
            linesize: ::dlpack_core::__private::Import::byte_stride::<
                usize,
            >(&__import, 0)?,
            data: __import.into_data::<Vec<u8>>()?,
        })
    }
    #[inline]
    fn fits(__tensor: &::dlpack_core::TensorRef<'_>) -> ::dlpack_core::__private::Bool {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Accepts::<
            Vec<u8>,
        >::DATA(__tensor, ::dlpack_core::__private::Some(4))
            && ::dlpack_core::__private::has_size(
                __tensor,
                2,
                ::dlpack_core::__private::constant_size(3_i64),
            )
    }
}
