//! The way back: from an imported tensor to owned Rust values.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;

use crate::device::Device;
use crate::dims::Dims;
use crate::dtype::{DataType, Order};
use crate::element::{Axes, Element, Plain};
use crate::error::Error;
use crate::extent;
use crate::managed::Managed;
use crate::shared::SharedBuffer;
use crate::view::TensorRef;

/// A type that a tensor can become.
///
/// Derive it with the attributes that describe the export. Fields that own their elements get a
/// copy in the order they need; a [`SharedBuffer`] adopts the memory as it is.
///
/// ```
/// use dlpack_core::{DLPack, FromDLPack};
///
/// #[derive(DLPack, FromDLPack)]
/// struct Image {
///     #[dlpack(data)]
///     pixels: Vec<f32>,
///     #[dlpack(shape)]
///     dims: [usize; 2],
/// }
///
/// let image = Image { pixels: vec![0.5; 6], dims: [2, 3] };
/// let back = Image::from_dlpack(image.into_dlpack()?)?;
/// assert_eq!(back.dims, [2, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made from a DLPack tensor",
    label = "expected a type that owns its elements",
    note = "use `Vec<T>`, `Box<[T]>`, `Arc<[T]>` or `SharedBuffer<T>`, or add `#[derive(FromDLPack)]` to it"
)]
pub trait FromDLPack: Sized {
    /// The value that the tensor holds.
    ///
    /// ```
    /// use dlpack_core::{DLPack, FromDLPack};
    ///
    /// let tensor = [1_u8, 2, 3].into_dlpack()?;
    /// assert_eq!(Vec::<u8>::from_dlpack(tensor)?, [1, 2, 3]);
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Another data type, rank or extent than the type needs, or memory that the processor cannot read.
    fn from_dlpack(tensor: Managed) -> Result<Self, Error>;

    /// Whether data type and rank are those of this type; an enum picks its variant by this.
    #[doc(hidden)]
    fn fits(tensor: &TensorRef<'_>) -> bool {
        let _ = tensor;
        true
    }
}

/// Data that a tensor's elements can go into.
///
/// ```
/// use dlpack_core::{DLPack, FromDLPack, FromTensor};
///
/// fn there_and_back<D: FromTensor + DLPack + 'static>(data: D) -> Result<D, dlpack_core::Error> {
///     D::from_dlpack(data.into_dlpack()?)
/// }
/// assert_eq!(there_and_back(vec![1, 2, 3])?, [1, 2, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take the elements of a DLPack tensor",
    label = "expected a type that owns its elements",
    note = "use `Vec<T>`, `Box<[T]>`, `Arc<[T]>` or `SharedBuffer<T>`"
)]
pub trait FromTensor: Sized {
    /// What the elements are.
    type Element: Element;

    /// Whether the memory is adopted, strides and all, rather than copied.
    #[doc(hidden)]
    const ADOPTS: bool = false;

    /// Takes the elements.
    ///
    /// # Errors
    ///
    /// As [`FromDLPack::from_dlpack`].
    fn from_tensor(import: Import) -> Result<Self, Error>;

    /// Whether a tensor of any such rank will do.
    #[doc(hidden)]
    fn fits(tensor: &TensorRef<'_>) -> bool {
        tensor.dtype() == Self::Element::DTYPE
            && tensor.shape().len() > Self::Element::TRAILING.len()
            && (tensor.shape()).ends_with(Self::Element::TRAILING.extents())
    }
}

impl<D: FromTensor> FromDLPack for D {
    fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
        Import::new::<D>(tensor)?.data::<D>()
    }

    fn fits(tensor: &TensorRef<'_>) -> bool {
        D::fits(tensor)
    }
}

impl<T: Element> FromTensor for Vec<T> {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        import.elements()
    }
}

impl<T: Element> FromTensor for Box<[T]> {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        Ok(import.elements()?.into_boxed_slice())
    }
}

impl<T: Element> FromTensor for Arc<[T]> {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        Ok(import.elements()?.into())
    }
}

