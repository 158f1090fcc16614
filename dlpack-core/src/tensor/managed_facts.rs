//! [`ManagedFacts`]: what a [`Managed`](crate::Managed) knows beyond its C struct, in one word.
#![expect(
    unsafe_code,
    reason = "reads a table or a list through a tagged address"
)]

use alloc::{boxed::Box, vec::Vec};
use core::mem::ManuallyDrop;
use core::{any::TypeId, ffi::c_void, ptr, ptr::NonNull};

use crate::{Error, LegacyPolicy, layout::extent, loan::access::Access, stream::Queue};

/// Functions of an export block, which depend on the type of its owner.
// The alignment leaves the bits of `ManagedFacts::OF_EXPORT` free.
#[repr(align(32))]
pub(crate) struct BlockVtable {
    /// The offset of shape and strides in the block.
    pub(crate) dims: usize,
    /// Drops the owner and frees the block, given the block's context. A C function, since the deleter ends with its call.
    pub(crate) release: unsafe extern "C" fn(*mut c_void),
    /// Returns the type of the owner.
    pub(crate) owner_type: fn() -> TypeId,
    /// Returns the stream that the owner's memory is written on, given the block's context.
    pub(crate) stream: unsafe fn(*mut c_void) -> Option<Queue>,
}

/// Shape and strides of a foreign tensor, if those of its struct cannot be used: its producer left the strides null, or may change the
/// lists. They are one boxed list, after the number of axes.
// LAY-04
pub(crate) struct OwnLists(NonNull<i64>);

impl OwnLists {
    /// Copies the lists. Without strides, they are those of C order.
    pub(super) fn copy_of(shape: &[i64], strides: Option<&[i64]>) -> Result<Self, Error> {
        let rank = shape.len();
        let mut list = Vec::new();
        let len = 1 + 2 * rank;
        if list.try_reserve_exact(len).is_err() {
            let bytes = len * size_of::<i64>();
            return Err(Error::OutOfMemory { bytes });
        }
        list.push(i64::try_from(rank).unwrap_or(0));
        list.extend_from_slice(shape);
        list.extend_from_slice(strides.unwrap_or(shape));
        if strides.is_none() {
            extent::fill_row_major(&mut list[1 + rank..], shape, 1);
        }
        let list = Box::into_raw(list.into_boxed_slice());
        // SAFETY: the address of a box is not null.
        Ok(Self(unsafe { NonNull::new_unchecked(list.cast()) }))
    }

    /// The list that [`copy_of`](Self::copy_of) boxed.
    #[inline]
    fn as_boxed_list(&self) -> *mut [i64] {
        // SAFETY: `self.0` is the address of the list that `copy_of` boxed; its first entry is the number of axes.
        let rank = unsafe { *self.0.as_ptr() };
        let len = 1 + 2 * usize::try_from(rank).unwrap_or(0);
        ptr::slice_from_raw_parts_mut(self.0.as_ptr(), len)
    }

    #[inline]
    pub(super) fn shape_and_strides(&self) -> (&[i64], &[i64]) {
        // SAFETY: `self` owns the list, and does not change it.
        split_list(unsafe { &*self.as_boxed_list() })
    }
}

/// Shape and strides behind the number of axes.
#[inline]
fn split_list(list: &[i64]) -> (&[i64], &[i64]) {
    list[1..].split_at(list.len() / 2)
}

impl Drop for OwnLists {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the list that `copy_of` boxed, which `self` owns, and this is its only drop.
        drop(unsafe { Box::from_raw(self.as_boxed_list()) });
    }
}

/// What is known about a tensor beyond its struct.
///
/// | address | tensor |
/// |---|---|
/// | null | foreign, with the lists of its struct |
/// | [`OwnLists`], which this value owns | foreign |
/// | [`BlockVtable`] | an export of this crate |
///
/// The low bits, which alignment leaves free in the address, hold the flags below. One word makes a `Managed` two words, which
/// are returned in registers or copied one by one. A larger struct is copied by wide loads, and these wait for the narrow stores
/// that have just written its fields: a fifth of the time of an export.
pub(super) struct ManagedFacts(*mut c_void);

