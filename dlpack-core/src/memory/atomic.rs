//! Reads and writes of memory that other threads may write at the same time.
//!
//! Plain accesses would be data races. Rust's atomics do not help: concurrent atomic accesses must have the same size, but one
//! thread may read an array in words of four bytes while another writes it in words of eight. NumPy's writes are not atomic at all.
//!
//! Therefore each access is inline assembly, which the compiler does not analyse. It has the effect of relaxed atomic accesses to
//! the single bytes, whatever size the other accesses have: a read returns some mixture of old and new bytes, and nothing else
//! can happen. This holds against code in any language, because at run time that code consists of instructions that store
//! bytes. It holds for instructions of any width, so large copies are as fast as `memcpy`.
//!
//! The processor guarantees more: an aligned number of 1, 2, 4 or 8 bytes is read and written as a whole. On the shared side of a
//! copy, which other threads access, only instructions with this guarantee are used:
//!
//! | | guaranteed by |
//! |---|---|
//! | one aligned word, also of a vector register | Intel's and AMD's manuals, under "atomicity"; Arm's, under "single-copy atomicity" |
//! | `movdqa` | processors with AVX access 16 aligned bytes at once; older ones access two halves |
//! | `rep movsq` | it equals a sequence of `movsq`, each of which accesses an aligned word; only their order is unspecified |
//! | `ldp`, `stp` of `x` registers | Arm's manual: two accesses, one for each register |
//! | `vmovdqu` of `ymm` registers | no manual, so it is used for numbers of one byte only |
//!
//! The processor may split an access to an unaligned word, so unaligned words are used only to copy numbers of one byte. On
//! targets for which this file lists no instructions, single bytes are accessed, and a number that changes meanwhile can be torn.
#![expect(unsafe_code, reason = "reads and writes memory by its address")]

mod floats;
mod lines;

pub(crate) use floats::{load_float, store_float};
pub(crate) use lines::{LINE, LINE_ALIGNMENT};

use lines::{copy_line, copy_lines, copy_shared_lines, copy_wide_lines, load_line_avx};

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

/// Reads one byte atomically, also from read-only memory. `AtomicU8::from_ptr` requires memory that is writable.
///
/// # Safety
///
/// The byte is initialised and readable, and Rust code writes it only by atomic accesses.
#[inline(always)]
unsafe fn load_byte(at: *const u8) -> u8 {
    #[cfg(not(miri))]
    {
        // SAFETY: same contract as this function's. An atomic load of one byte is allowed in read-only memory.
        unsafe { &*at.cast::<AtomicU8>() }.load(Ordering::Relaxed)
    }
    // Stacked Borrows, unlike Tree Borrows, rejects an atomic reference to read-only memory, so none is made here.
    #[cfg(miri)]
    {
        use core::intrinsics::{AtomicOrdering, atomic_load};
        // SAFETY: same contract as this function's: the byte is readable, and Rust code writes it only atomically.
        unsafe { atomic_load::<u8, { AtomicOrdering::Relaxed }>(at) }
    }
}