impl<T: Element, const N: usize> FromTensor for [T; N] {
    type Element = T;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        let elements: Vec<T> = import.elements()?;
        let found = elements.len();
        Self::try_from(elements).map_err(|_| Error::Extent {
            axis: 0,
            found: i64::try_from(found).unwrap_or(i64::MAX),
            needed: N.to_string(),
        })
    }
}

impl<T: Plain> FromTensor for SharedBuffer<T> {
    type Element = T;
    const ADOPTS: bool = true;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        let view = import.tensor.view();
        view.check_type::<T>()?;
        let shape = view.shape();
        let items = if shape.contains(&0) {
            0
        } else if import.is_packed(&view) {
            extent::count(shape).unwrap_or(0)
        } else {
            let not_contiguous = || Error::NotContiguous {
                shape: shape.to_vec(),
                strides: view.strides().to_vec(),
            };
            // Gaps between elements are all right for a struct that keeps the strides; inside of them,
            // or a start in the middle, they are not.
            let leading = import.leading();
            let whole_elements = extent::same_places(
                &shape[leading..],
                &view.strides()[leading..],
                import.axes.strides(),
            );
            let reach = extent::reach(shape, view.strides())
                .filter(|reach| reach.min == 0 && import.strides_read.get() && whole_elements)
                .ok_or_else(not_contiguous)?;
            reach.max + 1
        };
        let items = usize::try_from(items).unwrap_or(0);
        let len = items
            .checked_div(const { T::TRAILING.items() })
            .unwrap_or(0);
        if !T::ANY_BITS {
            view.check_bools()?;
        }
        if len == 0 {
            return Self::zeroed(0);
        }
        Self::adopt(import.tensor, len)
    }
}

/// A tensor on its way into the fields of a struct.
#[doc(hidden)]
#[derive(Debug)]
pub struct Import {
    tensor: Managed,
    axes: Axes,
    order: Order,
    adopts: bool,
    strides_read: Cell<bool>,
}

impl Import {
    /// A tensor whose elements go into `D`.
    ///
    /// # Errors
    ///
    /// Another data type, or other trailing axes, than the elements of `D` have.
    pub fn new<D: FromTensor>(tensor: Managed) -> Result<Self, Error> {
        let import = Self {
            tensor,
            axes: D::Element::TRAILING,
            order: Order::C,
            adopts: D::ADOPTS,
            strides_read: Cell::new(false),
        };
        import.tensor.view().check_type::<D::Element>()?;
        Ok(import)
    }

    /// The first axis moves fastest in the struct.
    #[must_use]
    pub fn column_major(mut self) -> Self {
        self.order = Order::F;
        self
    }

    /// The order that the elements will have.
    #[cfg(feature = "ndarray")]
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// The last axis moves fastest in the struct, whatever was said before.
    #[cfg(feature = "image")]
    pub(crate) fn row_major(mut self) -> Self {
        self.order = Order::C;
        self
    }

    /// The axes in front of those of the element.
    fn leading(&self) -> usize {
        self.tensor.view().shape().len() - self.axes.len()
    }

    /// The items in one element.
    fn pitch(&self) -> usize {
        let items: i64 = self.axes.extents().iter().product();
        usize::try_from(items).unwrap_or(0)
    }

    /// Whether the memory has the order that the struct wants, without gaps.
    fn is_packed(&self, view: &TensorRef<'_>) -> bool {
        extent::same_places(
            view.shape(),
            view.strides(),
            &self.packed_strides(view.shape()),
        )
    }

    /// The strides in items of a tensor in the order that the struct wants, without gaps.
    fn packed_strides(&self, shape: &[i64]) -> Dims {
        let (leading, trailing) = shape.split_at(shape.len() - self.axes.len());
        let pitch = trailing.iter().product();
        let mut strides = Dims::new();
        match self.order {
            Order::C => extent::push_row_major(&mut strides, leading, pitch),
            Order::F => extent::push_column_major(&mut strides, leading, pitch),
        }
        extent::push_row_major(&mut strides, trailing, 1);
        strides
    }

