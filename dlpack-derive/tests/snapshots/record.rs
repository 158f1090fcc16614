// #[repr(C)]
// struct Trade {
//     #[doc = "In euros."] price: f64,
//     #[doc = concat!("not", "to be read")] size: u32,
//     r#type: u8,
//     /// Nobody's.
//     #[dlpack(skip)] pad: [u8; 3]
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::Record for Trade {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = &[
        "price",
        "size",
        "type",
    ];
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
                    ::dlpack_core::__private::ElementField::<f64>::TYPE,
                ),
                ::dlpack_core::__private::FieldLayout::new::<
                    u32,
                >(
                    "size",
                    ::dlpack_core::__private::offset_of!(Self, size),
                    ::dlpack_core::__private::ElementField::<u32>::TYPE,
                ),
                ::dlpack_core::__private::FieldLayout::new::<
                    u8,
                >(
                    "type",
                    ::dlpack_core::__private::offset_of!(Self, r#type),
                    ::dlpack_core::__private::ElementField::<u8>::TYPE,
                ),
            ],
        )
    };
    const COLUMNS: ::dlpack_core::__private::NamedFacts = {
        use ::dlpack_core::__private::ProbeDefaults as _;
        &[
            ("price", ::dlpack_core::__private::ElementOf::<f64>::FACTS),
            ("size", ::dlpack_core::__private::ElementOf::<u32>::FACTS),
            ("type", ::dlpack_core::__private::ElementOf::<u8>::FACTS),
        ]
    };
    const DOCS: ::dlpack_core::__private::NamedDocs = &[("price", "In euros.")];
    fn column<'a>(
        __rows: &'a [Self],
        __name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'a> {
        match __name {
            "price" => {
                ::dlpack_core::__private::record_column::<
                    Self,
                    f64,
                >(__rows, |__row| &__row.price)
            }
            "size" => {
                ::dlpack_core::__private::record_column::<
                    Self,
                    u32,
                >(__rows, |__row| &__row.size)
            }
            "type" => {
                ::dlpack_core::__private::record_column::<
                    Self,
                    u8,
                >(__rows, |__row| &__row.r#type)
            }
            _ => {
                ::dlpack_core::__private::unknown_tensor(
                    __name,
                    <Self as ::dlpack_core::Record>::NAMES,
                )
            }
        }
    }
}
