//! Reads and writes of one float in a vector register, where arithmetic needs it. A word in a general register would have to be moved.
#![expect(unsafe_code, reason = "reads and writes memory by its address")]

/// Defines [`load_float`] and [`store_float`]. `$register` is the class of registers; each line has a type, its size, and the
/// instructions that load and store it.
macro_rules! float_accesses {
    ($register:ident: $($float:ident $bytes:literal $load:literal $store:literal;)*) => {
        /// Copies a float from memory that other threads may write. Returns `false` for a size without an instruction.
        ///
        /// # Safety
        ///
        /// The contract of [`load_bytes`](super::load_bytes) for a float of `bytes` bytes.
        #[inline(always)]
        pub(crate) unsafe fn load_float(from: *const u8, to: *mut u8, bytes: usize) -> bool {
            match bytes {
                $($bytes => {
                    let float: $float;
                    // SAFETY: the instruction only reads `bytes` bytes at `from`, which are readable by this function's contract.
                    unsafe {
                        core::arch::asm!(
                            $load,
                            at = in(reg) from,
                            float = lateout($register) float,
                            options(nostack, preserves_flags, readonly)
                        );
                    }
                    // SAFETY: `to` is writable for `bytes` bytes by this function's contract; the write needs no alignment.
                    unsafe { to.cast::<$float>().write_unaligned(float) };
                    true
                })*
                _ => {
                    let _ = (from, to);
                    false
                }
            }
        }

        /// Copies a float to memory that other threads may read and write. Returns `false` for a size without an instruction.
        ///
        /// # Safety
        ///
        /// The contract of [`store_bytes`](super::store_bytes) for a float of `bytes` bytes.
        #[inline(always)]
        pub(crate) unsafe fn store_float(from: *const u8, to: *mut u8, bytes: usize) -> bool {
            match bytes {
                $($bytes => {
                    // SAFETY: `bytes` bytes are readable at `from` by contract. The read needs no alignment, and any bytes are a float.
                    let float = unsafe { from.cast::<$float>().read_unaligned() };
                    // SAFETY: the instruction only writes `bytes` bytes at `to`, which are writable by this function's contract.
                    unsafe {
                        core::arch::asm!(
                            $store,
                            at = in(reg) to,
                            float = in($register) float,
                            options(nostack, preserves_flags)
                        );
                    }
                    true
                })*
                _ => {
                    let _ = (from, to);
                    false
                }
            }
        }
    };
}

// In code compiled for AVX the older instructions are slow.
#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    target_feature = "avx",
    not(miri)
))]
float_accesses! {
    xmm_reg:
    f32 4 "vmovss {float}, dword ptr [{at}]" "vmovss dword ptr [{at}], {float}";
    f64 8 "vmovsd {float}, qword ptr [{at}]" "vmovsd qword ptr [{at}], {float}";
}

#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    not(target_feature = "avx"),
    not(miri)
))]
float_accesses! {
    xmm_reg:
    f32 4 "movss {float}, dword ptr [{at}]" "movss dword ptr [{at}], {float}";
    f64 8 "movsd {float}, qword ptr [{at}]" "movsd qword ptr [{at}], {float}";
}

#[cfg(all(target_arch = "aarch64", target_endian = "little", not(miri)))]
float_accesses! {
    vreg:
    f32 4 "ldr {float:s}, [{at}]" "str {float:s}, [{at}]";
    f64 8 "ldr {float:d}, [{at}]" "str {float:d}, [{at}]";
}

// No instruction: both functions return `false`. Miri executes none, and other targets have none here.
#[cfg(not(all(
    any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_endian = "little")
    ),
    not(miri)
)))]
float_accesses! { none: }
