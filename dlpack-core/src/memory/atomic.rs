//! Reads and writes memory that others may write at the same time.
//!
//! Plain reads would be data races. Atomic ones would be little better: what meets must be of one size, while one array can
//! come here twice, as words of four bytes and as words of eight, and NumPy's own writes are plain.
//!
//! So each access is an instruction that the compiler does not look into. It does what relaxed atomic accesses to its bytes
//! could do, of whatever size the others use: any mixture of old bytes and new ones may come out, and nothing else happens.
//! That holds for code of any language, which by now is instructions that store bytes. The processor promises more: an
//! aligned word of 1, 2, 4 or 8 bytes is read and written whole. Where no instructions are given below, single bytes are
//! read and written, and a number that changes meanwhile can be torn.
#![expect(
    unsafe_code,
    reason = "reads and writes memory that is known by its address"
)]

use core::ptr::copy_nonoverlapping;
use core::sync::atomic::{AtomicU8, Ordering};

#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! instructions {
    ($accesses:ident) => {
        $accesses! {
            1 "movzx {word:e}, byte ptr [{at}]" "mov byte ptr [{at}], {word:l}"
            2 "movzx {word:e}, word ptr [{at}]" "mov word ptr [{at}], {word:x}"
            4 "mov {word:e}, dword ptr [{at}]" "mov dword ptr [{at}], {word:e}"
            8 "mov {word:r}, qword ptr [{at}]" "mov qword ptr [{at}], {word:r}"
        }
    };
}

#[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
macro_rules! instructions {
    ($accesses:ident) => {
        $accesses! {
            1 "ldrb {word:w}, [{at}]" "strb {word:w}, [{at}]"
            2 "ldrh {word:w}, [{at}]" "strh {word:w}, [{at}]"
            4 "ldr {word:w}, [{at}]" "str {word:w}, [{at}]"
            8 "ldr {word:x}, [{at}]" "str {word:x}, [{at}]"
        }
    };
}

#[cfg(any(
    miri,
    not(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    ))
))]
macro_rules! instructions {
    ($accesses:ident) => {
        $accesses! {}
    };
}

macro_rules! accesses {
    ($($bytes:literal $load:literal $store:literal)*) => {
        /// The largest word that can be read and written whole.
        const LARGEST: usize = {
            let sizes: &[usize] = &[1 $(, $bytes)*];
            sizes[sizes.len() - 1]
        };

        /// Reads a word of `N` bytes, 1 or what has an instruction, into the lowest bytes of what comes back.
        ///
        /// # Safety
        ///
        /// `N` initialised bytes may be read at `at`, whoever may be writing them.
        #[inline(always)]
        unsafe fn load_word<const N: usize>(at: *const u8) -> u64 {
            match N {
                $($bytes => {
                    let word: u64;
                    // SAFETY: the instruction reads what the caller says may be read, and leaves all else as it is.
                    unsafe {
                        core::arch::asm!(
                            $load,
                            at = in(reg) at,
                            word = lateout(reg) word,
                            options(nostack, preserves_flags, readonly)
                        );
                    }
                    word
                })*
                _ => {
                    // SAFETY: a byte that may be read, and is accessed like this by all Rust code.
                    let byte = unsafe { AtomicU8::from_ptr(at.cast_mut()) };
                    byte.load(Ordering::Relaxed).into()
                }
            }
        }

        /// Writes the lowest `N` bytes of a word, 1 or what has an instruction.
        ///
        /// # Safety
        ///
        /// `N` bytes may be written at `at`, whoever may be reading and writing them.
        #[inline(always)]
        unsafe fn store_word<const N: usize>(at: *mut u8, word: u64) {
            match N {
                $($bytes => {
                    // SAFETY: the instruction writes what the caller says may be written, and leaves all else as it is.
                    unsafe {
                        core::arch::asm!(
                            $store,
                            at = in(reg) at,
                            word = in(reg) word,
                            options(nostack, preserves_flags)
                        );
                    }
                })*
                _ => {
                    // SAFETY: a byte that may be written, and is accessed like this by all Rust code.
                    let byte = unsafe { AtomicU8::from_ptr(at) };
                    byte.store(word.to_le_bytes()[0], Ordering::Relaxed);
                }
            }
        }
    };
}

instructions!(accesses);

/// The largest word that divides both an item's size and its alignment, or address.
const fn word(bytes: usize, alignment: usize) -> usize {
    1 << (bytes | alignment | LARGEST).trailing_zeros()
}

/// Copies `bytes` from memory that others may be writing: whole words, where `alignment` is that of `from`.
///
/// # Safety
///
/// `from` has `bytes` initialised bytes, and `to` may be written; no Rust code writes the first meanwhile but by [`store`] or
/// atomic accesses, and none touches the second.
#[inline]
pub(crate) unsafe fn load(from: *const u8, to: *mut u8, bytes: usize, alignment: usize) {
    /// As the function around it, in words of `N` bytes, which divide `bytes`.
    #[inline(always)]
    unsafe fn words<const N: usize>(from: *const u8, to: *mut u8, bytes: usize) {
        for at in (0..bytes).step_by(N) {
            // SAFETY: one of the words that the caller says may be read.
            let word = unsafe { load_word::<N>(from.wrapping_add(at)) };
            let word = word.to_le_bytes();
            // SAFETY: `N` bytes of a word, and room for as many.
            unsafe { copy_nonoverlapping(word.as_ptr(), to.wrapping_add(at), N) };
        }
    }
    let words = match word(bytes, alignment) {
        8 => words::<8>,
        4 => words::<4>,
        2 => words::<2>,
        _ => words::<1>,
    };
    // SAFETY: the caller's promises.
    unsafe { words(from, to, bytes) }
}

/// Copies `bytes` to memory that others may be reading and writing: whole words, where `alignment` is that of `to`.
///
/// # Safety
///
/// As [`load`], with the sides exchanged.
#[inline]
pub(crate) unsafe fn store(from: *const u8, to: *mut u8, bytes: usize, alignment: usize) {
    /// As the function around it, in words of `N` bytes, which divide `bytes`.
    #[inline(always)]
    unsafe fn words<const N: usize>(from: *const u8, to: *mut u8, bytes: usize) {
        for at in (0..bytes).step_by(N) {
            let mut word = [0; 8];
            // SAFETY: `N` bytes of what is copied, and room for as many.
            unsafe { copy_nonoverlapping(from.wrapping_add(at), word.as_mut_ptr(), N) };
            // SAFETY: one of the words that the caller says may be written.
            unsafe { store_word::<N>(to.wrapping_add(at), u64::from_le_bytes(word)) };
        }
    }
    let words = match word(bytes, alignment) {
        8 => words::<8>,
        4 => words::<4>,
        2 => words::<2>,
        _ => words::<1>,
    };
    // SAFETY: the caller's promises.
    unsafe { words(from, to, bytes) }
}
