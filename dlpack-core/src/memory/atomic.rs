//! Reads and writes memory that others may write at the same time.
//!
//! Plain reads would be data races. Atomic ones would be little better: what meets must be of one size, while one array can
//! come here twice, as words of four bytes and as words of eight, and NumPy's own writes are plain.
//!
//! So each access is made by instructions that the compiler does not look into. They do what relaxed atomic accesses to single
//! bytes could do, of whatever size the others use: any mixture of old bytes and new ones may come out, and nothing else
//! happens. That holds for code of any language, which by now is instructions that store bytes, and it holds for instructions of
//! any width, so that much is copied as quickly as by `memcpy`.
//!
//! The processor promises more: an aligned number of 1, 2, 4 or 8 bytes is read and written whole. What follows keeps to
//! instructions of which that is said, on the side that is shared:
//!
//! | | promised by |
//! |---|---|
//! | one aligned word | Intel's and AMD's manuals, under "atomicity"; Arm's, under "single-copy atomicity" |
//! | `movdqa` | processors with AVX access 16 aligned bytes at once; older ones do so by halves |
//! | `rep movsq` | it is as many `movsq`, each of which accesses an aligned word; only their order is open |
//! | `ldp`, `stp` of `x` registers | Arm's manual: two accesses, one for each register |
//! | `vmovdqu` of `ymm` registers | nobody: for numbers of one byte |
//!
//! A word that is not aligned may be accessed in parts, so it is used only for bytes. Where no instructions are given below,
//! single bytes are read and written, and a number that changes meanwhile can be torn.
#![expect(unsafe_code, reason = "reads and writes memory by its address")]

mod lines;

pub(crate) use lines::{LINE, LINE_ALIGNMENT};

use lines::{line, lines, load_line_avx, shared_lines, wide};

use core::mem::MaybeUninit;
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

/// Reads one byte, in memory that may have been lent to be read only: `AtomicU8::from_ptr` is for memory that is written too.
///
/// # Safety
///
/// The byte is initialised and may be read, and Rust code writes it by atomic accesses only.
#[inline(always)]
unsafe fn load_byte(at: *const u8) -> u8 {
    #[cfg(not(miri))]
    {
        // SAFETY: the caller's promise; an atomic load of one byte is allowed in memory that is only read.
        unsafe { &*at.cast::<AtomicU8>() }.load(Ordering::Relaxed)
    }
    // Stacked Borrows, unlike Tree Borrows, refuses such a reference where no write is allowed, so none is made.
    #[cfg(miri)]
    {
        use core::intrinsics::{AtomicOrdering, atomic_load};
        // SAFETY: the caller's promise.
        unsafe { atomic_load::<u8, { AtomicOrdering::Relaxed }>(at) }
    }
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
                    unsafe { load_byte(at) }.into()
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
    // As iterators, these steps cost more than the words.
    let mut at = 0;
    while at < bytes {
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
        at += N;
    }
}

/// Copies few bytes, in words that tear no number of `alignment`.
///
/// # Safety
///
/// As [`load`], or with `STORE` as [`store`].
#[inline(always)]
unsafe fn few<const STORE: bool>(from: *const u8, to: *mut u8, bytes: usize, alignment: usize) {
    // Bytes cannot be torn, so the largest words are good for them.
    let largest = match 1 << (alignment | LARGEST).trailing_zeros() {
        1 => LARGEST,
        aligned => aligned,
    };
    let mut done = 0;
    macro_rules! words_of {
        ($($size:literal)*) => {$(
            if $size <= largest {
                let (from, to) = (from.wrapping_add(done), to.wrapping_add(done));
                let whole = (bytes - done) / $size * $size;
                // SAFETY: the caller's promises, of which this is a part.
                unsafe { words::<STORE, $size>(from, to, whole) };
                done += whole;
            }
        )*};
    }
    words_of!(8 4 2 1);
    debug_assert_eq!(bytes, done, "a byte is a word");
}

/// Copies bytes, few of them by code that stands where it is called.
///
/// # Safety
///
/// As [`load`], or with `STORE` as [`store`].
#[inline(always)]
unsafe fn copy<const STORE: bool>(from: *const u8, to: *mut u8, bytes: usize, alignment: usize) {
    if bytes <= 32 {
        // SAFETY: the caller's promises.
        unsafe { few::<STORE>(from, to, bytes, alignment) }
    } else {
        // SAFETY: as above.
        unsafe { many::<STORE>(from, to, bytes, alignment) }
    }
}