    /// That there are so many axes.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`].
    pub fn rank(&self, needed: usize) -> Result<(), Error> {
        let found = self.leading();
        if found == needed {
            return Ok(());
        }
        Err(Error::Rank { found, needed })
    }

    /// That this axis is so long.
    ///
    /// # Errors
    ///
    /// [`Error::Extent`].
    pub fn expect(&self, axis: usize, needed: i64) -> Result<(), Error> {
        let found = self.tensor.view().shape()[axis];
        if found == needed {
            return Ok(());
        }
        Err(Error::Extent {
            axis,
            found,
            needed: needed.to_string(),
        })
    }

    /// All extents.
    ///
    /// # Errors
    ///
    /// A list of another length, or an integer that does not hold one of them.
    pub fn shape<S: FromList>(&self) -> Result<S, Error> {
        S::from_list("extent", &self.tensor.view().shape()[..self.leading()])
    }

    /// One extent.
    ///
    /// # Errors
    ///
    /// An integer that does not hold it.
    pub fn extent<I: FromInt>(&self, axis: usize) -> Result<I, Error> {
        I::from_int("the extent", self.tensor.view().shape()[axis])
    }

    /// The strides that the struct will have, in elements.
    fn element_strides(&self) -> Result<Dims, Error> {
        self.strides_read.set(true);
        let view = self.tensor.view();
        let strides = if self.adopts {
            Dims::from(view.strides())
        } else {
            self.packed_strides(view.shape())
        };
        let pitch = i64::try_from(self.pitch()).unwrap_or(i64::MAX).max(1);
        let mut elements = Dims::new();
        for (axis, &stride) in strides[..self.leading()].iter().enumerate() {
            if stride % pitch != 0 {
                return Err(Error::PartialStride {
                    axis,
                    found: stride,
                    itemsize: self.pitch(),
                });
            }
            elements.push(stride / pitch);
        }
        Ok(elements)
    }

    fn element_byte_strides(&self) -> Result<Dims, Error> {
        let view = self.tensor.view();
        let bytes = view.dtype().itemsize_bits() * self.pitch() / 8;
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut strides = self.element_strides()?;
        for stride in strides.iter_mut() {
            *stride = stride.saturating_mul(bytes);
        }
        Ok(strides)
    }

    /// All strides, in elements.
    ///
    /// # Errors
    ///
    /// As [`Import::shape`].
    pub fn strides<S: FromList>(&self) -> Result<S, Error> {
        S::from_list("stride", &self.element_strides()?)
    }

    /// All strides, in bytes.
    ///
    /// # Errors
    ///
    /// As [`Import::shape`].
    pub fn byte_strides<S: FromList>(&self) -> Result<S, Error> {
        S::from_list("stride", &self.element_byte_strides()?)
    }

    /// One stride, in elements.
    ///
    /// # Errors
    ///
    /// As [`Import::extent`].
    pub fn stride<I: FromInt>(&self, axis: usize) -> Result<I, Error> {
        I::from_int("the stride", self.element_strides()?[axis])
    }

    /// One stride, in bytes.
    ///
    /// # Errors
    ///
    /// As [`Import::extent`].
    pub fn byte_stride<I: FromInt>(&self, axis: usize) -> Result<I, Error> {
        I::from_int("the stride", self.element_byte_strides()?[axis])
    }

    /// The offset, which an import never has.
    ///
    /// # Errors
    ///
    /// None: 0 fits every integer.
    pub fn offset<I: FromInt>(&self) -> Result<I, Error> {
        I::from_int("the offset", 0)
    }

    /// As [`Import::offset`].
    ///
    /// # Errors
    ///
    /// None: 0 fits every integer.
    pub fn byte_offset<I: FromInt>(&self) -> Result<I, Error> {
        self.offset()
    }

