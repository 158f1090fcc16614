//! Copies of cache lines, by the widest instructions of which `memory/atomic.rs` can say what they do.
#![expect(unsafe_code, reason = "reads and writes memory by its address")]

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
use super::{LARGEST, words};

/// The bytes that [`lines`] copies at a time: a cache line.
pub(crate) const LINE: usize = 64;

/// What the shared side of a line begins at a multiple of.
pub(crate) const LINE_ALIGNMENT: usize = 16;

/// From so many bytes on, one instruction that copies them all is quicker than a loop, on any processor: it need not read
/// what it overwrites.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
const MANY: usize = 64 << 10;

/// Copies whole lines, of which the side that is shared begins at a multiple of 16 bytes.
///
/// # Safety
///
/// As [`words`](super::words); `LINE` divides `bytes`, which are not 0.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
pub(super) unsafe fn lines<const STORE: bool>(from: *const u8, to: *mut u8, bytes: usize) {
    macro_rules! line {
        ($load:literal, $store:literal) => {
            // SAFETY: the instructions access what the caller says, and change the registers that are named.
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
                    from = inout(reg) from => _,
                    to = inout(reg) to => _,
                    bytes = inout(reg) bytes => _,
                    a = out(xmm_reg) _,
                    b = out(xmm_reg) _,
                    c = out(xmm_reg) _,
                    d = out(xmm_reg) _,
                    options(nostack)
                )
            }
        };
    }
    if bytes >= MANY {
        // SAFETY: as below; the direction of string instructions is forwards in all Rust code.
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
        line!("movdqu", "movdqa");
    } else {
        line!("movdqa", "movdqu");
    }
}

/// Copies lines of single bytes in the widest registers that nearly every processor has, or says that this one has none.
/// No manual promises that these are read whole, which bytes do not need.
///
/// # Safety
///
/// As [`lines`], but for what is said of where they begin.
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    feature = "std",
    not(miri)
))]
#[inline(always)]
pub(super) unsafe fn wide(from: *const u8, to: *mut u8, bytes: usize) -> bool {
    if bytes >= MANY || !std::arch::is_x86_feature_detected!("avx") {
        return false;
    }
    // SAFETY: the processor has these instructions, which access what the caller says. They change all registers of their
    // kind, as `vzeroupper` does, without which what comes next would be slow.
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

/// As on processors that have none.
#[cfg(not(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    feature = "std",
    not(miri)
)))]
#[inline(always)]
pub(super) unsafe fn wide(_: *const u8, _: *mut u8, _: usize) -> bool {
    false
}

/// Copies whole lines, of which the side that is shared begins at a multiple of 16 bytes.
///
/// # Safety
///
/// As [`words`](super::words); `LINE` divides `bytes`, which are not 0.
#[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
pub(super) unsafe fn lines<const STORE: bool>(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the instructions access what the caller says, and change the registers that are named.
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

/// Copies whole lines, of which the side that is shared begins at a multiple of 16 bytes.
///
/// # Safety
///
/// As [`words`](super::words); `LINE` divides `bytes`.
#[cfg(any(
    miri,
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_endian = "little")
    ))
))]
pub(super) unsafe fn lines<const STORE: bool>(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promises; a line is made of words.
    unsafe { words::<STORE, LARGEST>(from, to, bytes) }
}

