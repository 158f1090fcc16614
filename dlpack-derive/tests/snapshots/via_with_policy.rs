// #[dlpack(via = self.to_array(), legacy = "refuse")]
// struct Lazy { graph: Graph }

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_core::DLPack for Lazy {
    #[inline]
    fn describe(&self) -> ::dlpack_core::__private::Described<'_> {
        ::dlpack_core::Parts::new().legacy_refuse().via(self.to_array())
    }
}
