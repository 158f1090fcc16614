// enum Audio {
//     Mono(Vec<f32>),
//     Both { rate: u32, #[dlpack(data)] samples: Vec<i16> },
//     #[dlpack(skip)] Empty,
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::FromDLPack for Audio {
    #[inline]
    fn from_dlpack(
        __tensor: ::dlpack_core::Managed,
    ) -> ::dlpack_core::__private::Result<Self, ::dlpack_core::Error> {
        use ::dlpack_core::__private::ProbeDefaults as _;
        if ::dlpack_core::__private::Accepts::<
            Vec<f32>,
        >::TENSOR(&::dlpack_core::Managed::view(&__tensor)) {
            return ::dlpack_core::__private::Ok(Self::Mono {
                0: ::dlpack_core::__private::import_field::<Vec<f32>>(__tensor)?,
            });
        }
        if ::dlpack_core::__private::Accepts::<
            Vec<i16>,
        >::TENSOR(&::dlpack_core::Managed::view(&__tensor)) {
            return ::dlpack_core::__private::Ok(Self::Both {
                rate: <u32 as ::dlpack_core::__private::Default>::default(),
                samples: ::dlpack_core::__private::import_field::<Vec<i16>>(__tensor)?,
            });
        }
        ::dlpack_core::__private::Err(
            ::dlpack_core::__private::no_variant(
                "Audio",
                &["Mono(Vec<f32>)", "Both(Vec<i16>)"],
                __tensor,
            ),
        )
    }
    #[inline]
    fn fits(__tensor: &::dlpack_core::TensorRef<'_>) -> ::dlpack_core::__private::Bool {
        use ::dlpack_core::__private::ProbeDefaults as _;
        ::dlpack_core::__private::Accepts::<Vec<f32>>::TENSOR(__tensor)
            || ::dlpack_core::__private::Accepts::<Vec<i16>>::TENSOR(__tensor)
    }
}
