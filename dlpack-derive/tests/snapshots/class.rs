// struct Image(Vec<f32>);

#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
impl ::dlpack_pyo3::DLPack for Image {
    const EXTRAS: ::dlpack_pyo3::__private::Extras<Self> = ::dlpack_pyo3::__private::of_types::<
        Self,
    >({
            use ::dlpack_pyo3::__private::ProbeDefaults as _;
            ::dlpack_pyo3::__private::Whole::<Vec<f32>>::FACTS
        })
        .exclusive_as({
            use ::dlpack_pyo3::__private::ProbeDefaults as _;
            ::dlpack_pyo3::__private::Whole::<Vec<f32>>::EXCLUSIVE
        })
        .share(|__this, __request, __other| ::dlpack_pyo3::__private::share_field::<
            Vec<f32>,
            ::dlpack_pyo3::__private::Inferred<_>,
        >(
            &__this.0,
            __request,
            __other,
            ::dlpack_pyo3::__private::Whole::<Vec<f32>>::NEW.__route(),
        ));
    #[inline]
    fn describe(&self) -> ::dlpack_pyo3::__private::Described<'_> {
        ::dlpack_pyo3::__private::describe_field::<
            Vec<f32>,
            ::dlpack_pyo3::__private::Inferred<_>,
        >(&self.0, ::dlpack_pyo3::__private::Whole::<Vec<f32>>::NEW.__route())
    }
    #[inline]
    fn describe_mut(&mut self) -> ::dlpack_pyo3::__private::Described<'_> {
        ::dlpack_pyo3::__private::describe_field_mut::<
            Vec<f32>,
            ::dlpack_pyo3::__private::Inferred<_>,
        >(&mut self.0, ::dlpack_pyo3::__private::Whole::<Vec<f32>>::NEW.__route())
    }
}
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
const _: fn() = || {
    use ::dlpack_pyo3::__private::{UndeclaredMethods as _, ClassDefaults as _};
    ::dlpack_pyo3::__private::attached::<
        _,
        _,
        Image,
    >(
        ::dlpack_pyo3::__private::Class::<Image>::IS,
        (Image::__dlpack_c_exchange_api__, Image::__dlpack_tensors__),
    );
};

// #[dlpack(crate = crate::dl)] struct Batch { #[dlpack(tensor)] obs: Vec<f32>, #[dlpack(columns)] rows: Vec<Row> }

#[automatically_derived]
#[allow(deprecated, clippy::absolute_paths)]
impl Batch {
    /// Describes the tensor `obs`.
    #[inline]
    fn describe_obs(&self) -> crate::dl::__private::Described<'_> {
        crate::dl::__private::describe_field::<
            Vec<f32>,
            crate::dl::__private::Inferred<_>,
        >(&self.obs, crate::dl::__private::Whole::<Vec<f32>>::NEW.__route())
    }
}
#[automatically_derived]
#[allow(deprecated, unused_imports, clippy::absolute_paths, unused_qualifications)]
impl crate::dl::DLPackTensors for Batch {
    const NAMES: &'static [&'static crate::dl::__private::Str] = {
        use crate::dl::__private::ProbeDefaults as _;
        &crate::dl::__private::concat_names::<
            {
                crate::dl::__private::count_names(
                    &[&["obs"], crate::dl::__private::Table::<Vec<Row>>::NAMES],
                )
            },
        >(&[&["obs"], crate::dl::__private::Table::<Vec<Row>>::NAMES])
    };
    const FACTS: &'static [crate::dl::__private::NamedFacts] = {
        use crate::dl::__private::ProbeDefaults as _;
        &[
            &[("obs", crate::dl::__private::Whole::<Vec<f32>>::FACTS.shared())],
            crate::dl::__private::Table::<Vec<Row>>::COLUMNS,
        ]
    };
    const DOCS: &'static [crate::dl::__private::NamedDocs] = {
        use crate::dl::__private::ProbeDefaults as _;
        &[&[], crate::dl::__private::Table::<Vec<Row>>::DOCS]
    };
    #[inline]
    fn describe_tensor(
        &self,
        __name: &crate::dl::__private::Str,
    ) -> crate::dl::__private::Described<'_> {
        match __name {
            "obs" => self.describe_obs(),
            _ => {
                crate::dl::__private::found_or_unknown(
                    __name,
                    <Self as crate::dl::DLPackTensors>::NAMES,
                    crate::dl::__private::describe_column::<Vec<Row>>(&self.rows, __name),
                )
            }
        }
    }
}
#[allow(deprecated, unused_imports, clippy::absolute_paths)]
const _: fn() = || {
    use crate::dl::__private::{UndeclaredMethods as _, ClassDefaults as _};
    crate::dl::__private::attached::<
        _,
        _,
        Batch,
    >(crate::dl::__private::Class::<Batch>::IS, Batch::__dlpack_tensors__);
};
