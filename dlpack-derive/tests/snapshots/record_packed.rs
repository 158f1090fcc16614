// #[repr(C, packed)]
// struct Tick {
//     price: f64,
//     #[dlpack(nested)] at: [Place; 2]
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::Record for Tick {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = &[];
    const LAYOUT: &'static ::dlpack_core::__private::RecordLayout = {
        use ::dlpack_core::__private::UnsaidField as _;
        &::dlpack_core::__private::RecordLayout::of::<
            Self,
        >(
            &[
                ::dlpack_core::__private::FieldLayout::new::<
                    f64,
                >(
                    "price",
                    ::dlpack_core::__private::offset_of!(Self, price),
                    ::dlpack_core::__private::FieldType::of_element::<f64>(),
                ),
                ::dlpack_core::__private::FieldLayout::new::<
                    [Place; 2],
                >(
                    "at",
                    ::dlpack_core::__private::offset_of!(Self, at),
                    ::dlpack_core::__private::NestedField::<[Place; 2]>::TYPE,
                ),
            ],
        )
    };
    const COLUMNS: ::dlpack_core::__private::NamedFacts = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[]
    };
    fn column<'a>(
        __rows: &'a [Self],
        __name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'a> {
        match __name {
            _ => {
                ::dlpack_core::__private::unknown_tensor(
                    __name,
                    <Self as ::dlpack_core::Record>::NAMES,
                )
            }
        }
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::__private::RecordValue for Tick {
    const FIELDS: &'static ::dlpack_core::__private::RecordLayout = <Self as ::dlpack_core::Record>::LAYOUT;
    #[inline]
    fn read_fields(__from: &::dlpack_core::__private::FieldReader<'_>) -> Self {
        use ::dlpack_core::__private::UnsaidField as _;
        Self {
            price: ::dlpack_core::__private::ElementField::<
                f64,
            >::read(__from, ::dlpack_core::__private::offset_of!(Self, price)),
            at: __from
                .read_record::<
                    [Place; 2],
                >(::dlpack_core::__private::offset_of!(Self, at)),
        }
    }
    #[inline]
    fn write_fields(&self, __to: &mut ::dlpack_core::__private::FieldWriter<'_>) {
        use ::dlpack_core::__private::UnsaidField as _;
        ::dlpack_core::__private::ElementField::<
            f64,
        >::write(
            __to,
            ::dlpack_core::__private::offset_of!(Self, price),
            &{ self.price },
        );
        ::dlpack_core::__private::NestedField::<
            [Place; 2],
        >::write(__to, ::dlpack_core::__private::offset_of!(Self, at), &{ self.at });
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::__private::ArrayElement for Tick {
    type Access = ::dlpack_core::__private::FieldAccess;
}
