// #[dlpack_pymethods(crate = crate::private::dl)]
// #[pymethods]
// impl Image { #![allow(unused)] const A: u8 = 1; }

#[pymethods]
impl Image {
    #![allow(unused)]
    /// The C functions by which DLPack's consumers reach the tensors of this class.
    #[classattr]
    pub const __dlpack_c_exchange_api__: crate::private::dl::Protocol<Self> = {
        use crate::private::dl::__private::Otherwise as _;
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
    const A: u8 = 1;
}
