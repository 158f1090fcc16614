// #[dlpack_pymethods(crate = crate::private::dl)]
// #[pymethods]
// impl Image { #![allow(unused)] const A: u8 = 1; }

#[pymethods]
#[pyo3(crate = "crate :: private :: dl :: __private :: methods")]
impl Image {
    #![allow(unused)]
    /// The names of the tensors that are attributes of this class.
    #[classattr]
    pub const __dlpack_tensors__: crate::private::dl::__private::Attributes<Self> = {
        use crate::private::dl::__private::ClassDefaults as _;
        crate::private::dl::__private::Attributes::<
            Self,
        >::of(
            crate::private::dl::__private::Class::<Self>::TENSOR,
            crate::private::dl::__private::Class::<Self>::TENSORS,
            crate::private::dl::__private::Class::<Self>::IMPORT,
        )
    };
    const A: u8 = 1;
}