impl ManagedFacts {
    /// The bits of [`Access`].
    const ACCESS: usize = 0b11;
    /// The address is that of a table. Set for every export of this crate, and for no foreign tensor.
    const IS_EXPORT: usize = 0b100;
    /// The policy of an export is [`LegacyPolicy::Refuse`].
    const REFUSES_LEGACY: usize = 0b1000;
    /// No other code can access the memory of an export.
    const IS_UNIQUE: usize = 0b1_0000;
    /// All flags of an export.
    const OF_EXPORT: usize = 0b1_1111;
    /// All flags of a foreign tensor.
    const OF_FOREIGN: usize = Self::ACCESS | Self::IS_EXPORT;

    /// The facts of a foreign tensor. By the contract of `Managed::from_raw` it is exclusive, unless `Managed::shared` is called.
    #[inline]
    pub(super) fn foreign(lists: Option<OwnLists>) -> Self {
        let address = lists.map_or(ptr::null_mut(), |lists| {
            ManuallyDrop::new(lists).0.as_ptr().cast::<c_void>()
        });
        Self(address.map_addr(|address| address | Access::Exclusive as usize))
    }

    /// The facts of an export of this crate to which nothing else has access yet.
    #[inline(always)]
    pub(super) fn of_export(
        block: &'static BlockVtable,
        legacy: LegacyPolicy,
        access: Access,
    ) -> Self {
        let policy = match legacy {
            LegacyPolicy::Copy => 0,
            LegacyPolicy::Refuse => Self::REFUSES_LEGACY,
        };
        let flags = access as usize | policy | Self::IS_UNIQUE | Self::IS_EXPORT;
        let address = ptr::from_ref(block).cast_mut().cast::<c_void>();
        Self(address.map_addr(|address| address | flags))
    }

    /// Whether the tensor is an export of this crate.
    #[inline]
    pub(super) fn is_of_export(&self) -> bool {
        self.0.addr() & Self::IS_EXPORT != 0
    }

    /// Whether the tensor is an export of this crate, with these flags.
    #[inline]
    fn is_export_with(&self, flags: usize) -> bool {
        let flags = Self::IS_EXPORT | flags;
        self.0.addr() & flags == flags
    }

    /// The lists of a foreign tensor, if they are not those of its struct. `self` owns them.
    #[inline]
    fn lists(&self) -> Option<ManuallyDrop<OwnLists>> {
        if self.is_of_export() {
            return None;
        }
        let address = self.0.map_addr(|address| address & !Self::OF_FOREIGN);
        NonNull::new(address.cast()).map(|address| ManuallyDrop::new(OwnLists(address)))
    }

    /// Shape and strides of a foreign tensor, if they are not those of its struct.
    #[inline]
    pub(super) fn own_lists(&self) -> Option<(&[i64], &[i64])> {
        let lists = self.lists()?;
        // SAFETY: `self` owns the list, and does not change it.
        Some(split_list(unsafe { &*lists.as_boxed_list() }))
    }

    /// The table of the block, if the tensor is an export of this crate.
    #[inline]
    pub(super) fn block(&self) -> Option<&'static BlockVtable> {
        if !self.is_of_export() {
            return None;
        }
        let block = self.0.map_addr(|address| address & !Self::OF_EXPORT);
        // SAFETY: with the flag `IS_EXPORT` the address is that of a static table, from which `of_export` took it.
        Some(unsafe { &*block.cast::<BlockVtable>() })
    }

    #[inline]
    pub(super) fn access(&self) -> Access {
        // By index: the compiler would generate a branch for each arm of a match.
        const ALL: [Access; 4] = [
            Access::Read,
            Access::Exclusive,
            Access::Shared,
            Access::ReadShared,
        ];
        ALL[self.0.addr() & Self::ACCESS]
    }

    #[inline]
    pub(super) fn set_access(&mut self, access: Access) {
        let set = |address| address & !Self::ACCESS | access as usize;
        self.0 = self.0.map_addr(set);
    }

    /// Whether the tensor is an export of this crate, and no other code can access its memory.
    pub(super) fn is_unique(&self) -> bool {
        self.is_export_with(Self::IS_UNIQUE) && self.access() == Access::Exclusive
    }

    /// Records that other code can access the memory of an export.
    pub(super) fn unmark_unique(&mut self) {
        debug_assert!(self.is_of_export(), "the bit is part of another address");
        self.0 = self.0.map_addr(|address| address & !Self::IS_UNIQUE);
    }

    pub(super) fn legacy_policy(&self) -> LegacyPolicy {
        if self.is_export_with(Self::REFUSES_LEGACY) {
            LegacyPolicy::Refuse
        } else {
            LegacyPolicy::Copy
        }
    }
}