/// Copies any number of bytes.
///
/// # Safety
///
/// As [`load`], or with `STORE` as [`store`].
#[inline(never)]
unsafe fn many<const STORE: bool>(
    mut from: *const u8,
    mut to: *mut u8,
    mut bytes: usize,
    mut alignment: usize,
) {
    if bytes >= 2 * LINE {
        let shared = if STORE { to.addr() } else { from.addr() };
        let front = shared.wrapping_neg() % 16;
        // SAFETY: the caller's promises, of which this is a part.
        unsafe { few::<STORE>(from, to, front, alignment) };
        (from, to) = (from.wrapping_add(front), to.wrapping_add(front));
        let whole = (bytes - front) / LINE * LINE;
        // SAFETY: as above; what is shared begins at a multiple of 16 bytes, and there is a line at least.
        if alignment % 2 == 0 || !unsafe { wide(from, to, whole) } {
            // SAFETY: as above.
            unsafe { lines::<STORE>(from, to, whole) };
        }
        (from, to) = (from.wrapping_add(whole), to.wrapping_add(whole));
        bytes -= front + whole;
        alignment = LARGEST;
    }
    // SAFETY: as above.
    unsafe { few::<STORE>(from, to, bytes, alignment) };
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

/// Copies a line from memory that others may be writing; no aligned number in it is torn.
///
/// # Safety
///
/// As [`load`], for [`LINE`] bytes; `from` is a multiple of [`LINE_ALIGNMENT`].
#[inline(always)]
pub(crate) unsafe fn load_line(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promises.
    unsafe { line::<false>(from, to) }
}

/// Copies a line as [`load_line`] does; with `AVX`, in code that is compiled for processors with AVX.
///
/// # Safety
///
/// As [`load_line`]; with `AVX`, the processor has it.
#[inline(always)]
pub(crate) unsafe fn load_line_by<const AVX: bool>(from: *const u8, to: *mut u8) {
    if AVX {
        // SAFETY: the caller's promises.
        unsafe { load_line_avx(from, to) }
    } else {
        // SAFETY: as above.
        unsafe { line::<false>(from, to) }
    }
}

/// Copies a line to memory that others may be reading and writing; no aligned number in it is torn.
///
/// # Safety
///
/// As [`store`], for [`LINE`] bytes; `to` is a multiple of [`LINE_ALIGNMENT`].
#[inline(always)]
pub(crate) unsafe fn store_line(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promises.
    unsafe { line::<true>(from, to) }
}

/// Copies `bytes` between memory that others may be reading and writing on both sides; where both are the same memory, it is
/// open which bytes are read before they are written. Numbers of `alignment`, if that is the one of both sides, are not torn.
///
/// # Safety
///
/// As [`load`] for `from`, and as [`store`] for `to`, but that each may be the memory of the other.
pub(crate) unsafe fn transfer(
    mut from: *const u8,
    mut to: *mut u8,
    mut bytes: usize,
    alignment: usize,
) {
    let mut block = MaybeUninit::<[[u64; 8]; 32]>::uninit();
    let block = block.as_mut_ptr().cast::<u8>();
    let through_block = |from: *const u8, to: *mut u8, bytes: usize| {
        for done in (0..bytes).step_by(2048) {
            let few = usize::min(2048, bytes - done);
            // SAFETY: the caller's bytes; `block` is ours, and has room for so many.
            unsafe { load(from.wrapping_add(done), block, few, alignment) };
            // SAFETY: as above; they were written to `block`.
            unsafe { store(block, to.wrapping_add(done), few, alignment) };
        }
    };
    if (from.addr() ^ to.addr()) % LINE_ALIGNMENT == 0 && bytes >= 4 * LINE {
        let front = to.addr().wrapping_neg() % LINE_ALIGNMENT;
        let whole = (bytes - front) / LINE * LINE;
        through_block(from, to, front);
        (from, to) = (from.wrapping_add(front), to.wrapping_add(front));
        // SAFETY: the caller's bytes, a line or more, which begin at multiples of 16 on both sides.
        if unsafe { shared_lines(from, to, whole) } {
            (from, to) = (from.wrapping_add(whole), to.wrapping_add(whole));
            bytes -= whole;
        }
        bytes -= front;
    }
    through_block(from, to, bytes);
}
