// #[dlpack_pymethods]
// #[pymethods]
// impl Batch { #[getter] fn own(&self) {} #[getter(r#type)] fn t(&self) {} #[getter] fn get_mask(&self) {} }

#[pymethods]
#[pyo3(crate = ":: dlpack_pyo3 :: __private :: methods")]
impl Batch {
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
            .over(&["rewards", "fn"])
    };
    ///One a step.
    #[getter(r#rewards)]
    fn __dlpack_get_rewards(
        slf: &::dlpack_pyo3::__private::pyo3::Bound<'_, Self>,
    ) -> ::dlpack_pyo3::__private::pyo3::PyResult<::dlpack_pyo3::Tensor> {
        ::dlpack_pyo3::__private::placeholder(slf)
    }
    #[setter(r#rewards)]
    fn __dlpack_set_rewards(
        slf: &::dlpack_pyo3::__private::pyo3::Bound<'_, Self>,
        _array: ::dlpack_pyo3::Tensor,
    ) -> ::dlpack_pyo3::__private::pyo3::PyResult<()> {
        ::dlpack_pyo3::__private::placeholder(slf)
    }
    #[getter(r#fn)]
    fn __dlpack_get_fn(
        slf: &::dlpack_pyo3::__private::pyo3::Bound<'_, Self>,
    ) -> ::dlpack_pyo3::__private::pyo3::PyResult<::dlpack_pyo3::Tensor> {
        ::dlpack_pyo3::__private::placeholder(slf)
    }
    #[getter]
    fn own(&self) {}
    #[getter(r#type)]
    fn t(&self) {}
    #[getter]
    fn get_mask(&self) {}
}
#[allow(unused_imports)]
const _: () = {
    use ::dlpack_pyo3::__private::ClassDefaults as _;
    ::dlpack_pyo3::__private::reject_hidden_tensor(
        ::dlpack_pyo3::__private::Class::<Batch>::TENSOR_NAMES,
        "own",
    );
};
#[allow(unused_imports)]
const _: () = {
    use ::dlpack_pyo3::__private::ClassDefaults as _;
    ::dlpack_pyo3::__private::reject_hidden_tensor(
        ::dlpack_pyo3::__private::Class::<Batch>::TENSOR_NAMES,
        "type",
    );
};
#[allow(unused_imports)]
const _: () = {
    use ::dlpack_pyo3::__private::ClassDefaults as _;
    ::dlpack_pyo3::__private::reject_hidden_tensor(
        ::dlpack_pyo3::__private::Class::<Batch>::TENSOR_NAMES,
        "mask",
    );
};
