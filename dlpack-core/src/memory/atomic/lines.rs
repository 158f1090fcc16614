//! Copies of whole cache lines, by the widest instructions for which `memory/atomic.rs` names a guarantee.
#![expect(unsafe_code, reason = "reads and writes memory by its address")]

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
use super::{LARGEST, copy_words};

/// The number of bytes that [`copy_lines`] copies at a time: a cache line.
pub(crate) const LINE: usize = 64;

/// The alignment of the shared side of a line.
pub(crate) const LINE_ALIGNMENT: usize = 16;

/// From this many bytes on, which caches rarely hold, `rep movsq` is faster than a loop: it need not read the memory that it
/// overwrites. For fewer bytes, AMD's processors take twice as long for it if the sides begin at different offsets in their lines.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
const MANY: usize = 16 << 20;

/// Copies lines in a loop: loads each by `$load` and stores it by `$store`. The caller is an `unsafe fn` that allows access to
/// `$bytes` bytes of both sides; `LINE` divides `$bytes`, which is not 0.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
macro_rules! copy_loop {
    ($load:literal, $store:literal, $from:ident, $to:ident, $bytes:ident) => {
        // SAFETY: the instructions access only `$bytes` bytes of both sides, which the caller allows, and named registers.
        unsafe {
            core::arch::asm!(
                "2:",
                concat!($load, " {a}, [{from}]"),
                concat!($load, " {b}, [{from} + 16]"),
                concat!($load, " {c}, [{from} + 32]"),
                concat!($load, " {d}, [{from} + 48]"),
                concat!($store, " [{to}], {a}"),
                concat!($store, " [{to} + 16], {b}"),
                concat!($store, " [{to} + 32], {c}"),
                concat!($store, " [{to} + 48], {d}"),
                "add {from}, 64",
                "add {to}, 64",
                "sub {bytes}, 64",
                "jnz 2b",
                from = inout(reg) $from => _,
                to = inout(reg) $to => _,
                bytes = inout(reg) $bytes => _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack)
            )
        }
    };
}

/// Copies whole cache lines. The shared side begins at a multiple of 16 bytes.
///
/// # Safety
///
/// The contract of [`copy_words`](super::copy_words). `LINE` divides `bytes`, which is not 0.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
pub(super) unsafe fn copy_lines<const STORE: bool>(from: *const u8, to: *mut u8, bytes: usize) {
    if bytes >= MANY {
        // SAFETY: it accesses `bytes` bytes of both sides, as the contract allows; Rust code keeps the direction flag clear.
        unsafe {
            core::arch::asm!(
                "rep movsq",
                inout("rsi") from => _,
                inout("rdi") to => _,
                inout("rcx") bytes / 8 => _,
                options(nostack, preserves_flags)
            );
        }
    } else if STORE {
        copy_loop!("movdqu", "movdqa", from, to, bytes);
    } else {
        copy_loop!("movdqa", "movdqu", from, to, bytes);
    }
}

/// Copies lines of single bytes in AVX registers, the widest that nearly every processor has. Returns `false` without AVX, and
/// for sizes from `MANY` on. No manual guarantees that such accesses are not split, which does not matter for bytes.
///
/// # Safety
///
/// The contract of [`copy_lines`], except that both sides may begin at any address.
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    feature = "std",
    not(miri)
))]
#[inline(always)]
pub(super) unsafe fn copy_wide_lines(from: *const u8, to: *mut u8, bytes: usize) -> bool {
    if bytes >= MANY || !std::arch::is_x86_feature_detected!("avx") {
        return false;
    }
    // SAFETY: the processor has AVX. The instructions access `bytes` bytes of both sides, as the contract allows. They change all
    // vector registers, as does `vzeroupper`, without which the code that follows would be slow.
    unsafe {
        core::arch::asm!(
            "2:",
            "vmovdqu ymm0, [{from}]",
            "vmovdqu ymm1, [{from} + 32]",
            "vmovdqu [{to}], ymm0",
            "vmovdqu [{to} + 32], ymm1",
            "add {from}, 64",
            "add {to}, 64",
            "sub {bytes}, 64",
            "jnz 2b",
            "vzeroupper",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            bytes = inout(reg) bytes => _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack)
        )
    };
    true
}

/// Returns `false`: this target has no AVX, or cannot detect it.
#[cfg(not(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    feature = "std",
    not(miri)
)))]
#[inline(always)]
pub(super) unsafe fn copy_wide_lines(_: *const u8, _: *mut u8, _: usize) -> bool {
    false
}

/// Copies whole cache lines. The shared side begins at a multiple of 16 bytes.
///
/// # Safety
///
/// The contract of [`copy_words`](super::copy_words). `LINE` divides `bytes`, which is not 0.
#[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
pub(super) unsafe fn copy_lines<const STORE: bool>(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the instructions access `bytes` bytes of both sides, as the contract allows, and change only named registers.
    unsafe {
        core::arch::asm!(
            "2:",
            "ldp {a}, {b}, [{from}]",
            "ldp {c}, {d}, [{from}, 16]",
            "ldp {e}, {f}, [{from}, 32]",
            "ldp {g}, {h}, [{from}, 48]",
            "stp {a}, {b}, [{to}]",
            "stp {c}, {d}, [{to}, 16]",
            "stp {e}, {f}, [{to}, 32]",
            "stp {g}, {h}, [{to}, 48]",
            "add {from}, {from}, 64",
            "add {to}, {to}, 64",
            "subs {bytes}, {bytes}, 64",
            "b.ne 2b",
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            bytes = inout(reg) bytes => _,
            a = out(reg) _,
            b = out(reg) _,
            c = out(reg) _,
            d = out(reg) _,
            e = out(reg) _,
            f = out(reg) _,
            g = out(reg) _,
            h = out(reg) _,
            options(nostack)
        );
    }
}

