// #[dlpack_pymethods]
// #[pymethods]
// impl Image { #[new] fn new() -> Self { todo() } }

#[pymethods]
#[pyo3(crate = ":: dlpack_pyo3 :: __private :: methods")]
impl Image {
    /// The names of the tensors that are attributes of this class.
    #[classattr]
    pub const __dlpack_tensors__: ::dlpack_pyo3::__private::Attributes<Self> = {
        use ::dlpack_pyo3::__private::ClassDefaults as _;
        ::dlpack_pyo3::__private::Attributes::<
            Self,
        >::of(
            ::dlpack_pyo3::__private::Class::<Self>::TENSOR,
            ::dlpack_pyo3::__private::Class::<Self>::TENSORS,
            ::dlpack_pyo3::__private::Class::<Self>::IMPORT,
        )
    };
    #[new]
    fn new() -> Self {
        todo()
    }
}
