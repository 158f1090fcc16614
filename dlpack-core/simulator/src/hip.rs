//! The entry points of HIP.
//!
//! HIP keeps a current device per thread, 0 at first, and numbers its codes and statuses as CUDA does.
#![expect(unsafe_code, reason = "functions with the names of C")]

use core::ffi::{CStr, c_char};

use crate::access::Copied;
use crate::codes::Code;
use crate::copy::Direction;
use crate::entry::{EventHandle, Flags, StreamHandle, Waits, entries};
use crate::memory::MemoryKind;
use crate::raw::Out;
use crate::user_object::Destructor;
use crate::world::Api::Hip;

/// Not among `entries!`: it returns a name instead of a status, so it cannot fail.
#[unsafe(no_mangle)]
extern "C" fn hipGetErrorName(code: i32) -> *const c_char {
    Code(code)
        .name(Hip)
        .map_or(c"hipErrorUnknown".as_ptr(), CStr::as_ptr)
}

entries! { Hip
    #[waits(Waits::Yes)]
    fn hipInit(flags: u32) |world, _host, _label| world.initialize(flags);
    fn hipGetDeviceCount(count: Out<i32>) |world, _host, _label| {
        count.give(world.devices);
        world.initialize(0)
    };
    fn hipGetDevice(device: Out<i32>) |world, host, _label| {
        device.give(world.host(host).device);
        world.check_device(0)
    };
    fn hipSetDevice(device: i32) |world, host, _label| {
        world.check_device(device).map(|()| world.host(host).device = device)
    };
    fn hipDeviceEnablePeerAccess(peer: i32, flags: u32) |world, host, _label| match (world.hip_device(peer), flags) {
        (Ok(peer), 0) => world.set_peer(Hip, host, peer, true),
        (Ok(_), _) => Err(Code::INVALID_VALUE),
        (Err(code), _) => Err(code),
    };
    #[waits(Waits::Yes)]
    fn hipDeviceSynchronize() |world, host, _label| {
        world.synchronize_all(Hip, host)
    };

    fn hipStreamCreate(stream: Out<usize>) |world, host, _label| {
        world.create_stream(Hip, host, 0).map(|handle| stream.give(handle))
    };
    fn hipStreamCreateWithFlags(stream: Out<usize>, flags: u32) |world, host, _label| {
        world.create_stream(Hip, host, flags).map(|handle| stream.give(handle))
    };
    fn hipStreamDestroy(stream: StreamHandle) |world, host, _label| world.destroy_stream(Hip, host, stream.0);
    #[waits(Waits::Yes)]
    fn hipStreamSynchronize(stream: StreamHandle) |world, host, _label| {
        world.synchronize_stream(Hip, host, stream.0)
    };
    fn hipStreamQuery(stream: StreamHandle)
        |world, host, _label| world.synchronize_stream(Hip, host, stream.0);
    fn hipStreamWaitEvent(stream: StreamHandle, event: EventHandle, flags: u32) |world, host, _label| {
        world.wait(Hip, host, stream.0, event.0, flags)
    };

    fn hipEventCreateWithFlags(event: Out<usize>, flags: Flags) |world, host, _label| {
        world.create_event(Hip, host, flags.0).map(|handle| event.give(handle))
    };
    fn hipEventDestroy(event: EventHandle) |world, host, _label| world.destroy_event(Hip, host, event.0);
    fn hipEventRecord(event: EventHandle, stream: StreamHandle) |world, host, _label| {
        world.record(Hip, host, event.0, stream.0)
    };
    #[waits(Waits::Yes)]
    fn hipEventSynchronize(event: EventHandle)
        |world, host, _label| world.synchronize_event(Hip, host, event.0);
    fn hipEventQuery(event: EventHandle) |world, host, _label| world.query_event(Hip, host, event.0);

    fn hipStreamBeginCapture(stream: StreamHandle, mode: i32) |world, host, _label| {
        world.begin_capture(Hip, host, stream.0, mode)
    };
    fn hipStreamEndCapture(stream: StreamHandle, graph: Out<usize>) |world, host, _label| {
        graph.give(0);
        world.end_capture(Hip, host, stream.0).map(|handle| graph.give(handle))
    };
    fn hipStreamGetDevice(stream: StreamHandle, device: Out<i32>) |world, host, _label| {
        let id = match world.is_switched("no-stream-devices") {
            true => Err(Code::NOT_SUPPORTED),
            false => world.stream(Hip, host, stream.0),
        };
        id.map(|id| {
            let (_, found) = world.device_of(world.streams[&id.0].context).unwrap_or((Hip, -1));
            device.give(found);
        })
    };
    fn hipStreamGetFlags(stream: StreamHandle, flags: Out<u32>) |world, host, _label| {
        world.stream_flags(Hip, host, stream.0).map(|value| flags.give(value))
    };
    fn hipStreamIsCapturing(stream: StreamHandle, status: Out<i32>) |world, host, _label| {
        world.capture_status(Hip, host, stream.0).map(|(value, _)| status.give(value))
    };
    fn hipStreamGetCaptureInfo(stream: StreamHandle, status: Out<i32>, id: Out<u64>) |world, host, _label| {
        world.capture_status(Hip, host, stream.0).map(|(value, number)| {
            status.give(value);
            id.give(number);
        })
    };
    fn hipStreamGetCaptureInfo_v2(
        stream: StreamHandle, status: Out<i32>, id: Out<u64>, graph: Out<usize>, nodes: Out<usize>, count: Out<usize>
    ) |world, host, _label| {
        world.capture_status(Hip, host, stream.0).map(|(value, number)| {
            status.give(value);
            id.give(number);
            graph.give(world.captured_graph(number));
            let front = world.captured_front(Hip, host, stream.0);
            nodes.give(front);
            count.give(usize::from(front != 0));
        })
    };
    fn hipStreamUpdateCaptureDependencies(stream: StreamHandle, nodes: usize, count: usize, flags: u32)
        |world, host, _label| {
        world.add_dependencies(Hip, host, stream.0, (nodes, count), flags)
    };
    fn hipThreadExchangeStreamCaptureMode(mode: Out<i32>) |world, host, _label| {
        match mode.take() {
            Some(wanted) => world.exchange_mode(host, wanted).map(|before| mode.give(before)),
            None => Err(Code::INVALID_VALUE),
        }
    };
    fn hipGraphInstantiate(executable: Out<usize>, graph: usize, _node: usize, _log: usize, _bytes: usize)
        |world, _host, _label| {
        world.instantiate(graph, false).map(|handle| executable.give(handle))
    };
    fn hipGraphLaunch(executable: usize, stream: StreamHandle) |world, host, _label| {
        world.launch(Hip, host, executable, stream.0)
    };
    fn hipGraphExecDestroy(executable: usize) |world, host, _label| world.destroy_graph(Hip, host, executable, true);
    fn hipGraphDestroy(graph: usize) |world, host, _label| world.destroy_graph(Hip, host, graph, false);
    fn hipUserObjectCreate(
        object: Out<usize>, data: usize, destructor: Option<Destructor>, count: u32, _flags: u32
    ) |world, _host, _label| {
        world.create_object(data, destructor, count).map(|handle| object.give(handle))
    };
    fn hipUserObjectRelease(object: usize, count: u32) |world, _host, _label| {
        world.release_object(object, count as usize)
    };
    fn hipGraphRetainUserObject(graph: usize, object: usize, count: u32, flags: u32) |world, _host, _label| {
        world.graph_takes(graph, object, count as usize, flags == 1)
    };

    fn hipMalloc(address: Out<usize>, bytes: usize) |world, host, _label| {
        world.allocate(Hip, host, bytes, MemoryKind::Plain).map(|start| address.give(start))
    };
    fn hipMallocManaged(address: Out<usize>, bytes: usize, _flags: u32) |world, host, _label| {
        world.allocate(Hip, host, bytes, MemoryKind::Managed).map(|start| address.give(start))
    };
    fn hipHostMalloc(address: Out<usize>, bytes: usize, _flags: u32) |world, host, _label| {
        world.allocate(Hip, host, bytes, MemoryKind::Pinned).map(|start| address.give(start))
    };
    fn hipMallocAsync(address: Out<usize>, bytes: usize, stream: StreamHandle) |world, host, label| {
        world.allocate_ordered(Hip, host, bytes, stream.0, label).map(|start| address.give(start))
    };
    #[waits(Waits::ForFree(address))]
    fn hipFree(address: usize) |world, host, label| world.free(Hip, host, address, false, label);
    #[waits(Waits::ForFree(address))]
    fn hipHostFree(address: usize) |world, host, label| world.free(Hip, host, address, true, label);
    fn hipFreeAsync(address: usize, stream: StreamHandle) |world, host, label| {
        world.free_ordered(Hip, host, address, stream.0, label)
    };
    fn hipMemcpyHtoDAsync(to: usize, from: usize, bytes: usize, stream: StreamHandle) |world, host, label| {
        world.copy_with_host(Hip, host, stream.0, Copied { to, from, bytes }, Direction::ToDevice, label)
    };
    #[waits(Waits::ForCopyTo(to))]
    fn hipMemcpyDtoHAsync(to: usize, from: usize, bytes: usize, stream: StreamHandle) |world, host, label| {
        world.copy_with_host(Hip, host, stream.0, Copied { to, from, bytes }, Direction::ToHost, label)
    };
    fn hipMemcpyDtoDAsync(to: usize, from: usize, bytes: usize, stream: StreamHandle) |world, host, label| {
        world.copy_on_device(Hip, host, stream.0, Copied { to, from, bytes }, label)
    };
}