macro_rules! accesses {
    ($($bytes:literal $load:literal $store:literal)*) => {
        /// The size of the largest word that is read and written as a whole.
        const LARGEST: usize = *[1_usize $(, $bytes)*].last().unwrap();

        /// Reads a word of `N` bytes into the lowest bytes of the result. `N` is 1 or a size that has an instruction.
        ///
        /// # Safety
        ///
        /// `N` initialised bytes are readable at `at`. Other threads may write them, Rust code by [`store_word`] or atomically.
        #[inline(always)]
        unsafe fn load_word<const N: usize>(at: *const u8) -> u64 {
            match N {
                $($bytes => {
                    let word: u64;
                    // SAFETY: the instruction only reads `N` bytes at `at`, as this function's contract allows.
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
                    // SAFETY: the byte is readable by this function's contract, and Rust code writes it only atomically.
                    unsafe { load_byte(at) }.into()
                }
            }
        }

        /// Writes the lowest `N` bytes of a word. `N` is 1 or a size that has an instruction.
        ///
        /// # Safety
        ///
        /// `N` bytes are writable at `at`. Other threads may access them, Rust code by these functions or atomically.
        #[inline(always)]
        unsafe fn store_word<const N: usize>(at: *mut u8, word: u64) {
            match N {
                $($bytes => {
                    // SAFETY: the instruction only writes `N` bytes at `at`, as this function's contract allows.
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
                    // SAFETY: the byte is writable by this function's contract, and Rust code accesses it only atomically.
                    let byte = unsafe { AtomicU8::from_ptr(at) };
                    byte.store(word.to_le_bytes()[0], Ordering::Relaxed);
                }
            }
        }
    };
}

instructions!(accesses);

/// Copies words of `N` bytes. Other threads access one side: with `STORE` the destination, otherwise the source.
///
/// # Safety
///
/// The contract of [`load_bytes`], or with `STORE` of [`store_bytes`]. `N` divides `bytes`.
#[inline(always)]
unsafe fn copy_words<const STORE: bool, const N: usize>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
) {
    // A plain counter: with iterators these steps would cost more than the copies of the words.
    let mut at = 0;
    while at < bytes {
        let (from, to) = (from.wrapping_add(at), to.wrapping_add(at));
        let mut word = [0; 8];
        if STORE {
            // SAFETY: `N` bytes of the unshared source are readable by this function's contract, and `word` has space for them.
            unsafe { copy_nonoverlapping(from, word.as_mut_ptr(), N) };
            // SAFETY: `N` bytes of the shared destination are writable by this function's contract.
            unsafe { store_word::<N>(to, u64::from_le_bytes(word)) };
        } else {
            // SAFETY: `N` bytes of the shared source are readable by this function's contract.
            word = unsafe { load_word::<N>(from) }.to_le_bytes();
            // SAFETY: `word` has `N` bytes, and the unshared destination is writable for as many by this function's contract.
            unsafe { copy_nonoverlapping(word.as_ptr(), to, N) };
        }
        at += N;
    }
}

/// Copies a few bytes, in words that do not tear numbers of this `alignment`.
///
/// # Safety
///
/// The contract of [`load_bytes`], or with `STORE` of [`store_bytes`].
#[inline(always)]
unsafe fn copy_few<const STORE: bool>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    alignment: usize,
) {
    // A byte cannot be torn, so the largest words may copy bytes.
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
                // SAFETY: same contract as this function's, for a part of its bytes; `$size` divides `whole`.
                unsafe { copy_words::<STORE, $size>(from, to, whole) };
                done += whole;
            }
        )*};
    }
    words_of!(8 4 2 1);
    debug_assert_eq!(bytes, done, "a byte is a word");
}

/// Copies bytes. The code for up to 32 bytes is inlined.
///
/// # Safety
///
/// The contract of [`load_bytes`], or with `STORE` of [`store_bytes`].
#[inline(always)]
unsafe fn copy_bytes<const STORE: bool>(
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    alignment: usize,
) {
    if bytes <= 32 {
        // SAFETY: same contract as this function's: `from` is readable and `to` writable for `bytes` bytes.
        unsafe { copy_few::<STORE>(from, to, bytes, alignment) }
    } else {
        // SAFETY: same contract as this function's: `from` is readable and `to` writable for `bytes` bytes.
        unsafe { copy_many::<STORE>(from, to, bytes, alignment) }
    }
}

/// Copies any number of bytes, most of them in cache lines if there are two lines or more.
///
/// # Safety
///
/// The contract of [`load_bytes`], or with `STORE` of [`store_bytes`].
#[inline(never)]
unsafe fn copy_many<const STORE: bool>(
    mut from: *const u8,
    mut to: *mut u8,
    mut bytes: usize,
    mut alignment: usize,
) {
    if bytes >= 2 * LINE {
        let shared = if STORE { to.addr() } else { from.addr() };
        let front = shared.wrapping_neg() % 16;
        // SAFETY: same contract as this function's, for the first `front` of its bytes.
        unsafe { copy_few::<STORE>(from, to, front, alignment) };
        (from, to) = (from.wrapping_add(front), to.wrapping_add(front));
        let whole = (bytes - front) / LINE * LINE;
        // SAFETY: same contract as this function's, for the `whole` bytes after `front`, which are one line or more.
        if alignment % 2 == 0 || !unsafe { copy_wide_lines(from, to, whole) } {
            // SAFETY: same contract as this function's, for these bytes; the shared side begins at a multiple of 16 bytes.
            unsafe { copy_lines::<STORE>(from, to, whole) };
        }
        (from, to) = (from.wrapping_add(whole), to.wrapping_add(whole));
        bytes -= front + whole;
        alignment = LARGEST;
    }
    // SAFETY: same contract as this function's, for the bytes that are not copied yet.
    unsafe { copy_few::<STORE>(from, to, bytes, alignment) };
}

