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
#![expect(unsafe_code, reason = "reads and writes memory by its address")]

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
        const LARGEST: usize = *[1_usize $(, $bytes)*].last().unwrap();

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

/// Copies words of `N` bytes, one of which side is shared: the one that is written with `STORE`, else the one that is read.
///
/// # Safety
///
/// As [`load`], or [`store`]; `N` divides `bytes`.
#[inline(always)]
unsafe fn words<const STORE: bool, const N: usize>(from: *const u8, to: *mut u8, bytes: usize) {
    for at in (0..bytes).step_by(N) {
        let (from, to) = (from.wrapping_add(at), to.wrapping_add(at));
        let mut word = [0; 8];
        if STORE {
            // SAFETY: `N` bytes that may be read, and room for as many.
            unsafe { copy_nonoverlapping(from, word.as_mut_ptr(), N) };
            // SAFETY: a word that may be written like this.
            unsafe { store_word::<N>(to, u64::from_le_bytes(word)) };
        } else {
            // SAFETY: a word that may be read like this.
            word = unsafe { load_word::<N>(from) }.to_le_bytes();
            // SAFETY: `N` bytes of a word, and room for as many.
            unsafe { copy_nonoverlapping(word.as_ptr(), to, N) };
        }
    }
}

/// # Safety
///
/// As [`load`], or with `STORE` as [`store`].
#[inline(always)]
unsafe fn copy<const STORE: bool>(
    mut from: *const u8,
    mut to: *mut u8,
    bytes: usize,
    mut alignment: usize,
) {
    let shared = if STORE { to.addr() } else { from.addr() };
    // The largest words are for where they may be; a few bytes are not worth it.
    let few = bytes < 4 * LARGEST;
    let gap = shared.wrapping_neg() % LARGEST;
    let front = if few { bytes } else { gap };
    let rest = (bytes - front) % LARGEST;
    for bytes in [front, bytes - front - rest, rest] {
        let words = match 1 << (bytes | alignment | LARGEST).trailing_zeros() {
            8 => words::<STORE, 8>,
            4 => words::<STORE, 4>,
            2 => words::<STORE, 2>,
            _ => words::<STORE, 1>,
        };
        // SAFETY: the caller's promises for this part.
        unsafe { words(from, to, bytes) };
        (from, to) = (from.wrapping_add(bytes), to.wrapping_add(bytes));
        // The other parts begin where the largest word may.
        alignment = LARGEST;
    }
}

/// Copies `bytes` from memory that others may be writing. Numbers of `alignment`, if that is the one of `from`, are not torn.
///
/// # Safety
///
/// `from` has `bytes` initialised bytes, and `to` may be written; no Rust code writes the first meanwhile but by [`store`] or
/// atomic accesses, and none touches the second.
#[inline]
pub(crate) unsafe fn load(from: *const u8, to: *mut u8, bytes: usize, alignment: usize) {
    // SAFETY: the caller's promises.
    unsafe { copy::<false>(from, to, bytes, alignment) }
}

/// Copies `bytes` to memory that others may be reading and writing. Numbers of `alignment`, if that is the one of `to`, are
/// not torn.
///
/// # Safety
///
/// As [`load`], with the sides exchanged.
#[inline]
pub(crate) unsafe fn store(from: *const u8, to: *mut u8, bytes: usize, alignment: usize) {
    // SAFETY: the caller's promises.
    unsafe { copy::<true>(from, to, bytes, alignment) }
}
