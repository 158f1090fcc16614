//! The examples for GPUs, on the simulator: consumers of their tensors read the data, and each tensor is freed once, after its
//! last use.
#![cfg(target_os = "linux")]

mod simulator;

use std::sync::Arc;

use cuda_slice::Image;
use cudarc::driver::CudaContext;
use dlpack_core::{
    DLPack, DLPackTensors, DataType, Device, Error, ExportRequest, Managed, ProducerStream, stream,
};
use hip_buffer::Field;
use hip_buffer::hip::{DeviceBuffer, Stream};
use kv_pages::Pages;
use simulator::{ALLOCATIONS, Driver, STREAMS, Sim, library_path};

fn request(stream: Option<i64>) -> ExportRequest {
    ExportRequest {
        stream,
        ..ExportRequest::versioned()
    }
}

/// The number by which a consumer names a stream.
fn number(stream: usize) -> Option<i64> {
    Some(i64::try_from(stream).expect("a handle is an address"))
}

/// A kernel that reads the contiguous bytes of the tensor.
fn read(driver: Driver, stream: usize, tensor: &Managed) {
    let view = tensor.view();
    let bytes = view.dtype().itemsize().expect("whole bytes") * elements(view.shape());
    driver.read(stream, view.as_ptr().addr(), bytes);
}

fn elements(shape: &[i64]) -> usize {
    usize::try_from(shape.iter().product::<i64>()).expect("no extent is negative")
}

/// Requests a tensor for another stream, reads it there, and drops everything while the read may be running.
///
/// The streams are `(what is passed, where it is read)`.
fn read_elsewhere(
    sim: &Sim,
    driver: Driver,
    (asked, there): (Option<i64>, usize),
    export: impl Fn(&ExportRequest) -> Result<Managed, Error>,
) {
    let tensor = export(&request(asked)).expect("it is exported");
    read(driver, there, &tensor);
    assert_eq!(sim.live(ALLOCATIONS), 1);
    drop(tensor);
}

/// Asserts that only the streams of the test are left.
fn assert_nothing_is_left(sim: &Sim, streams: i32) {
    assert_eq!(stream::collect(), 0);
    assert_eq!(sim.live(ALLOCATIONS), 0);
    assert_eq!(sim.live(STREAMS), streams);
}

/// STC-01, STC-02, STC-03, STC-04, STC-08, STC-09, DEV-07, DEV-09.
#[test]
fn an_image_of_cudarc() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let other = cuda.non_blocking();
    for (asked, there) in [
        (None, 0),
        (Some(1), 0),
        (Some(2), 2),
        (number(other), other),
    ] {
        let own = CudaContext::new(0).unwrap().new_stream().unwrap();
        let image = Arc::new(Image::new(&own, [3, 4]).unwrap());
        let tensor = image.to_dlpack().unwrap();
        let view = tensor.view();
        assert_eq!((view.shape(), view.dtype()), (&[3, 4][..], DataType::F32));
        assert_eq!(view.device(), Device::cuda(0));
        drop(tensor);
        read_elsewhere(&sim, cuda, (asked, there), |request| {
            image.to_dlpack_with(request)
        });
        drop((image, own));
        sim.assert_clean();
        assert_nothing_is_left(&sim, 1);
    }
    let own = CudaContext::new(0).unwrap().new_stream().unwrap();
    let image = Image::new(&own, [3, 4]).unwrap();
    let to_host = ExportRequest {
        dl_device: Some(Device::CPU),
        ..ExportRequest::versioned()
    };
    let copy = image.into_dlpack_with(&to_host).unwrap();
    assert_eq!(copy.view().as_slice::<f32>().unwrap(), [0.5; 12]);
    sim.assert_clean();
}

/// The negative control of the test above: a consumer that requests no order gets none (STC-05).
#[test]
fn an_image_without_order() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let other = cuda.non_blocking();
    let own = CudaContext::new(0).unwrap().new_stream().unwrap();
    let image = Arc::new(Image::new(&own, [3, 4]).unwrap());
    read_elsewhere(&sim, cuda, (Some(-1), other), |request| {
        image.to_dlpack_with(request)
    });
    sim.assert_one_fault(&["race"]);
}