/// Copies `bytes` from memory that other threads may write. If `from` has this `alignment`, numbers of it are not torn.
///
/// # Safety
///
/// `from` is readable for `bytes` initialised bytes, and `to` is writable for as many. Meanwhile Rust code writes the source only
/// by [`store_bytes`] or atomic accesses, and does not access the destination.
#[inline]
pub(crate) unsafe fn load_bytes(from: *const u8, to: *mut u8, bytes: usize, alignment: usize) {
    // SAFETY: same contract as this function's: `from` is readable, `to` is writable, and `from` is the shared side.
    unsafe { copy_bytes::<false>(from, to, bytes, alignment) }
}

/// Copies `bytes` to memory that other threads may read and write. If `to` has this `alignment`, numbers of it are not torn.
///
/// # Safety
///
/// The contract of [`load_bytes`] with the sides exchanged: `to` is the shared side.
#[inline]
pub(crate) unsafe fn store_bytes(from: *const u8, to: *mut u8, bytes: usize, alignment: usize) {
    // SAFETY: same contract as this function's: `from` is readable, `to` is writable, and `to` is the shared side.
    unsafe { copy_bytes::<true>(from, to, bytes, alignment) }
}

/// Copies a cache line from memory that other threads may write. No aligned number in it is torn.
///
/// # Safety
///
/// The contract of [`load_bytes`] for [`LINE`] bytes. `from` is a multiple of [`LINE_ALIGNMENT`].
#[inline(always)]
pub(crate) unsafe fn load_line(from: *const u8, to: *mut u8) {
    // SAFETY: same contract as this function's: `from` has a line and is aligned, and `to` is writable for a line.
    unsafe { copy_line::<false>(from, to) }
}

/// Copies a cache line as [`load_line`] does. With `AVX`, the code is compiled for processors with AVX.
///
/// # Safety
///
/// The contract of [`load_line`]. With `AVX`, the processor has AVX.
#[inline(always)]
pub(crate) unsafe fn load_line_by<const AVX: bool>(from: *const u8, to: *mut u8) {
    if AVX {
        // SAFETY: same contract as this function's: the sides are those of `load_line`, and the processor has AVX.
        unsafe { load_line_avx(from, to) }
    } else {
        // SAFETY: same contract as this function's: `from` has a line and is aligned, and `to` is writable for a line.
        unsafe { copy_line::<false>(from, to) }
    }
}

/// Copies a cache line to memory that other threads may read and write. No aligned number in it is torn.
///
/// # Safety
///
/// The contract of [`store_bytes`] for [`LINE`] bytes. `to` is a multiple of [`LINE_ALIGNMENT`].
#[inline(always)]
pub(crate) unsafe fn store_line(from: *const u8, to: *mut u8) {
    // SAFETY: same contract as this function's: `from` has a line, and `to` is aligned and writable for a line.
    unsafe { copy_line::<true>(from, to) }
}

/// Copies `bytes` if other threads may read and write both sides. If both are the same memory, it is unspecified which bytes are
/// read before they are written. If both sides have this `alignment`, numbers of it are not torn.
///
/// # Safety
///
/// The contract of [`load_bytes`] for `from` and of [`store_bytes`] for `to`, except that both sides may be the same memory.
pub(crate) unsafe fn transfer_bytes(
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
            // SAFETY: `from` is readable by this function's contract. `block` is local and has 2048 bytes.
            unsafe { load_bytes(from.wrapping_add(done), block, few, alignment) };
            // SAFETY: `load_bytes` has initialised these bytes of `block`, and `to` is writable by this function's contract.
            unsafe { store_bytes(block, to.wrapping_add(done), few, alignment) };
        }
    };
    if (from.addr() ^ to.addr()) % LINE_ALIGNMENT == 0 && bytes >= 4 * LINE {
        let front = to.addr().wrapping_neg() % LINE_ALIGNMENT;
        let whole = (bytes - front) / LINE * LINE;
        through_block(from, to, front);
        (from, to) = (from.wrapping_add(front), to.wrapping_add(front));
        // SAFETY: same contract as this function's, for one line or more; both sides begin at multiples of 16 bytes.
        if unsafe { copy_shared_lines(from, to, whole) } {
            (from, to) = (from.wrapping_add(whole), to.wrapping_add(whole));
            bytes -= whole;
        }
        bytes -= front;
    }
    through_block(from, to, bytes);
}
