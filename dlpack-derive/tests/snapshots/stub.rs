// #[dlpack(crate = ::dl)] struct Image { #[dlpack(tensor, dat)] pixels: Vec<f32> }

::core::compile_error! {
    "unknown dlpack field attribute `dat`, expected one of `data`, `shape`, `strides`, `byte_strides`, `order`, `offset`, `byte_offset`, `dtype`, `device`, `stream`, `owner`, `readonly`, `writable`, `tensor`, `columns`; did you mean `data`?"
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths, unused_qualifications)]
impl ::dl::DLPack for Image {
    fn describe(&self) -> ::dl::__private::Described<'_> {
        ::dl::__private::unreachable_stub()
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths, unused_qualifications)]
impl ::dl::DLPackTensors for Image {
    const NAMES: &'static [&'static ::dl::__private::Str] = &[];
    fn describe_tensor(
        &self,
        _: &::dl::__private::Str,
    ) -> ::dl::__private::Described<'_> {
        ::dl::__private::unreachable_stub()
    }
}

::core::compile_error! {
    "unknown dlpack field attribute `dat`, expected one of `data`, `shape`, `strides`, `byte_strides`, `order`, `offset`, `byte_offset`, `dtype`, `device`, `stream`, `owner`, `readonly`, `writable`, `tensor`, `columns`; did you mean `data`?"
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths, unused_qualifications)]
impl ::dl::FromDLPack for Image {
    fn from_dlpack(_: ::dl::Managed) -> ::dl::__private::Result<Self, ::dl::Error> {
        ::dl::__private::unreachable_stub()
    }
}

::core::compile_error! {
    "`tensor` has no effect on an element or a record, expected one of `skip`, `nested`"
}
::core::compile_error! {
    "unknown dlpack field attribute `dat`, expected one of `skip`, `nested`"
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths, unused_qualifications)]
impl ::dl::Record for Image {
    const NAMES: &'static [&'static ::dl::__private::Str] = &[];
    fn column<'a>(
        _: &'a [Self],
        _: &::dl::__private::Str,
    ) -> ::dl::__private::Described<'a> {
        ::dl::__private::unreachable_stub()
    }
}
