// #[repr(C)]
// struct Point { x: f32, y: f32, z: f32 }

#[automatically_derived]
#[allow(deprecated, unused_imports)]
impl ::dlpack_core::__private::Homogeneous for Point {
    type Scalar = <f32 as ::dlpack_core::Element>::Scalar;
    const TRAILING: ::dlpack_core::__private::Axes = ::dlpack_core::__private::Axes::of_fields(
        &[
            <f32 as ::dlpack_core::Element>::TRAILING,
            <f32 as ::dlpack_core::Element>::TRAILING,
            <f32 as ::dlpack_core::Element>::TRAILING,
        ],
    );
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
        let walk = walk.field::<f32>(&self.x);
        let walk = walk.field::<f32>(&self.y);
        let walk = walk.field::<f32>(&self.z);
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
        let walk = walk.field::<f32>(&mut self.x);
        let walk = walk.field::<f32>(&mut self.y);
        let walk = walk.field::<f32>(&mut self.z);
        walk
    }
    fn build(
        source: &mut ::dlpack_core::__private::Source<
            '_,
            <Self as ::dlpack_core::__private::Homogeneous>::Scalar,
        >,
    ) -> Self {
        Self {
            x: source.next::<f32>(),
            y: source.next::<f32>(),
            z: source.next::<f32>(),
        }
    }
}
#[allow(deprecated)]
const _: () = ::dlpack_core::__private::no_padding::<Point>();
