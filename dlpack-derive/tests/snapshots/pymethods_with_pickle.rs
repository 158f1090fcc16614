// #[dlpack_pymethods(pickle)]
// #[pymethods]
// impl Image {}

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
    /// What pickle writes: the bytes, their type and the shape.
    fn __reduce_ex__<'py>(
        slf: &::dlpack_pyo3::__private::pyo3::Bound<'py, Self>,
        protocol: ::core::primitive::i32,
    ) -> ::dlpack_pyo3::__private::pyo3::PyResult<
        ::dlpack_pyo3::__private::pyo3::Bound<'py, ::dlpack_pyo3::__private::pyo3::PyAny>,
    > {
        ::dlpack_pyo3::__private::reduce::<Self>(slf, protocol)
    }
    /// The object that was pickled.
    #[classmethod]
    fn __dlpack_restore__(
        _cls: &::dlpack_pyo3::__private::pyo3::Bound<
            '_,
            ::dlpack_pyo3::__private::pyo3::types::PyType,
        >,
        bytes: &::dlpack_pyo3::__private::pyo3::Bound<
            '_,
            ::dlpack_pyo3::__private::pyo3::PyAny,
        >,
        dtype: (
            ::core::primitive::u8,
            ::core::primitive::u8,
            ::core::primitive::u16,
            ::core::primitive::bool,
        ),
        shape: &::dlpack_pyo3::__private::pyo3::Bound<
            '_,
            ::dlpack_pyo3::__private::pyo3::PyAny,
        >,
    ) -> ::dlpack_pyo3::__private::pyo3::PyResult<Self> {
        use ::dlpack_pyo3::__private::ClassDefaults as _;
        ::dlpack_pyo3::__private::Class::<Self>::RESTORE(bytes, dtype, shape)
    }
}
