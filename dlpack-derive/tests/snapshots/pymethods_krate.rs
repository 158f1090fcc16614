// #[dlpack_pymethods(crate = crate::private::dl)]
// #[pymethods]
// impl Image { #![allow(unused)] const A: u8 = 1; }

#[pymethods]
impl Image {
    #![allow(unused)]
    /// The C functions by which DLPack's consumers reach the tensors of this class.
    #[classattr]
    pub const __dlpack_c_exchange_api__: crate::private::dl::Protocol<Self> = {
        use crate::private::dl::__private::{NoImport as _, NoTensors as _};
        crate::private::dl::Protocol::<
            Self,
        >::with(
            crate::private::dl::__private::Class::<Self>::TENSORS,
            crate::private::dl::__private::Class::<Self>::IMPORT,
        )
    };
    /// The names of the tensors that are attributes of this class.
    #[doc(hidden)]
    pub const __dlpack_tensors__: crate::private::dl::TensorNames<Self> = crate::private::dl::TensorNames::new();
    /// A capsule with this object's data, for one consumer; it is not copied unless asked for.
    ///
    /// stream: the consumer's stream, for data on a GPU; None elsewhere
    /// max_version: the newest (major, minor) of DLPack that the consumer understands
    /// dl_device: the (type, id) of the device on which the data is wanted
    /// copy: True for a copy, False for an error where one is needed
    #[pyo3(
        signature = (*, stream = None, max_version = None, dl_device = None, copy = None)
    )]
    fn __dlpack__<'py>(
        slf: &crate::private::dl::__private::pyo3::Bound<'py, Self>,
        stream: crate::private::dl::__private::Option<::core::primitive::i64>,
        max_version: crate::private::dl::__private::Option<
            (::core::primitive::u32, ::core::primitive::u32),
        >,
        dl_device: crate::private::dl::__private::Option<
            (::core::primitive::i32, ::core::primitive::i32),
        >,
        copy: crate::private::dl::__private::Option<::core::primitive::bool>,
    ) -> crate::private::dl::__private::pyo3::PyResult<
        crate::private::dl::__private::pyo3::Bound<
            'py,
            crate::private::dl::__private::pyo3::types::PyCapsule,
        >,
    > {
        crate::private::dl::__private::placeholder(slf)
    }
    /// The (type, id) of the device on which this object's data lies.
    fn __dlpack_device__(
        slf: &crate::private::dl::__private::pyo3::Bound<'_, Self>,
    ) -> crate::private::dl::__private::pyo3::PyResult<
        (::core::primitive::i32, ::core::primitive::i32),
    > {
        crate::private::dl::__private::placeholder(slf)
    }
    const A: u8 = 1;
}
