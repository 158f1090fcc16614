// #[dlpack_pymethods(tensors)]
// #[pymethods]
// impl Batch {}

#[pymethods]
impl Batch {
    /// The C functions by which DLPack's consumers reach the tensors of this class.
    #[doc(hidden)]
    pub const __dlpack_c_exchange_api__: ::dlpack_pyo3::Protocol<Self> = {
        use ::dlpack_pyo3::__private::Otherwise as _;
        ::dlpack_pyo3::Protocol::<
            Self,
        >::with(
            ::dlpack_pyo3::__private::Class::<Self>::TENSORS,
            ::dlpack_pyo3::__private::Class::<Self>::IMPORT,
        )
    };
    /// The names of the tensors that are attributes of this class.
    #[classattr]
    pub const __dlpack_tensors__: ::dlpack_pyo3::TensorNames<Self> = ::dlpack_pyo3::TensorNames::new();
}
