//! The entry points of CUDA's driver that allocate, free, copy and fill.
#![expect(unsafe_code, reason = "functions with the names of C")]

use crate::access::{Copied, Work};
use crate::codes::Code;
use crate::copy::Direction;
use crate::entry::{ContextHandle, StreamHandle, Waits, entries};
use crate::memory::MemoryKind;
use crate::raw::Out;
use crate::world::Api::Cuda;

entries! { Cuda
    fn cuMemAlloc_v2(address: Out<usize>, bytes: usize) |world, host, _label| {
        world.allocate(Cuda, host, bytes, MemoryKind::Plain).map(|start| address.give(start))
    };
    fn cuMemAllocManaged(address: Out<usize>, bytes: usize, _flags: u32) |world, host, _label| {
        world.allocate(Cuda, host, bytes, MemoryKind::Managed).map(|start| address.give(start))
    };
    fn cuMemHostAlloc(address: Out<usize>, bytes: usize, _flags: u32) |world, host, _label| {
        world.allocate(Cuda, host, bytes, MemoryKind::Pinned).map(|start| address.give(start))
    };
    fn cuMemAllocHost_v2(address: Out<usize>, bytes: usize) |world, host, _label| {
        world.allocate(Cuda, host, bytes, MemoryKind::Pinned).map(|start| address.give(start))
    };
    fn cuMemAllocAsync(address: Out<usize>, bytes: usize, stream: StreamHandle) |world, host, label| {
        world.allocate_ordered(Cuda, host, bytes, stream.0, label).map(|start| address.give(start))
    };
    #[waits(Waits::ForFree(address))]
    fn cuMemFree_v2(address: usize) |world, host, label| world.free(Cuda, host, address, false, label);
    fn cuMemFreeHost(address: usize) |world, host, label| world.free(Cuda, host, address, true, label);
    fn cuMemFreeAsync(address: usize, stream: StreamHandle) |world, host, label| {
        world.free_ordered(Cuda, host, address, stream.0, label)
    };

    fn cuMemcpyHtoDAsync_v2(to: usize, from: usize, bytes: usize, stream: StreamHandle) |world, host, label| {
        world.copy_with_host(Cuda, host, stream.0, Copied { to, from, bytes }, Direction::ToDevice, label)
    };
    #[waits(Waits::ForCopyTo(to))]
    fn cuMemcpyDtoHAsync_v2(to: usize, from: usize, bytes: usize, stream: StreamHandle) |world, host, label| {
        world.copy_with_host(Cuda, host, stream.0, Copied { to, from, bytes }, Direction::ToHost, label)
    };
    fn cuMemcpyDtoDAsync_v2(to: usize, from: usize, bytes: usize, stream: StreamHandle) |world, host, label| {
        world.copy_on_device(Cuda, host, stream.0, Copied { to, from, bytes }, label)
    };
    fn cuMemcpyPeerAsync(
        to: usize, _there: ContextHandle, from: usize, _here: ContextHandle, bytes: usize,
        stream: StreamHandle
    ) |world, host, label| {
        world.copy_on_device(Cuda, host, stream.0, Copied { to, from, bytes }, label)
    };
    #[waits(Waits::Yes)]
    fn cuMemcpyHtoD_v2(to: usize, from: usize, bytes: usize) |world, host, label| {
        world.copy_and_wait(Cuda, host, Copied { to, from, bytes }, Direction::ToDevice, label)
    };
    #[waits(Waits::Yes)]
    fn cuMemcpyDtoH_v2(to: usize, from: usize, bytes: usize) |world, host, label| {
        world.copy_and_wait(Cuda, host, Copied { to, from, bytes }, Direction::ToHost, label)
    };
    fn cuMemcpyDtoD_v2(to: usize, from: usize, bytes: usize) |world, host, label| {
        world.copy_on_device(Cuda, host, 0, Copied { to, from, bytes }, label)
    };
    fn cuMemsetD8Async(to: usize, value: u8, bytes: usize, stream: StreamHandle) |world, host, label| {
        world.work(Cuda, host, stream.0, Work::Fill { to, value, bytes }, label)
    };
    fn cuMemsetD8_v2(to: usize, value: u8, bytes: usize) |world, host, label| {
        world.work(Cuda, host, 0, Work::Fill { to, value, bytes }, label)
    };
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) |world, host, _label| {
        world.current(Cuda, host).map(|_| {
            free.give(1 << 33);
            total.give(1 << 34);
        })
    };
    fn cuStreamAttachMemAsync(stream: StreamHandle, address: usize, _bytes: usize, _flags: u32)
        |world, host, _label| {
        let id = world.stream(Cuda, host, stream.0);
        let managed = world.block(address).is_some_and(|block| block.kind == MemoryKind::Managed);
        match id {
            Ok(_) if managed => Ok(()),
            Ok(_) => Err(Code::INVALID_VALUE),
            Err(code) => Err(code),
        }
    };
}
