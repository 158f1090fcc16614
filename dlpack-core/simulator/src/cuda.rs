//! The entry points of CUDA's driver: devices, contexts, streams, events, captures, graphs.
#![expect(unsafe_code, reason = "functions with the names of C")]

use core::ffi::{CStr, c_char};

use crate::codes::Code;
use crate::entry::{ContextHandle, EventHandle, Flags, StreamHandle, Waits, entries};
use crate::raw::Out;
use crate::user_object::Destructor;
use crate::world::Api::Cuda;

/// The attributes of a device that are not 0, by their numbers in cuda.h.
fn attribute(which: i32, no_pools: bool) -> i32 {
    match which {
        // Unified addressing, managed memory, concurrent managed access.
        41 | 83 | 89 => 1,
        // Compute capability 9.0.
        75 => 9,
        // Memory pools.
        115 => i32::from(!no_pools),
        _ => 0,
    }
}

fn name(out: Out<*const c_char>, code: i32) -> Result<(), Code> {
    let name: Option<&'static CStr> = Code(code).name(Cuda);
    out.give(name.map_or(core::ptr::null(), CStr::as_ptr));
    name.map(drop).ok_or(Code::INVALID_VALUE)
}

entries! { Cuda
    #[waits(Waits::Yes)]
    fn cuInit(flags: u32) |world, _host, _label| {
        world.initialize(flags).map(|()| world.lasting.initialized = true)
    };
    fn cuDriverGetVersion(version: Out<i32>) |_world, _host, _label| {
        version.give(13_040);
        Ok(())
    };
    fn cuGetErrorName(code: i32, out: Out<*const c_char>) |_world, _host, _label| name(out, code);
    fn cuGetErrorString(code: i32, out: Out<*const c_char>) |_world, _host, _label| name(out, code);
    fn cuDeviceGet(device: Out<i32>, ordinal: i32) |world, _host, _label| {
        world.check_device(ordinal).map(|()| device.give(ordinal))
    };
    fn cuDeviceGetCount(count: Out<i32>) |world, _host, _label| {
        count.give(world.devices);
        Ok(())
    };
    fn cuDeviceGetAttribute(value: Out<i32>, which: i32, device: i32) |world, _host, _label| {
        let no_pools = world.is_switched("no-memory-pools");
        world.check_device(device).map(|()| value.give(attribute(which, no_pools)))
    };
    fn cuDeviceGetName(name: Out<u8>, bytes: i32, device: i32) |world, _host, _label| {
        let text = format!("Simulated device {device}\0");
        if usize::try_from(bytes).is_ok_and(|bytes| bytes >= text.len()) {
            for (index, byte) in text.bytes().enumerate() {
                name.at(index).give(byte);
            }
            world.check_device(device)
        } else {
            Err(Code::INVALID_VALUE)
        }
    };
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) |world, _host, _label| {
        world.check_device(device).map(|()| bytes.give(1 << 34))
    };
    #[waits(Waits::Yes)]
    fn cuDevicePrimaryCtxRetain(context: Out<usize>, device: i32) |world, _host, _label| {
        world.retain_primary(device).map(|handle| context.give(handle))
    };
    fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) |world, _host, _label| {
        world.check_device(device).map(|()| {
            flags.give(0);
            active.give(i32::from(world.lasting.retained.contains_key(&device)));
        })
    };
    fn cuDevicePrimaryCtxRelease_v2(device: i32) |world, _host, _label| world.release_primary(device);

    fn cuCtxCreate_v2(context: Out<usize>, _flags: u32, device: i32) |world, host, _label| {
        world.create_context(host, device).map(|handle| context.give(handle))
    };
    fn cuCtxCreate_v3(context: Out<usize>, _parameters: usize, _count: i32, _flags: u32, device: i32)
        |world, host, _label| {
        world.create_context(host, device).map(|handle| context.give(handle))
    };
    fn cuCtxCreate_v4(context: Out<usize>, _parameters: usize, _flags: u32, device: i32)
        |world, host, _label| {
        world.create_context(host, device).map(|handle| context.give(handle))
    };
    fn cuCtxDestroy_v2(context: ContextHandle) |world, host, _label| world.destroy_context(host, context.0);
    fn cuCtxGetCurrent(context: Out<usize>) |world, host, _label| {
        context.give(world.host(host).context);
        Ok(())
    };
    fn cuCtxSetCurrent(context: ContextHandle) |world, host, _label| world.set_current(host, context.0);
    fn cuCtxGetDevice(device: Out<i32>) |world, host, _label| {
        let current = world.current(Cuda, host);
        current.map(|handle| device.give(world.contexts[&handle].device))
    };
    fn cuCtxEnablePeerAccess(peer: ContextHandle, flags: u32) |world, host, _label| match flags {
        0 => world.set_peer(Cuda, host, peer.0, true),
        _ => Err(Code::INVALID_VALUE),
    };
    fn cuCtxDisablePeerAccess(peer: ContextHandle) |world, host, _label| {
        world.set_peer(Cuda, host, peer.0, false)
    };
    fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) |world, _host, _label| {
        world.check_device(device).and(world.check_device(peer)).map(|()| can.give(i32::from(device != peer)))
    };
    #[waits(Waits::Yes)]
    fn cuCtxSynchronize() |world, host, _label| {
        world.synchronize_all(Cuda, host)
    };
    fn cuCtxRecordEvent(context: ContextHandle, event: EventHandle) |world, host, _label| {
        if world.is_switched("no-ctx-record-event") {
            Err(Code::NOT_SUPPORTED)
        } else {
            world.record_context(host, context.0, event.0)
        }
    };

    fn cuStreamCreate(stream: Out<usize>, flags: u32) |world, host, _label| {
        world.create_stream(Cuda, host, flags).map(|handle| stream.give(handle))
    };
    fn cuStreamCreateWithPriority(stream: Out<usize>, flags: u32, _priority: i32) |world, host, _label| {
        world.create_stream(Cuda, host, flags).map(|handle| stream.give(handle))
    };
    fn cuStreamDestroy_v2(stream: StreamHandle)
        |world, host, _label| world.destroy_stream(Cuda, host, stream.0);
    #[waits(Waits::Yes)]
    fn cuStreamSynchronize(stream: StreamHandle) |world, host, _label| {
        world.synchronize_stream(Cuda, host, stream.0)
    };
    fn cuStreamQuery(stream: StreamHandle)
        |world, host, _label| world.synchronize_stream(Cuda, host, stream.0);
    fn cuStreamWaitEvent(stream: StreamHandle, event: EventHandle, flags: u32) |world, host, _label| {
        world.wait(Cuda, host, stream.0, event.0, flags)
    };
    fn cuStreamGetFlags(stream: StreamHandle, flags: Out<u32>) |world, host, _label| {
        world.stream_flags(Cuda, host, stream.0).map(|value| flags.give(value))
    };
    fn cuStreamGetCtx(stream: StreamHandle, context: Out<usize>) |world, host, _label| {
        let special = stream.0 < 3;
        match world.stream_to_ask(Cuda, host, stream.0).map(|id| world.streams[&id.0].context) {
            Ok(found) if !special && world.root(found) != found => Err(Code::NOT_SUPPORTED),
            found => found.map(|found| context.give(found)),
        }
    };
    fn cuStreamGetCtx_v2(stream: StreamHandle, context: Out<usize>, green: Out<usize>) |world, host, _label| {
        let found = world.stream_to_ask(Cuda, host, stream.0);
        found.map(|id| world.contexts_of(world.streams[&id.0].context)).map(|(regular, part)| {
            context.give(regular);
            green.give(part);
        })
    };
    fn cuStreamGetId(stream: StreamHandle, id: Out<u64>) |world, host, _label| {
        let found = world.stream_to_ask(Cuda, host, stream.0);
        match world.is_switched("no-stream-ids") {
            true => Err(Code::NOT_SUPPORTED),
            false => found.map(|found| id.give(world.streams[&found.0].id as u64)),
        }
    };
    fn cuGreenCtxCreate(green: Out<usize>, _resources: usize, device: i32, _flags: u32)
        |world, _host, _label| {
        world.create_green(device).map(|handle| green.give(handle))
    };
    fn cuCtxFromGreenCtx(context: Out<usize>, green: usize) |_world, _host, _label| {
        context.give(green);
        Ok(())
    };
    fn cuGreenCtxStreamCreate(stream: Out<usize>, green: usize, flags: u32, _priority: i32)
        |world, _host, _label| {
        world.create_stream_in(Cuda, green, flags).map(|handle| stream.give(handle))
    };

    fn cuEventCreate(event: Out<usize>, flags: Flags) |world, host, _label| {
        world.create_event(Cuda, host, flags.0).map(|handle| event.give(handle))
    };
    fn cuEventDestroy_v2(event: EventHandle) |world, host, _label| world.destroy_event(Cuda, host, event.0);
    fn cuEventRecord(event: EventHandle, stream: StreamHandle) |world, host, _label| {
        world.record(Cuda, host, event.0, stream.0)
    };
    #[waits(Waits::Yes)]
    fn cuEventSynchronize(event: EventHandle)
        |world, host, _label| world.synchronize_event(Cuda, host, event.0);
    fn cuEventQuery(event: EventHandle) |world, host, _label| world.query_event(Cuda, host, event.0);
    fn cuEventElapsedTime(milliseconds: Out<f32>, start: EventHandle, end: EventHandle)
        |world, _host, _label| {
        world.elapsed(Cuda, [start.0, end.0]).map(|()| milliseconds.give(0.0))
    };
    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: EventHandle, end: EventHandle)
        |world, _host, _label| {
        world.elapsed(Cuda, [start.0, end.0]).map(|()| milliseconds.give(0.0))
    };

    fn cuStreamBeginCapture_v2(stream: StreamHandle, mode: i32) |world, host, _label| {
        world.begin_capture(Cuda, host, stream.0, mode)
    };
    fn cuStreamEndCapture(stream: StreamHandle, graph: Out<usize>) |world, host, _label| {
        graph.give(0);
        world.end_capture(Cuda, host, stream.0).map(|handle| graph.give(handle))
    };
    fn cuStreamIsCapturing(stream: StreamHandle, status: Out<i32>) |world, host, _label| {
        world.capture_status(Cuda, host, stream.0).map(|(value, _)| status.give(value))
    };
    fn cuStreamGetCaptureInfo(stream: StreamHandle, status: Out<i32>, id: Out<u64>) |world, host, _label| {
        world.capture_status(Cuda, host, stream.0).map(|(value, number)| {
            status.give(value);
            id.give(number);
        })
    };
    fn cuStreamGetCaptureInfo_v2(
        stream: StreamHandle, status: Out<i32>, id: Out<u64>, graph: Out<usize>, nodes: Out<usize>, count: Out<usize>
    ) |world, host, _label| {
        world.capture_status(Cuda, host, stream.0).and_then(|(value, number)| {
            status.give(value);
            id.give(number);
            graph.give(world.captured_graph(number));
            let front = world.captured_front(Cuda, host, stream.0);
            if world.is_switched("edge-data") && !nodes.is_null() && front != 0 {
                return Err(Code::LOSSY_QUERY);
            }
            nodes.give(front);
            count.give(usize::from(front != 0));
            Ok(())
        })
    };
    fn cuStreamUpdateCaptureDependencies(stream: StreamHandle, nodes: usize, count: usize, flags: u32)
        |world, host, _label| {
        world.add_dependencies(Cuda, host, stream.0, (nodes, count), flags)
    };
    fn cuThreadExchangeStreamCaptureMode(mode: Out<i32>) |world, host, _label| {
        match mode.take() {
            Some(wanted) => world.exchange_mode(host, wanted).map(|before| mode.give(before)),
            None => Err(Code::INVALID_VALUE),
        }
    };
    fn cuGraphInstantiateWithFlags(executable: Out<usize>, graph: usize, flags: u64) |world, _host, _label| {
        world.instantiate(graph, flags & 1 != 0).map(|handle| executable.give(handle))
    };
    fn cuGraphInstantiate_v2(executable: Out<usize>, graph: usize, _node: usize, _log: usize, _bytes: usize)
        |world, _host, _label| {
        world.instantiate(graph, false).map(|handle| executable.give(handle))
    };
    fn cuGraphUpload(executable: usize, _stream: StreamHandle) |world, _host, _label| {
        let known = world.executables.contains_key(&executable);
        if known { Ok(()) } else { Err(Code::INVALID_VALUE) }
    };
    fn cuGraphLaunch(executable: usize, stream: StreamHandle) |world, host, _label| {
        world.launch(Cuda, host, executable, stream.0)
    };
    fn cuGraphExecDestroy(executable: usize) |world, host, _label| world.destroy_graph(Cuda, host, executable, true);
    fn cuGraphDestroy(graph: usize) |world, host, _label| world.destroy_graph(Cuda, host, graph, false);

    fn cuUserObjectCreate(
        object: Out<usize>, data: usize, destructor: Option<Destructor>, count: u32, _flags: u32
    ) |world, _host, _label| {
        world.create_object(data, destructor, count).map(|handle| object.give(handle))
    };
    fn cuUserObjectRelease(object: usize, count: u32) |world, _host, _label| {
        world.release_object(object, count as usize)
    };
    fn cuGraphRetainUserObject(graph: usize, object: usize, count: u32, flags: u32) |world, _host, _label| {
        world.graph_takes(graph, object, count as usize, flags == 1)
    };
}
