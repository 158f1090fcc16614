// #[dlpack(shape = [self.1, self.2], order = "F", offset = self.3)]
// struct Matrix(#[dlpack(data)] Vec<f64>, usize, usize, usize);

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::FromDLPack for Matrix {
    #[inline]
    fn from_dlpack(
        __tensor: ::dlpack_core::Managed,
    ) -> ::dlpack_core::__private::Result<Self, ::dlpack_core::Error> {
        let __import = ::dlpack_core::__private::Import::new::<Vec<f64>>(__tensor)?
            .column_major();
        ::dlpack_core::__private::Import::check_rank(&__import, 2)?;
        ::dlpack_core::__private::Ok(Self {
            1: ::dlpack_core::__private::Import::axis_size::<usize>(&__import, 0)?,
            2: ::dlpack_core::__private::Import::axis_size::<usize>(&__import, 1)?,
            3: ::dlpack_core::__private::Import::offset::<usize>(&__import)?,
            0: __import.into_data::<Vec<f64>>()?,
        })
    }
    #[inline]
    fn fits(__tensor: &::dlpack_core::TensorRef<'_>) -> ::dlpack_core::__private::Bool {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Accepts::<
            Vec<f64>,
        >::DATA(__tensor, ::dlpack_core::__private::Some(2))
    }
}
