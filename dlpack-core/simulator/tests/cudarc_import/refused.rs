//! Tensors that are refused, and the state after a driver call fails.

use cudarc::driver::CudaContext;
use dlpack_core::cuda::{DeviceView, DeviceViewMut};
use dlpack_core::{DLPack, Device, Error, Managed};

use crate::simulator::{RELAXED, Sim};
use crate::torch::{Torch, cuda};
use crate::{Numbers, NumbersMut, handle, kernel, orders};

#[test]
fn tensors_that_do_not_fit_are_returned_with_the_error() {
    let sim = Sim::new(1);
    sim.cuda();
    let torch = Torch::with_shape(0, &[2, 2]);
    let host = || vec![1.0_f32, 2.0].into_dlpack().unwrap();
    let refused = |tensor: Managed| {
        let (error, tensor) = Numbers::try_new(tensor).unwrap_err();
        assert!(tensor.view().dtype().itemsize().is_some());
        error.to_string()
    };
    assert_eq!(refused(host()), "expected data on a CUDA device, found cpu");
    assert_eq!(
        refused(torch.tensor()),
        "expected a tensor of rank 1, found one of rank 2"
    );
    let error = DeviceView::<f64, [i64; 2]>::new(torch.tensor()).unwrap_err();
    assert_eq!(error.to_string(), "expected dtype float64, found float32");
    assert_eq!(
        DeviceView::<[f32; 2], [i64; 1]>::new(torch.tensor())
            .unwrap()
            .len(),
        2
    );
    // The legacy struct cannot be marked writable, so the tensor is read-only.
    let legacy = torch.tensor().into_legacy().unwrap();
    // SAFETY: `into_legacy` just returned the pointer, and this is its only use.
    let legacy = unsafe { Managed::from_legacy(legacy) }.unwrap();
    assert_eq!(
        DeviceViewMut::<f32, [i64; 2]>::new(legacy).unwrap_err(),
        Error::ReadOnly
    );
    sim.assert_clean();
}

#[test]
fn elements_must_be_contiguous() {
    let sim = Sim::new(1);
    let context = CudaContext::new(0).unwrap();
    #[derive(DLPack)]
    #[dlpack(strides = [2])]
    struct Gaps {
        #[dlpack(data)]
        data: cudarc::driver::CudaSlice<f32>,
        #[dlpack(shape)]
        shape: [i64; 1],
    }
    let data = context.default_stream().alloc_zeros(4).unwrap();
    let tensor = Gaps { data, shape: [2] }.into_dlpack().unwrap();
    let (error, tensor) = Numbers::try_new(tensor).unwrap_err();
    assert!(matches!(error, Error::NotContiguous { .. }), "{error}");
    drop(tensor);
    sim.assert_clean();
}

#[test]
fn streams_of_other_contexts_are_refused() {
    let sim = Sim::new(2);
    let primary = CudaContext::new(0).unwrap();
    let second = CudaContext::new(1).unwrap();
    let raw = sim.cuda().create_context(0).unwrap();
    // SAFETY: the context was just made on device 0, and no other code destroys it.
    let other =
        unsafe { CudaContext::from_raw_context(0, 0, core::ptr::without_provenance_mut(raw)) };
    primary.bind_to_thread().unwrap();
    let torch = Torch::new(0);
    let mut view = Numbers::new(torch.tensor()).unwrap();
    sim.forget_calls();
    for context in [second, other.unwrap()] {
        let device = Device::cuda(0);
        let error = view.on(&context.default_stream()).unwrap_err();
        assert_eq!(error, Error::ForeignStream { device });
    }
    assert!(!orders(&sim.call_names()));
}

