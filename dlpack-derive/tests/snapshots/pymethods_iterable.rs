// #[dlpack_pymethods(iterable)]
// #[pymethods]
// impl Image { fn __len__(&self) -> usize { 3 } }

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
            .iterable()
            .over(&["__array__", "__iter__", "__buffer__"])
    };
    #[pyo3(
        signature = (*, stream = None, max_version = None, dl_device = None, copy = None)
    )]
    fn __dlpack__(
        slf: &::dlpack_pyo3::__private::pyo3::Bound<'_, Self>,
        stream: ::dlpack_pyo3::__private::Option<::core::primitive::i64>,
        max_version: ::dlpack_pyo3::__private::Option<
            (::core::primitive::u32, ::core::primitive::u32),
        >,
        dl_device: ::dlpack_pyo3::__private::Option<
            (::core::primitive::i32, ::core::primitive::i32),
        >,
        copy: ::dlpack_pyo3::__private::Option<::core::primitive::bool>,
    ) -> ::dlpack_pyo3::__private::pyo3::PyResult<::dlpack_pyo3::__private::Capsule> {
        ::dlpack_pyo3::__private::placeholder(slf)
    }
    fn __dlpack_device__(
        slf: &::dlpack_pyo3::__private::pyo3::Bound<'_, Self>,
    ) -> ::dlpack_pyo3::__private::pyo3::PyResult<
        (::core::primitive::i32, ::core::primitive::i32),
    > {
        ::dlpack_pyo3::__private::placeholder(slf)
    }
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__(
        slf: &::dlpack_pyo3::__private::pyo3::Bound<'_, Self>,
        dtype: ::dlpack_pyo3::__private::Option<
            &::dlpack_pyo3::__private::pyo3::Bound<
                '_,
                ::dlpack_pyo3::__private::pyo3::PyAny,
            >,
        >,
        copy: ::dlpack_pyo3::__private::Option<::core::primitive::bool>,
    ) -> ::dlpack_pyo3::__private::pyo3::PyResult<
        ::dlpack_pyo3::__private::ArrayOf<Self>,
    > {
        ::dlpack_pyo3::__private::placeholder(slf)
    }
    fn __iter__<'py>(
        slf: &::dlpack_pyo3::__private::pyo3::Bound<'py, Self>,
    ) -> ::dlpack_pyo3::__private::pyo3::PyResult<
        ::dlpack_pyo3::__private::Tensors<'py>,
    > {
        ::dlpack_pyo3::__private::placeholder(slf)
    }
    #[pyo3(signature = (flags, /))]
    fn __buffer__(
        slf: &::dlpack_pyo3::__private::pyo3::Bound<'_, Self>,
        flags: ::core::primitive::i32,
    ) -> ::dlpack_pyo3::__private::pyo3::PyResult<::dlpack_pyo3::__private::Memoryview> {
        ::dlpack_pyo3::__private::placeholder(slf)
    }
    fn __len__(&self) -> usize {
        3
    }
}
