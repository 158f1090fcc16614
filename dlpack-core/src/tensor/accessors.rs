//! What can be asked of any tensor, written once: for one that is described, and for one that is viewed.

/// The methods over the fields that both have. `$list` is the type that shape and strides are borrowed as, `$of` the calls
/// that lead from a value to one of the two, and the others are where shape and strides are.
macro_rules! accessors {
    ($list:ty, $of:literal, $shape:ident $(.$shape_of:ident())?, $strides:ident $(.$strides_of:ident())?) => {
        /// The extents, one an axis.
        ///
        /// ```
        /// use dlpack_core::DLPack;
        ///
        #[doc = concat!("assert_eq!([[0_u8; 3]; 2]", $of, ".shape(), [2, 3]);")]
        /// # Ok::<(), dlpack_core::Error>(())
        /// ```
        #[must_use]
        pub fn shape(&self) -> $list {
            self.$shape$(.$shape_of())?
        }

        /// The strides in items, one an axis; computed where a producer left them out.
        ///
        /// ```
        /// use dlpack_core::DLPack;
        ///
        #[doc = concat!("assert_eq!([[0_u8; 3]; 2]", $of, ".strides(), [3, 1]);")]
        /// # Ok::<(), dlpack_core::Error>(())
        /// ```
        #[must_use]
        pub fn strides(&self) -> $list {
            self.$strides$(.$strides_of())?
        }

        /// The type of the items.
        ///
        /// ```
        /// use dlpack_core::{DLPack, DataType};
        ///
        #[doc = concat!("assert_eq!([0_i16; 4]", $of, ".dtype(), DataType::I16);")]
        /// # Ok::<(), dlpack_core::Error>(())
        /// ```
        #[must_use]
        pub fn dtype(&self) -> DataType {
            self.dtype
        }

        /// Where the memory lies.
        ///
        /// ```
        /// use dlpack_core::{DLPack, Device};
        ///
        #[doc = concat!("assert_eq!([0_i16; 4]", $of, ".device(), Device::CPU);")]
        /// # Ok::<(), dlpack_core::Error>(())
        /// ```
        #[must_use]
        pub fn device(&self) -> Device {
            self.device
        }

        /// The address of the first element; on a device of handles, the handle. An export of ours without elements has
        /// the address null.
        ///
        /// ```
        /// use dlpack_core::DLPack;
        ///
        #[doc = concat!("assert!(![0_u8; 3]", $of, ".as_ptr().is_null());")]
        #[doc = concat!("assert!([0_u8; 0]", $of, ".as_ptr().is_null());")]
        /// # Ok::<(), dlpack_core::Error>(())
        /// ```
        #[must_use]
        pub fn as_ptr(&self) -> *const u8 {
            self.data
        }

        /// The bytes from the handle to the first element; 0 wherever `as_ptr` is an address.
        ///
        /// ```
        /// use dlpack_core::DLPack;
        ///
        #[doc = concat!("assert_eq!([0_u8; 4]", $of, ".byte_offset(), 0);")]
        /// # Ok::<(), dlpack_core::Error>(())
        /// ```
        #[must_use]
        pub fn byte_offset(&self) -> u64 {
            self.byte_offset
        }

        /// The bytes that the items take when they are stored one after another.
        ///
        /// ```
        /// use dlpack_core::DLPack;
        ///
        #[doc = concat!("assert_eq!([0_u16; 5]", $of, ".len_bytes(), 10);")]
        /// # Ok::<(), dlpack_core::Error>(())
        /// ```
        #[must_use]
        pub fn len_bytes(&self) -> usize {
            $crate::layout::extent::packed_bytes(self.shape(), self.dtype).unwrap_or(0)
        }

        /// Whether whoever gets the tensor must not write to it. One in the struct from before DLPack 1.0 cannot say, and
        /// counts as read-only.
        ///
        /// ```
        /// use dlpack_core::DLPack;
        ///
        /// assert!([0_u8; 4].describe()?.is_read_only());
        /// assert!(!vec![0_u8; 4].into_dlpack()?.view().is_read_only());
        /// # Ok::<(), dlpack_core::Error>(())
        /// ```
        #[must_use]
        pub fn is_read_only(&self) -> bool {
            self.read_only
        }
    };
}
pub(crate) use accessors;
