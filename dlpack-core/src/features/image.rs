//! The images of `image`, with axes height, width and channels.

use alloc::vec::Vec;

use ::image::{DynamicImage, ImageBuffer, Pixel};

use crate::import::{FromTensor, reader::Import, sealed};
use crate::{Buffer, Element, Error, FromDLPack, Loan, LoanMut, Managed, TensorRef, Writable};
use crate::{element::AnyBits, layout::Dims, loan::facts::Facts};

/// Shape and strides of an image. Its buffer may be longer than the image.
fn image_layout((width, height): (u32, u32), channels: u8) -> (Dims, Dims) {
    let (width, height, channels) = (i64::from(width), i64::from(height), i64::from(channels));
    let row = width * channels; // less than 2^40
    let shape = Dims::from([height, width, channels]);
    (shape, Dims::from([row, channels, 1]))
}

/// An image is exported with shape (height, width, channels) in C order; a gray image has 1 channel.
///
/// The type also dereferences to a slice of its samples. So without this feature a field of this type can be `data` too,
/// as a list that needs the key `shape`. With this feature, a `shape` must agree with the image.
///
/// ```
/// use dlpack_core::DLPack;
///
/// let image = image::RgbImage::new(640, 480);
/// let tensor = image.into_dlpack()?;
/// assert_eq!(tensor.view().shape(), [480, 640, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
impl<P: Pixel<Subpixel: Element> + Send> Buffer for ImageBuffer<P, Vec<P::Subpixel>> {
    const FACTS: Facts = Facts::list::<P::Subpixel>().with_layout(Some(3)).writable();

    fn lend(&self) -> Loan<'_> {
        let (shape, strides) = image_layout(self.dimensions(), P::CHANNEL_COUNT);
        Loan::from(&**self).with_layout(shape, strides, 0)
    }

    fn lend_mut(&mut self) -> LoanMut<'_> {
        let (shape, strides) = image_layout(self.dimensions(), P::CHANNEL_COUNT);
        LoanMut::from(&mut **self).with_layout(shape, strides, 0)
    }
}

impl<P: Pixel<Subpixel: AnyBits> + Send> Writable for ImageBuffer<P, Vec<P::Subpixel>> {}

/// The samples are copied. The tensor needs three axes, and the size of the last one must be the number of channels.
///
/// ```
/// use dlpack_core::{DLPack, FromDLPack};
/// use image::{GrayImage, RgbImage};
///
/// let pixels = [[[1_u8, 2, 3], [4, 5, 6]]];
/// let image = RgbImage::from_dlpack(pixels.into_dlpack()?)?;
/// assert_eq!(image.dimensions(), (2, 1));
/// assert_eq!(image.get_pixel(1, 0).0, [4, 5, 6]);
/// assert!(GrayImage::from_dlpack(pixels.into_dlpack()?).is_err());
/// # Ok::<(), dlpack_core::Error>(())
/// ```
impl<P: Pixel<Subpixel: Element>> FromTensor for ImageBuffer<P, Vec<P::Subpixel>> {
    type Element = P::Subpixel;

    fn from_tensor(import: Import) -> Result<Self, Error> {
        let import = import.row_major();
        import.check_rank(3)?;
        import.check_size(2, i64::from(P::CHANNEL_COUNT))?;
        let (height, width) = (import.axis_size(0)?, import.axis_size(1)?);
        let image = Self::from_raw(width, height, import.copy_elements()?);
        Ok(image.expect("as many samples as the shape has"))
    }

    fn fits(tensor: &TensorRef<'_>) -> bool {
        tensor.dtype() == P::Subpixel::DTYPE
            && matches!(tensor.shape(), [_, _, channels] if *channels == i64::from(P::CHANNEL_COUNT))
    }
}

impl<P: Pixel> sealed::Sealed for ImageBuffer<P, Vec<P::Subpixel>> {}

macro_rules! variants {
    ($($variant:ident)*) => {
        /// Data type and number of channels are those of the image at run time.
        ///
        /// ```
        /// use dlpack_core::{DLPack, DataType};
        /// use image::DynamicImage;
        ///
        /// let tensor = DynamicImage::new_rgba16(4, 2).into_dlpack()?;
        /// assert_eq!(tensor.view().dtype(), DataType::U16);
        /// assert_eq!(tensor.view().shape(), [2, 4, 4]);
        /// # Ok::<(), dlpack_core::Error>(())
        /// ```
        ///
        /// If a later version of `image` adds a variant, such an image is exported read-only as bytes; the last axis has the
        /// bytes of each pixel.
        impl Buffer for DynamicImage {
            fn lend(&self) -> Loan<'_> {
                match self {
                    $(Self::$variant(image) => image.lend(),)*
                    other => {
                        let size = (other.width(), other.height());
                        let (shape, strides) = image_layout(size, other.color().bytes_per_pixel());
                        Loan::from(other.as_bytes()).with_layout(shape, strides, 0)
                    }
                }
            }

            fn lend_mut(&mut self) -> LoanMut<'_> {
                match self {
                    $(Self::$variant(image) => image.lend_mut(),)*
                    other => LoanMut::from(other.lend()),
                }
            }
        }

        /// The samples are copied into the variant with this sample type and number of channels.
        ///
        /// ```
        /// use dlpack_core::{DLPack, FromDLPack};
        /// use image::DynamicImage;
        ///
        /// let tensor = vec![[[0.5_f32; 3]; 4]; 2].into_dlpack()?;
        /// assert!(matches!(DynamicImage::from_dlpack(tensor)?, DynamicImage::ImageRgb32F(_)));
        /// # Ok::<(), dlpack_core::Error>(())
        /// ```
        impl FromDLPack for DynamicImage {
            fn from_dlpack(tensor: Managed) -> Result<Self, Error> {
                let view = tensor.view();
                $(
                    if fits_variant(Self::$variant, &view) {
                        return FromDLPack::from_dlpack(tensor).map(Self::$variant);
                    }
                )*
                Err(Error::NoVariant {
                    name: "DynamicImage",
                    dtype: view.dtype(),
                    rank: view.shape().len(),
                    variants: &[$(stringify!($variant)),*],
                })
            }

            fn fits(tensor: &TensorRef<'_>) -> bool {
                $(fits_variant(Self::$variant, tensor))||*
            }
        }
    };
}
variants! {
    ImageLuma8 ImageLumaA8 ImageRgb8 ImageRgba8 ImageLuma16 ImageLumaA16 ImageRgb16 ImageRgba16
    ImageRgb32F ImageRgba32F
}

/// Whether a tensor fits the image type of this variant.
fn fits_variant<I: FromDLPack>(_: fn(I) -> DynamicImage, tensor: &TensorRef<'_>) -> bool {
    I::fits(tensor)
}