#[test]
fn pages_of_keys_and_values() {
    let sim = Sim::new(1);
    let cuda = sim.cuda();
    let other = cuda.non_blocking();
    let own = CudaContext::new(0).unwrap().new_stream().unwrap();
    let pages = Arc::new(Pages::new(&own, [5, 4, 8]).unwrap());
    let start = |name| {
        let tensor = pages.to_dlpack_tensor(name).unwrap();
        let view = tensor.view();
        assert_eq!(
            (view.shape(), view.strides()),
            (&[5, 4, 8][..], &[64, 8, 1][..])
        );
        assert_eq!(
            (view.dtype(), view.device()),
            (DataType::BF16, Device::cuda(0))
        );
        view.as_ptr().addr()
    };
    assert_eq!(
        start("values") - start("keys"),
        32 * size_of::<half::bf16>()
    );
    for name in Pages::NAMES {
        for (asked, there) in [(None, 0), (number(other), other)] {
            read_elsewhere(&sim, cuda, (asked, there), |request| {
                pages.to_dlpack_tensor_with(name, request)
            });
        }
    }
    drop((pages, own));
    sim.assert_clean();
    assert_nothing_is_left(&sim, 1);
}

/// STR-01, STR-02, STR-04, STR-08.
#[test]
fn a_field_of_hip() {
    let sim = Sim::new(1);
    let hip = sim.hip();
    let other = hip.non_blocking();
    for (asked, there) in [(None, 0), (Some(0), 0), (number(other), other)] {
        let own = Stream::new(library_path()).unwrap();
        let field = Arc::new(Field {
            values: DeviceBuffer::upload(&own, &[0.5; 6]).unwrap(),
            dims: [2, 3],
            device: Device::rocm(0),
            stream: own,
        });
        let tensor = field.to_dlpack().unwrap();
        let view = tensor.view();
        assert_eq!(
            (view.shape(), view.device()),
            (&[2, 3][..], Device::rocm(0))
        );
        assert_eq!(view.as_ptr(), field.values.as_ptr().cast());
        let described = field.describe().unwrap();
        assert_eq!(described.stream(), Some(field.stream.producer_stream()));
        drop((described, tensor));
        // HIP has copied pageable memory when the call returns, so a kernel writes the field here, for which the consumer must
        // wait.
        hip.write(
            field.stream.producer_stream().as_raw(),
            field.values.as_ptr().addr(),
            24,
        );
        read_elsewhere(&sim, hip, (asked, there), |request| {
            field.to_dlpack_with(request)
        });
        drop(field);
        sim.assert_clean();
        assert_nothing_is_left(&sim, 1);
    }
}

/// The stream lives in the struct, which the tensor keeps, so it still exists when the memory is freed.
#[test]
fn the_tensor_keeps_the_stream() {
    let sim = Sim::new(1);
    let hip = sim.hip();
    let other = hip.non_blocking();
    let own = Stream::new(library_path()).unwrap();
    let field = Field {
        values: DeviceBuffer::upload(&own, &[0.5; 6]).unwrap(),
        dims: [2, 3],
        device: Device::rocm(0),
        stream: own,
    };
    let tensor = field.into_dlpack_with(&request(number(other))).unwrap();
    read(hip, other, &tensor);
    assert_eq!(sim.live(STREAMS), 2, "the consumer's, and the struct's");
    drop(tensor);
    sim.assert_clean();
    assert_nothing_is_left(&sim, 1);
}

/// `available` makes neither a context nor a device current.
#[test]
fn available_makes_nothing_current() {
    let sim = Sim::new(1);
    sim.hip();
    for device in [
        Device::CPU,
        Device::cuda(0),
        Device::rocm(0),
        Device::metal(0),
    ] {
        assert_eq!(stream::available(device), Ok(()), "{device}");
    }
    assert_eq!(sim.current_context(), 0);
    let made = |name: &String| name != "cuInit" && name != "hipInit";
    assert_eq!(sim.call_names().into_iter().find(made), None);
}

/// Lines of code that are neither empty nor comments.
fn code(source: &str) -> Vec<&str> {
    let lines = source.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .collect()
}

#[test]
fn the_classes_are_short_and_safe() {
    let safe = [
        include_str!("../../../examples/cuda-slice/src/lib.rs"),
        include_str!("../../../examples/kv-pages/src/lib.rs"),
    ];
    for source in safe {
        let lines = code(source);
        assert!(lines.contains(&"#![forbid(unsafe_code)]"));
        let class = lines
            .iter()
            .filter(|line| !line.starts_with("use ") && !line.starts_with("#!"));
        let count = class.count();
        assert!(count <= 20, "{count} lines:\n{source}");
        assert!(
            lines.iter().all(|line| line.len() < 110),
            "a long line hides another"
        );
    }
    let class = code(include_str!("../../../examples/hip-buffer/src/lib.rs")).join("\n");
    let words = class.split(|c: char| c != '_' && !c.is_alphanumeric());
    assert_eq!(words.filter(|&word| word == "unsafe").count(), 1);
    assert!(class.contains("unsafe(data ="));
}
