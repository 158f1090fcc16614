// #[repr(C, packed)]
// struct Tick {
//     price: f64,
//     #[dlpack(nested)] at: [Place; 2]
// }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::Record for Tick {
    const NAMES: &'static [&'static ::dlpack_core::__private::Str] = &[];
    const LAYOUT: &'static ::dlpack_core::__private::RecordLayout = &::dlpack_core::__private::RecordLayout::of::<
        Self,
    >(
        &[
            ::dlpack_core::__private::FieldLayout::of_element::<
                f64,
            >("price", ::dlpack_core::__private::offset_of!(Self, price)),
            ::dlpack_core::__private::FieldLayout::of_record::<
                [Place; 2],
            >(
                "at",
                ::dlpack_core::__private::offset_of!(Self, at),
                <[Place; 2] as ::dlpack_core::__private::Nested>::NESTED,
            ),
        ],
    );
    const COLUMNS: ::dlpack_core::__private::NamedFacts = {
        use ::dlpack_core::__private::Unsaid as _;
        &[]
    };
    fn column<'a>(
        rows: &'a [Self],
        name: &::dlpack_core::__private::Str,
    ) -> ::dlpack_core::__private::Described<'a> {
        match name {
            _ => {
                ::dlpack_core::__private::unknown_tensor(
                    name,
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
    fn read_fields(from: &::dlpack_core::__private::FieldReader<'_>) -> Self {
        Self {
            price: from
                .element::<f64>(::dlpack_core::__private::offset_of!(Self, price)),
            at: from.record::<[Place; 2]>(::dlpack_core::__private::offset_of!(Self, at)),
        }
    }
    #[inline]
    fn write_fields(&self, to: &mut ::dlpack_core::__private::FieldWriter<'_>) {
        to.element::<
                f64,
            >(::dlpack_core::__private::offset_of!(Self, price), &{ self.price });
        to.record::<
                [Place; 2],
            >(::dlpack_core::__private::offset_of!(Self, at), &{ self.at });
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::__private::ArrayElement for Tick {
    type Access = ::dlpack_core::__private::FieldAccess;
}
