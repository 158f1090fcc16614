// #[dlpack(strides = [row, _])]
// struct Rows { #[dlpack(data)] items: Vec<f32>, #[dlpack(shape)] sizes: Vec<usize>, row: isize }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::FromDLPack for Rows {
    #[inline]
    fn from_dlpack(
        __tensor: ::dlpack_core::Managed,
    ) -> ::dlpack_core::__private::Result<Self, ::dlpack_core::Error> {
        let __import = ::dlpack_core::__private::Import::new::<Vec<f32>>(__tensor)?;
        ::dlpack_core::__private::Import::check_rank(&__import, 2)?;
        ::dlpack_core::__private::Import::check_strides(
            &__import,
            &[
                ::dlpack_core::__private::Some(
                    ::dlpack_core::__private::Import::stride(&__import, 0)?,
                ),
                ::dlpack_core::__private::None,
            ],
        )?;
        ::dlpack_core::__private::Ok(Self {
            sizes: ::dlpack_core::__private::Import::shape::<Vec<usize>>(&__import)?,
            row: ::dlpack_core::__private::Import::stride::<isize>(&__import, 0)?,
            items: __import.into_data::<Vec<f32>>()?,
        })
    }
    #[inline]
    fn fits(__tensor: &::dlpack_core::TensorRef<'_>) -> ::dlpack_core::__private::Bool {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Accepts::<
            Vec<f32>,
        >::DATA(__tensor, ::dlpack_core::__private::RankOf::<Vec<usize>>::RANK)
    }
}
