// enum Audio {
//     Mono(Array1<f32>),
//     Multi { samples: Array2<f32> },
//     Both(u32, #[dlpack(data)] Array2<i16>),
//     #[dlpack(skip)] Empty,
//     #[dlpack(skip)] Off(u8),
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Audio {
    const EXTRAS: ::dlpack_core::__private::Extras<Self> = ::dlpack_core::__private::of_types::<
        Self,
    >({
            use ::dlpack_core::__private::ProbeDefaults as _;
            ::dlpack_core::__private::Facts::of_one(
                &[
                    ::dlpack_core::__private::Whole::<Array1<f32>>::FACTS,
                    ::dlpack_core::__private::Whole::<Array2<f32>>::FACTS,
                    ::dlpack_core::__private::Whole::<Array2<i16>>::FACTS,
                ],
            )
        })
        .share(|__this, __request, __other| match __this {
            Self::Mono { 0: __field } => {
                ::dlpack_core::__private::share_field::<
                    Array1<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    __field,
                    __request,
                    __other,
                    ::dlpack_core::__private::Whole::<Array1<f32>>::NEW.__route(),
                )
            }
            Self::Multi { samples: __field } => {
                ::dlpack_core::__private::share_field::<
                    Array2<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    __field,
                    __request,
                    __other,
                    ::dlpack_core::__private::Whole::<Array2<f32>>::NEW.__route(),
                )
            }
            Self::Both { 1: __field, .. } => {
                ::dlpack_core::__private::share_field::<
                    Array2<i16>,
                    ::dlpack_core::__private::Inferred<_>,
                >(
                    __field,
                    __request,
                    __other,
                    ::dlpack_core::__private::Whole::<Array2<i16>>::NEW.__route(),
                )
            }
            Self::Empty => ::dlpack_core::__private::None,
            Self::Off { .. } => ::dlpack_core::__private::None,
        });
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        match self {
            Self::Mono { 0: __field } => {
                ::dlpack_core::__private::describe_field::<
                    Array1<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(__field, ::dlpack_core::__private::Whole::<Array1<f32>>::NEW.__route())
            }
            Self::Multi { samples: __field } => {
                ::dlpack_core::__private::describe_field::<
                    Array2<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(__field, ::dlpack_core::__private::Whole::<Array2<f32>>::NEW.__route())
            }
            Self::Both { 1: __field, .. } => {
                ::dlpack_core::__private::describe_field::<
                    Array2<i16>,
                    ::dlpack_core::__private::Inferred<_>,
                >(__field, ::dlpack_core::__private::Whole::<Array2<i16>>::NEW.__route())
            }
            Self::Empty => ::dlpack_core::__private::reject_skipped("Audio", "Empty"),
            Self::Off { .. } => ::dlpack_core::__private::reject_skipped("Audio", "Off"),
        }
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_core::__private::Described<'_> {
        match self {
            Self::Mono { 0: __field } => {
                ::dlpack_core::__private::describe_field_mut::<
                    Array1<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(__field, ::dlpack_core::__private::Whole::<Array1<f32>>::NEW.__route())
            }
            Self::Multi { samples: __field } => {
                ::dlpack_core::__private::describe_field_mut::<
                    Array2<f32>,
                    ::dlpack_core::__private::Inferred<_>,
                >(__field, ::dlpack_core::__private::Whole::<Array2<f32>>::NEW.__route())
            }
            Self::Both { 1: __field, .. } => {
                ::dlpack_core::__private::describe_field_mut::<
                    Array2<i16>,
                    ::dlpack_core::__private::Inferred<_>,
                >(__field, ::dlpack_core::__private::Whole::<Array2<i16>>::NEW.__route())
            }
            Self::Empty => ::dlpack_core::__private::reject_skipped("Audio", "Empty"),
            Self::Off { .. } => ::dlpack_core::__private::reject_skipped("Audio", "Off"),
        }
    }
}