/// Copies whole cache lines, in words. The shared side begins at a multiple of 16 bytes.
///
/// # Safety
///
/// The contract of [`copy_words`](super::copy_words). `LINE` divides `bytes`.
#[cfg(any(
    miri,
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_endian = "little")
    ))
))]
pub(super) unsafe fn copy_lines<const STORE: bool>(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: same contract as this function's; `LARGEST` divides `bytes`, because it divides `LINE`.
    unsafe { copy_words::<STORE, LARGEST>(from, to, bytes) }
}

/// Loads the line at `$from` by the instruction `$load` and writes it to `$to`. Written in a macro because the instruction is
/// part of the assembly text. The caller is an `unsafe fn` that allows both accesses.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
macro_rules! load_line_with {
    ($load:literal, $from:ident, $to:ident) => {
        let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
        // SAFETY: the instructions only read one line at `$from`, which is readable and aligned by the caller's contract.
        unsafe {
            core::arch::asm!(
                concat!($load, " {a}, [{from}]"),
                concat!($load, " {b}, [{from} + 16]"),
                concat!($load, " {c}, [{from} + 32]"),
                concat!($load, " {d}, [{from} + 48]"),
                from = in(reg) $from,
                a = out(xmm_reg) a,
                b = out(xmm_reg) b,
                c = out(xmm_reg) c,
                d = lateout(xmm_reg) d,
                options(nostack, preserves_flags, readonly)
            );
        }
        // SAFETY: a line is writable at `$to` by the caller's contract, and the write needs no alignment.
        unsafe { $to.cast::<[__m128i; 4]>().write_unaligned([a, b, c, d]) };
    };
}

/// Copies one line. The code is inlined, so that the unshared side may stay in registers.
///
/// # Safety
///
/// The contract of [`load_line`](super::load_line), or with `STORE` of [`store_line`](super::store_line).
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
#[inline(always)]
pub(super) unsafe fn copy_line<const STORE: bool>(from: *const u8, to: *mut u8) {
    use core::arch::x86_64::__m128i;
    if STORE {
        // SAFETY: a line is readable at `from` by contract. The read needs no alignment, and any bytes are a valid value.
        let [a, b, c, d] = unsafe { from.cast::<[__m128i; 4]>().read_unaligned() };
        // SAFETY: the instructions only write one line at `to`, which is writable and aligned by this function's contract.
        unsafe {
            core::arch::asm!(
                "movdqa [{to}], {a}",
                "movdqa [{to} + 16], {b}",
                "movdqa [{to} + 32], {c}",
                "movdqa [{to} + 48], {d}",
                to = in(reg) to,
                a = in(xmm_reg) a,
                b = in(xmm_reg) b,
                c = in(xmm_reg) c,
                d = in(xmm_reg) d,
                options(nostack, preserves_flags)
            );
        }
    } else {
        load_line_with!("movdqa", from, to);
    }
}

/// Copies one line in words.
///
/// # Safety
///
/// The contract of [`load_line`](super::load_line), or with `STORE` of [`store_line`](super::store_line).
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
#[inline(always)]
pub(super) unsafe fn copy_line<const STORE: bool>(from: *const u8, to: *mut u8) {
    // SAFETY: same contract as this function's; `LARGEST` divides `LINE`.
    unsafe { copy_words::<STORE, LARGEST>(from, to, LINE) }
}

/// Loads one line as [`copy_line`] does, by instructions of AVX. In code compiled for AVX the older instructions are slow.
///
/// # Safety
///
/// The contract of [`load_line`](super::load_line). The processor has AVX.
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    feature = "std",
    not(miri)
))]
#[inline(always)]
pub(super) unsafe fn load_line_avx(from: *const u8, to: *mut u8) {
    use core::arch::x86_64::__m128i;
    // The processor has AVX, by this function's contract.
    load_line_with!("vmovdqa", from, to);
}

/// Loads one line by [`copy_line`], on targets without AVX.
#[cfg(not(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    feature = "std",
    not(miri)
)))]
#[inline(always)]
pub(super) unsafe fn load_line_avx(from: *const u8, to: *mut u8) {
    // SAFETY: same contract as this function's: `from` has a line and is aligned, and `to` is writable for a line.
    unsafe { copy_line::<false>(from, to) }
}

/// Copies whole lines if both sides are shared. Returns `false` if the copy needs a buffer between them.
///
/// # Safety
///
/// The contract of [`transfer_bytes`](super::transfer_bytes). Both sides begin at multiples of 16 bytes. `LINE` divides `bytes` > 0.
pub(super) unsafe fn copy_shared_lines(from: *const u8, to: *mut u8, bytes: usize) -> bool {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
    if bytes < MANY {
        copy_loop!("movdqa", "movdqa", from, to, bytes);
    } else {
        // SAFETY: same contract as this function's; from `MANY` bytes on, `rep movsq` accesses aligned words of both sides.
        unsafe { copy_lines::<true>(from, to, bytes) };
    }
    // SAFETY: same contract as this function's; the instructions access both sides in the same way.
    #[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
    unsafe {
        copy_lines::<true>(from, to, bytes)
    };
    let _ = (from, to, bytes);
    cfg!(all(
        not(miri),
        any(
            all(target_arch = "x86_64", target_feature = "sse2"),
            all(target_arch = "aarch64", target_endian = "little")
        )
    ))
}
