// #[repr(transparent)]
// struct Pixel<T: Element>([T; 3]);

#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl<T: Element> ::dlpack_core::__private::Homogeneous for Pixel<T> {
    type Scalar = <[T; 3] as ::dlpack_core::Element>::Scalar;
    const TRAILING: ::dlpack_core::__private::Axes = <[T; 3] as ::dlpack_core::Element>::TRAILING;
    fn walk<'a>(
        &'a self,
        walk: ::dlpack_core::__private::Walk<
            'a,
            <Self as ::dlpack_core::__private::Homogeneous>::Scalar,
        >,
    ) -> ::dlpack_core::__private::Walk<
        'a,
        <Self as ::dlpack_core::__private::Homogeneous>::Scalar,
    > {
        let walk = walk.field::<[T; 3]>(&self.0);
        walk
    }
    fn walk_mut<'a>(
        &'a mut self,
        walk: ::dlpack_core::__private::WalkMut<
            'a,
            <Self as ::dlpack_core::__private::Homogeneous>::Scalar,
        >,
    ) -> ::dlpack_core::__private::WalkMut<
        'a,
        <Self as ::dlpack_core::__private::Homogeneous>::Scalar,
    > {
        let walk = walk.field::<[T; 3]>(&mut self.0);
        walk
    }
    fn build(
        source: &mut ::dlpack_core::__private::Source<
            '_,
            <Self as ::dlpack_core::__private::Homogeneous>::Scalar,
        >,
    ) -> Self {
        Self { 0: source.next::<[T; 3]>() }
    }
}
