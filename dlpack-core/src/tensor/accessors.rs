//! Accessors that `Descriptor` and `TensorRef` share, declared once.

/// Declares the accessors. `$list` is the return type of `shape` and `strides`. `$of` is the call chain in the doc tests,
/// from a value to one of the two types. The other arguments name the fields of shape and strides.
macro_rules! accessors {
    ($list:ty, $of:literal, $shape:ident $(.$shape_of:ident())?, $strides:ident $(.$strides_of:ident())?) => {
        /// The shape: the size of each axis.
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

        /// The strides in items, one for each axis; computed if the producer left them out.
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

        /// The device that the memory is on.
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

        /// The address of the first element, or the handle on a device that uses handles. An export of this crate without
        /// elements has a null address.
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

        /// The offset in bytes from the handle to the first element; 0 if `as_ptr` is an address.
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

        /// The size in bytes of all items without gaps.
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

        /// Whether consumers must not write to the tensor. A legacy tensor (before DLPack 1.0) has no flag for this, and
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
