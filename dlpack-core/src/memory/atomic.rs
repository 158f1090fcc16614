//! Reads and writes memory that others write at the same time, in atomic words.
#![expect(
    unsafe_code,
    reason = "makes atomics of memory that is known by its address"
)]

#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

use crate::element::Plain;

/// The size of the atomic accesses to memory that several write at once: a scalar, or the largest
/// part of one that has atomics. All of them agree on it, since atomics of different sizes must not race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    One,
    Two,
    Four,
    #[cfg(target_has_atomic = "64")]
    Eight,
}

impl Word {
    /// The word in which the scalars of `T` are read and written.
    pub(crate) const fn of<T: Plain>() -> Self {
        let (size, alignment) = (size_of::<T::Scalar>(), align_of::<T::Scalar>());
        match if size < alignment { size } else { alignment } {
            0 | 1 => Self::One,
            2 => Self::Two,
            4 => Self::Four,
            #[cfg(target_has_atomic = "64")]
            8.. => Self::Eight,
            _ => Self::Four,
        }
    }

    /// The largest word that divides both an item's size and its address.
    pub(crate) fn dividing(itemsize: usize, address: usize) -> Self {
        match 1 << (itemsize | address | 8).trailing_zeros() {
            1 => Self::One,
            2 => Self::Two,
            #[cfg(target_has_atomic = "64")]
            8 => Self::Eight,
            _ => Self::Four,
        }
    }

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            #[cfg(target_has_atomic = "64")]
            Self::Eight => 8,
        }
    }
}

/// Copies `bytes` from memory that others may be writing.
///
/// # Safety
///
/// `from` has `bytes` initialised bytes, is aligned to `word`, and is written in no other way
/// meanwhile than by atomic accesses of `word` (or by consumers, which are no Rust code). `to` may be
/// written. `bytes` is a multiple of `word`.
pub(crate) unsafe fn load(from: *const u8, to: *mut u8, bytes: usize, word: Word) {
    macro_rules! load {
        ($atomic:ident, $int:ty, $at:ident) => {{
            let (from, to) = (from.wrapping_add($at), to.wrapping_add($at));
            // SAFETY: `from` is a valid, aligned word that is only accessed atomically.
            let word = unsafe { $atomic::from_ptr(from.cast_mut().cast()) };
            let value = word.load(Ordering::Relaxed);
            // SAFETY: `to` has room for the word, at any alignment.
            unsafe { to.cast::<$int>().write_unaligned(value) };
        }};
    }
    for at in (0..bytes).step_by(word.bytes()) {
        match word {
            Word::One => load!(AtomicU8, u8, at),
            Word::Two => load!(AtomicU16, u16, at),
            Word::Four => load!(AtomicU32, u32, at),
            #[cfg(target_has_atomic = "64")]
            Word::Eight => load!(AtomicU64, u64, at),
        }
    }
}

/// Copies `bytes` to memory that others may be reading and writing.
///
/// # Safety
///
/// As [`load`], with the sides exchanged.
pub(crate) unsafe fn store(from: *const u8, to: *mut u8, bytes: usize, word: Word) {
    macro_rules! store {
        ($atomic:ident, $int:ty, $at:ident) => {{
            let (from, to) = (from.wrapping_add($at), to.wrapping_add($at));
            // SAFETY: `from` has the bytes of the word, at any alignment.
            let value = unsafe { from.cast::<$int>().read_unaligned() };
            // SAFETY: `to` is a valid, aligned word that is only accessed atomically.
            let word = unsafe { $atomic::from_ptr(to.cast()) };
            word.store(value, Ordering::Relaxed);
        }};
    }
    for at in (0..bytes).step_by(word.bytes()) {
        match word {
            Word::One => store!(AtomicU8, u8, at),
            Word::Two => store!(AtomicU16, u16, at),
            Word::Four => store!(AtomicU32, u32, at),
            #[cfg(target_has_atomic = "64")]
            Word::Eight => store!(AtomicU64, u64, at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Word;

    #[test]
    fn a_word_is_the_largest_that_divides_size_and_address() {
        for itemsize in [1, 2, 4, 8, 16] {
            for address in 0..32 {
                let bytes = Word::dividing(itemsize, address).bytes();
                let both = itemsize | address;
                assert_eq!(both % bytes, 0, "{itemsize} at {address}");
                let largest = Word::dividing(16, 0).bytes();
                assert!(bytes == largest || both % (2 * bytes) != 0);
            }
        }
    }
}