/// Copies one line, by code that stands where it is called: the side that is not shared may then stay in registers.
///
/// # Safety
///
/// As [`load_line`](super::load_line), or with `STORE` as [`store_line`](super::store_line).
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
#[inline(always)]
pub(super) unsafe fn line<const STORE: bool>(from: *const u8, to: *mut u8) {
    use core::arch::x86_64::__m128i;
    let quarters: [__m128i; 4];
    if STORE {
        // SAFETY: a line that may be read, at any address; any bytes are numbers.
        quarters = unsafe { from.cast::<[__m128i; 4]>().read_unaligned() };
        let [a, b, c, d] = quarters;
        // SAFETY: the instructions write what the caller says may be written, and leave all else as it is.
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
        let (a, b, c, d);
        // SAFETY: the instructions read what the caller says may be read, and leave all else as it is.
        unsafe {
            core::arch::asm!(
                "movdqa {a}, [{from}]",
                "movdqa {b}, [{from} + 16]",
                "movdqa {c}, [{from} + 32]",
                "movdqa {d}, [{from} + 48]",
                from = in(reg) from,
                a = out(xmm_reg) a,
                b = out(xmm_reg) b,
                c = out(xmm_reg) c,
                d = lateout(xmm_reg) d,
                options(nostack, preserves_flags, readonly)
            );
        }
        quarters = [a, b, c, d];
        // SAFETY: room for a line, at any address.
        unsafe { to.cast::<[__m128i; 4]>().write_unaligned(quarters) };
    }
}

/// Copies one line, in words.
///
/// # Safety
///
/// As [`load_line`](super::load_line), or with `STORE` as [`store_line`](super::store_line).
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
#[inline(always)]
pub(super) unsafe fn line<const STORE: bool>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promises; a line is made of words.
    unsafe { words::<STORE, LARGEST>(from, to, LINE) }
}

/// Loads one line, as [`line`] does, in code for processors with AVX: there the instructions without it are slow.
///
/// # Safety
///
/// As [`load_line`](super::load_line); the processor has AVX.
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    feature = "std",
    not(miri)
))]
#[inline(always)]
pub(super) unsafe fn load_line_avx(from: *const u8, to: *mut u8) {
    use core::arch::x86_64::__m128i;
    let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
    // SAFETY: the instructions read what the caller says may be read, and leave all else as it is; the processor has them.
    unsafe {
        core::arch::asm!(
            "vmovdqa {a}, [{from}]",
            "vmovdqa {b}, [{from} + 16]",
            "vmovdqa {c}, [{from} + 32]",
            "vmovdqa {d}, [{from} + 48]",
            from = in(reg) from,
            a = out(xmm_reg) a,
            b = out(xmm_reg) b,
            c = out(xmm_reg) c,
            d = out(xmm_reg) d,
            options(nostack, preserves_flags, readonly)
        );
    }
    // SAFETY: room for a line, at any address.
    unsafe { to.cast::<[__m128i; 4]>().write_unaligned([a, b, c, d]) };
}

/// As where there are no such instructions.
#[cfg(not(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    feature = "std",
    not(miri)
)))]
#[inline(always)]
pub(super) unsafe fn load_line_avx(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promises.
    unsafe { line::<false>(from, to) }
}

/// Copies whole lines between sides that are both shared, or returns that this needs memory between them.
///
/// # Safety
///
/// As [`transfer`](super::transfer); both sides begin at a multiple of 16 bytes; `LINE` divides `bytes`, which are not 0.
pub(super) unsafe fn shared_lines(from: *const u8, to: *mut u8, bytes: usize) -> bool {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
    if bytes < MANY {
        // SAFETY: the instructions access what the caller says, and change the registers that are named.
        unsafe {
            core::arch::asm!(
                "2:",
                "movdqa {a}, [{from}]",
                "movdqa {b}, [{from} + 16]",
                "movdqa {c}, [{from} + 32]",
                "movdqa {d}, [{from} + 48]",
                "movdqa [{to}], {a}",
                "movdqa [{to} + 16], {b}",
                "movdqa [{to} + 32], {c}",
                "movdqa [{to} + 48], {d}",
                "add {from}, 64",
                "add {to}, 64",
                "sub {bytes}, 64",
                "jnz 2b",
                from = inout(reg) from => _,
                to = inout(reg) to => _,
                bytes = inout(reg) bytes => _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack)
            );
        }
    } else {
        // SAFETY: `rep movsq` accesses an aligned word at a time on both sides.
        unsafe { lines::<true>(from, to, bytes) };
    }
    // SAFETY: the caller's promises; the instructions access both sides alike.
    #[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
    unsafe {
        lines::<true>(from, to, bytes)
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