impl Drop for ManagedFacts {
    #[inline]
    fn drop(&mut self) {
        if let Some(lists) = self.lists() {
            drop(ManuallyDrop::into_inner(lists));
        }
    }
}

const _: () = {
    assert!(ManagedFacts::OF_EXPORT < align_of::<BlockVtable>());
    assert!(ManagedFacts::OF_FOREIGN < align_of::<i64>());
    assert!(Access::ReadShared as usize == ManagedFacts::ACCESS);
};

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Access; 4] = [
        Access::Read,
        Access::Exclusive,
        Access::Shared,
        Access::ReadShared,
    ];

    #[test]
    fn each_fact_is_kept_beside_the_others() {
        unsafe extern "C" fn ignore(_: *mut c_void) {}
        const BLOCK: &BlockVtable = &BlockVtable {
            dims: 7,
            release: ignore,
            owner_type: TypeId::of::<u8>,
            stream: |_| None,
        };
        for (access, legacy) in ALL
            .into_iter()
            .flat_map(|access| [LegacyPolicy::Copy, LegacyPolicy::Refuse].map(|it| (access, it)))
        {
            let mut facts = ManagedFacts::of_export(BLOCK, legacy, access);
            for changed in ALL {
                assert_eq!(facts.block().map(|block| block.dims), Some(7));
                assert_eq!(facts.legacy_policy(), legacy);
                assert!(facts.own_lists().is_none());
                facts.set_access(changed);
                assert_eq!(facts.access(), changed);
                assert_eq!(facts.is_unique(), changed == Access::Exclusive);
            }
            facts.set_access(Access::Exclusive);
            facts.unmark_unique();
            assert!(!facts.is_unique());
        }
    }

    #[test]
    fn lists_are_kept_and_foreign_tensors_have_no_table() {
        for (shape, given, expected) in [
            (&[2_i64, 3, 4][..], None, &[12_i64, 4, 1][..]),
            (&[2; 9], None, &[256, 128, 64, 32, 16, 8, 4, 2, 1]),
            (&[5, 0], None, &[1, 1]),
            (&[2, 3], Some(&[7, -9][..]), &[7, -9]),
        ] {
            // Between allocations of other sizes, so that their addresses differ in every bit that alignment permits.
            let facts = |gap: usize| {
                let lists = OwnLists::copy_of(shape, given).ok();
                (ManagedFacts::foreign(lists), alloc::vec![0_u8; 8 * gap])
            };
            let mut several: Vec<_> = (1..20).map(facts).collect();
            for (facts, _) in &mut several {
                // The address of the lists is not read as flags of an export.
                assert_eq!(facts.access(), Access::Exclusive);
                assert!(!facts.is_unique());
                assert_eq!(facts.legacy_policy(), LegacyPolicy::Copy);
                facts.set_access(Access::Shared);
                assert_eq!(facts.own_lists(), Some((shape, expected)));
                assert!(facts.block().is_none());
                assert_eq!(facts.access(), Access::Shared);
            }
        }
        let facts = ManagedFacts::foreign(None);
        assert!(facts.block().is_none() && facts.own_lists().is_none());
        assert_eq!(facts.access(), Access::Exclusive);
        assert!(!facts.is_unique());
    }
}
