// #[dlpack(shape = [self.1, self.2], order = "F", offset = self.3)]
// struct Matrix(#[dlpack(data)] Vec<f64>, usize, usize, usize);

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::FromDLPack for Matrix {
    #[inline]
    fn from_dlpack(
        tensor: ::dlpack_core::Managed,
    ) -> ::dlpack_core::__private::Result<Self, ::dlpack_core::Error> {
        let import = ::dlpack_core::__private::Import::new::<Vec<f64>>(tensor)?
            .column_major();
        import.check_rank(2)?;
        ::dlpack_core::__private::Ok(Self {
            1: import.axis_size::<usize>(0)?,
            2: import.axis_size::<usize>(1)?,
            3: import.offset::<usize>()?,
            0: import.into_data::<Vec<f64>>()?,
        })
    }
    #[inline]
    fn fits(tensor: &::dlpack_core::TensorRef<'_>) -> ::dlpack_core::__private::Bool {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Accepts::<
            Vec<f64>,
        >::DATA(tensor, ::dlpack_core::__private::Some(2))
    }
}
