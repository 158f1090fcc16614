//! The vectors, quaternions and matrices of `glam`, as elements with one or two axes.
//!
//! A vector adds an axis of its components, and a quaternion an axis of 4 (x, y, z, w). A matrix adds an axis of rows and
//! an axis of columns. It is column-major in memory, which its strides express. `Vec3A`, `Mat3A` and the affine types that
//! contain them have padding, which the contract of `Element` excludes: every byte belongs to an item. Export `Vec3` and `Mat3`
//! instead.
#![expect(unsafe_code, reason = "`Element` is a promise about memory layout")]

use ::glam::{
    DMat2, DMat3, DMat4, DQuat, DVec2, DVec3, DVec4, I8Vec2, I8Vec3, I8Vec4, I16Vec2, I16Vec3,
    I16Vec4, I64Vec2, I64Vec3, I64Vec4, ISizeVec2, ISizeVec3, ISizeVec4, IVec2, IVec3, IVec4, Mat2,
    Mat3, Mat4, Quat, U8Vec2, U8Vec3, U8Vec4, U16Vec2, U16Vec3, U16Vec4, U64Vec2, U64Vec3, U64Vec4,
    USizeVec2, USizeVec3, USizeVec4, UVec2, UVec3, UVec4, Vec2, Vec3, Vec4,
};

use crate::element::{Axes, Plain, Source, sealed};
use crate::{DataType, Element};

macro_rules! vectors {
    ($($scalar:ty: $($vector:ident $extent:literal),*;)*) => {$($(
        // SAFETY: the type has the layout of `[_; N]`: it is `repr(C)` over N numbers, or transparent over one register
        // that holds them, and its `AsRef<[_; N]>` shows them in order. The assertion below excludes padding. So the
        // contract holds as it does for `[_; N]`: any bytes are a value.
        unsafe impl Element for $vector {
            type Scalar = $scalar;
            const DTYPE: DataType = <$scalar>::DTYPE;
            const TRAILING: Axes = <[$scalar; $extent]>::TRAILING;
            const PLAIN: bool = true;

            #[inline]
            fn build_from(source: &mut Source<'_, $scalar>) -> Self {
                Self::from_array(<[$scalar; $extent]>::build_from(source))
            }
        }

        impl sealed::Element for $vector {}
        impl sealed::Plain for $vector {}
        impl Plain for $vector {}

        const _: () = {
            assert!(size_of::<$vector>() == size_of::<[$scalar; $extent]>());
            /// Compiles only if the components can be borrowed as an array.
            fn components(vector: &$vector) -> &[$scalar; $extent] {
                vector.as_ref()
            }
            let _ = components;
        };
    )*)*};
}
vectors! {
    f32: Vec2 2, Vec3 3, Vec4 4, Quat 4;
    f64: DVec2 2, DVec3 3, DVec4 4, DQuat 4;
    i8: I8Vec2 2, I8Vec3 3, I8Vec4 4;
    u8: U8Vec2 2, U8Vec3 3, U8Vec4 4;
    i16: I16Vec2 2, I16Vec3 3, I16Vec4 4;
    u16: U16Vec2 2, U16Vec3 3, U16Vec4 4;
    i32: IVec2 2, IVec3 3, IVec4 4;
    u32: UVec2 2, UVec3 3, UVec4 4;
    i64: I64Vec2 2, I64Vec3 3, I64Vec4 4;
    u64: U64Vec2 2, U64Vec3 3, U64Vec4 4;
    isize: ISizeVec2 2, ISizeVec3 3, ISizeVec4 4;
    usize: USizeVec2 2, USizeVec3 3, USizeVec4 4;
}

macro_rules! matrices {
    ($($matrix:ident: $scalar:ty, $side:literal, $items:literal;)*) => {$(
        // SAFETY: the type has the layout of its columns, one after another, without padding ("Column and row major
        // matrices" in the documentation of glam, and the assertion below). `TRAILING` describes this layout. The type is
        // not `Plain`: items in C order are its rows, and memory of the type has its columns.
        unsafe impl Element for $matrix {
            type Scalar = $scalar;
            const DTYPE: DataType = <$scalar>::DTYPE;
            const TRAILING: Axes = Axes::of_columns($side, $side, Axes::NONE);

            fn build_from(source: &mut Source<'_, $scalar>) -> Self {
                let rows = <[[$scalar; $side]; $side]>::build_from(source);
                Self::from_cols_array_2d(&rows).transpose()
            }
        }

        impl sealed::Element for $matrix {}

        const _: () = {
            assert!(size_of::<$matrix>() == size_of::<[$scalar; $items]>());
            /// Compiles only if the columns can be borrowed as one array.
            fn columns(matrix: &$matrix) -> &[$scalar; $items] {
                matrix.as_ref()
            }
            let _ = columns;
        };
    )*};
}
matrices! {
    Mat2: f32, 2, 4;
    Mat3: f32, 3, 9;
    Mat4: f32, 4, 16;
    DMat2: f64, 2, 4;
    DMat3: f64, 3, 9;
    DMat4: f64, 4, 16;
}