/// Whichever call of the driver fails, the error is reported, no foreign memory is freed, and the tensor lives until all work is
/// done.
#[test]
fn a_failed_driver_call_leaks_nothing() {
    for entry in [
        "cuEventCreate",
        "cuEventRecord",
        "cuStreamWaitEvent",
        "cuCtxGetCurrent",
    ] {
        let mut kept = 0;
        for nth in 1..20 {
            assert!(!fail(entry, nth, false));
            kept += usize::from(fail(entry, nth, true));
        }
        // The event of the export is reused.
        assert_eq!(
            kept > 0,
            entry != "cuEventCreate",
            "{entry} fails at {kept} drops"
        );
    }
}

/// Fails one call of the driver. Returns whether the tensor was kept.
fn fail(entry: &str, nth: u64, at_drop: bool) -> bool {
    let sim = Sim::new(1);
    let context = CudaContext::new(0).unwrap();
    let ours = context.new_stream().unwrap();
    let stream = cuda().non_blocking();
    let torch = Torch::new(stream);
    let mut view = NumbersMut::new(torch.tensor())
        .unwrap()
        .with_stream(handle(stream));
    if !at_drop {
        sim.fail(entry, nth, 999);
    }
    match view.on(&ours) {
        Ok(mut data) => {
            sim.fail(entry, 0, 0);
            kernel(&ours, &mut data);
        }
        Err(error) => {
            assert!(!at_drop);
            assert!(error.to_string().contains("999"), "{entry} {nth}: {error}");
        }
    }
    sim.fail(entry, if at_drop { nth } else { 0 }, 999);
    drop(view);
    sim.fail(entry, 0, 0);
    let _ = context.check_err();
    context.bind_to_thread().unwrap();
    let kept = !torch.is_free();
    if kept {
        // The next operation that calls the driver tries again.
        let next = Torch::new(stream);
        let mut view = NumbersMut::new(next.tensor())
            .unwrap()
            .with_stream(handle(stream));
        view.on(&ours).unwrap();
        drop(view);
        next.end();
    }
    torch.end();
    sim.assert_clean();
    kept
}

/// A stream that captures cannot be synchronized.
#[test]
fn a_tensor_of_an_unknown_stream_is_kept_while_its_last_use_is_captured() {
    let sim = Sim::new(1);
    let context = CudaContext::new(0).unwrap();
    let ours = context.new_stream().unwrap();
    let torch = Torch::new(0);
    // SAFETY: all work is on one stream.
    unsafe { context.disable_event_tracking() };
    cuda().synchronize().unwrap();
    let mut view = NumbersMut::new(torch.tensor()).unwrap();
    let stream = ours.cu_stream().addr();
    let mut data = view.on(&ours).unwrap();
    cuda().begin_capture(stream, RELAXED).unwrap();
    kernel(&ours, &mut data);
    drop(view);
    assert!(!torch.is_free());
    let graph = cuda().end_capture(stream).unwrap();
    cuda().destroy_graph(graph).unwrap();
    let next = Torch::new(0);
    let mut view = NumbersMut::new(next.tensor()).unwrap();
    view.on(&ours).unwrap();
    drop(view);
    next.end();
    torch.end();
    sim.assert_clean();
}

/// The events of the view were recorded before the capture. A wait for them would break it, so the tensor is kept instead.
#[test]
fn a_view_that_is_dropped_in_a_later_capture_of_its_stream_does_not_break_it() {
    let sim = Sim::new(1);
    let context = CudaContext::new(0).unwrap();
    let ours = context.new_stream().unwrap();
    sim.cuda();
    let stream = cuda().non_blocking();
    let torch = Torch::new(stream);
    let tensor = torch.tensor();
    let mut view = NumbersMut::new(tensor).unwrap().with_stream(handle(stream));
    kernel(&ours, &mut view.on(&ours).unwrap());
    let capturing = ours.cu_stream().addr();
    cuda().begin_capture(capturing, RELAXED).unwrap();
    drop(view);
    assert!(!torch.is_free());
    let graph = cuda().end_capture(capturing).expect("the capture is whole");
    cuda().destroy_graph(graph).unwrap();
    dlpack_core::stream::collect();
    torch.end();
    sim.assert_clean();
}