    /// The device.
    ///
    /// # Errors
    ///
    /// A device that the field's type has no value for.
    pub fn device<D: TryFrom<Device>>(&self) -> Result<D, Error> {
        // Elements that were copied lie in ordinary memory, wherever they came from.
        let device = if self.adopts {
            self.tensor.view().device()
        } else {
            Device::CPU
        };
        D::try_from(device).map_err(|_| Error::BadField {
            what: "the device",
            found: device.to_string(),
        })
    }

    /// The data type.
    ///
    /// # Errors
    ///
    /// A data type that the field's type has no value for.
    pub fn dtype<D: TryFrom<DataType>>(&self) -> Result<D, Error> {
        let dtype = self.tensor.view().dtype();
        D::try_from(dtype).map_err(|_| Error::BadField {
            what: "the data type",
            found: dtype.to_string(),
        })
    }

    /// The elements.
    ///
    /// # Errors
    ///
    /// As [`FromDLPack::from_dlpack`].
    pub fn data<D: FromTensor>(self) -> Result<D, Error> {
        D::from_tensor(self)
    }

    /// The elements in the order that the struct wants.
    ///
    /// # Errors
    ///
    /// As [`TensorRef::to_vec`].
    pub fn elements<T: Element>(&self) -> Result<Vec<T>, Error> {
        let view = self.tensor.view();
        if self.order == Order::C {
            return view.to_vec();
        }
        let leading = self.leading();
        let mut shape = Dims::from(view.shape());
        let mut strides = Dims::from(view.strides());
        shape[..leading].reverse();
        strides[..leading].reverse();
        view.with_axes(&shape, &strides).to_vec()
    }
}

/// An integer that an extent, a stride or an offset is read back into.
///
/// ```
/// fn may_take_an_extent<I: dlpack_core::FromInt>() {}
///
/// may_take_an_extent::<u32>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take an extent, a stride or an offset",
    label = "expected an integer such as `usize`, `u32` or `i64`"
)]
pub trait FromInt: Sized {
    /// The integer, if it fits.
    #[doc(hidden)]
    fn from_int(what: &'static str, found: i64) -> Result<Self, Error>;
}

macro_rules! from_ints {
    ($($int:ty)*) => {$(
        impl FromInt for $int {
            fn from_int(what: &'static str, found: i64) -> Result<Self, Error> {
                Self::try_from(found).map_err(|_| Error::BadField {
                    what,
                    found: found.to_string(),
                })
            }
        }
    )*};
}
from_ints!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

/// A list that extents or strides are read back into.
///
/// ```
/// fn may_take_a_shape<L: dlpack_core::FromList>() {}
///
/// may_take_a_shape::<[usize; 3]>();
/// may_take_a_shape::<(u32, u32)>();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take a list of extents or strides",
    label = "expected `[I; N]`, `Vec<I>`, `Box<[I]>` or a tuple of integers"
)]
pub trait FromList: Sized {
    /// The list, if its length and its integers fit.
    #[doc(hidden)]
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error>;
}

impl<I: FromInt> FromList for Vec<I> {
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error> {
        found.iter().map(|&int| I::from_int(what, int)).collect()
    }
}

impl<I: FromInt> FromList for Box<[I]> {
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error> {
        Vec::from_list(what, found).map(Vec::into_boxed_slice)
    }
}

impl<I: FromInt, const N: usize> FromList for [I; N] {
    fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error> {
        Self::try_from(Vec::from_list(what, found)?).map_err(|list| Error::Rank {
            found: list.len(),
            needed: N,
        })
    }
}

macro_rules! from_tuples {
    ($($rank:literal: $($name:ident $index:tt)*;)*) => {$(
        impl<$($name: FromInt),*> FromList for ($($name,)*) {
            fn from_list(what: &'static str, found: &[i64]) -> Result<Self, Error> {
                if found.len() != $rank {
                    return Err(Error::Rank { found: found.len(), needed: $rank });
                }
                Ok(($($name::from_int(what, found[$index])?,)*))
            }
        }
    )*};
}
from_tuples! {
    1: A 0;
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
}
