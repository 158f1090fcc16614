//! A driver of CUDA and HIP without a GPU, which knows what waits for what.
//!
//! The library has the entry points that `dlpack-core` and cudarc use, and a few of its own (`control.rs`) by which a
//! test launches kernels and reads what went wrong. There is no time in it, and nothing runs beside anything else: each
//! stream and each host thread is a line of work with a vector clock, and two accesses to the same bytes that no wait
//! orders are a race, whenever they came. A program that is right here is right for every speed of the device, as far
//! as the rules are those of the real drivers; the top of each file says which rules it has and which of them are our
//! own reading.

mod access;
mod capture;
mod clock;
mod codes;
mod context;
mod control;
mod copy;
mod cuda;
mod cuda_memory;
mod entry;
mod event;
mod gate;
mod graph;
mod hip;
mod memory;
mod raw;
mod record;
mod second;
mod stream;
mod user_object;
mod world;
