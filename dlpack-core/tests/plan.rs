//! The function `plan`: every combination of request and tensor, compared with rules written one by one, and the important ones
//! by hand.

use dlpack_core::abi::{
    DLPACK_FLAG_BITMASK_IS_COPIED as COPIED, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED as PADDED,
    DLPACK_FLAG_BITMASK_READ_ONLY as READ_ONLY,
};
use dlpack_core::request::{Abi, Consumer, Plan, Subject, Transfer, consumer, plan};
use dlpack_core::{DataType, Device, DeviceType, Error, ExportRequest, LegacyPolicy, Version};

const VERSIONS: [Option<(u32, u32)>; 10] = [
    None,
    Some((0, 0)),
    Some((0, 8)),
    Some((0, u32::MAX)),
    Some((1, 0)),
    Some((1, 1)),
    Some((1, 3)),
    Some((1, 99)),
    Some((2, 0)),
    Some((99, 0)),
];
const STREAMS: [Option<i64>; 9] = [
    None,
    Some(-1),
    Some(0),
    Some(1),
    Some(2),
    Some(3),
    Some(-2),
    Some(i64::MIN),
    Some(i64::MAX),
];
const COPIES: [Option<bool>; 3] = [None, Some(true), Some(false)];
/// Every device type of DLPack 1.3, and an unknown one.
const KINDS: [i32; 17] = [1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 99];

/// Calls `check` with every combination of request and tensor.
fn for_every_cell(mut check: impl FnMut(&ExportRequest, &Subject)) {
    let mut cells = 0;
    for kind in KINDS {
        let own = Device::new(DeviceType(kind), i32::from(kind == 2));
        let devices = [
            None,
            Some(own),
            Some(Device::CPU),
            Some(Device::cuda(7)),
            Some(Device::new(own.device_type, 5)),
            Some(Device::new(DeviceType::CPU, 5)),
        ];
        for bits in 0..16_u8 {
            let dtype = DataType::F4_E2M1FN;
            let subject = Subject {
                device: own,
                dtype: if bits & 1 != 0 { dtype.padded() } else { dtype },
                read_only: bits & 2 != 0,
                copied: bits & 4 != 0,
                legacy: [LegacyPolicy::Copy, LegacyPolicy::Refuse][usize::from(bits >> 3)],
            };
            for max_version in VERSIONS.map(|v| v.map(|(major, minor)| Version::new(major, minor)))
            {
                for dl_device in devices {
                    for copy in COPIES {
                        for stream in STREAMS {
                            let request = ExportRequest {
                                stream,
                                max_version,
                                dl_device,
                                copy,
                            };
                            check(&request, &subject);
                            cells += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(cells, 17 * 16 * 10 * 6 * 3 * 9);
}

/// The reason for which a request is refused, without details.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refusal {
    BadStream,
    LegacyPadded,
    Unreachable,
    CopyForbidden,
    LegacyReadOnly,
    CannotCopy,
}

fn refusal(error: &Error) -> Refusal {
    match error {
        Error::BadStream { .. } => Refusal::BadStream,
        Error::LegacyPadded { .. } => Refusal::LegacyPadded,
        Error::UnreachableDevice { .. } => Refusal::Unreachable,
        Error::CopyForbidden { .. } => Refusal::CopyForbidden,
        Error::LegacyReadOnly => Refusal::LegacyReadOnly,
        Error::CannotCopy { .. } => Refusal::CannotCopy,
        other => panic!("a plan does not fail with {other:?}"),
    }
}

/// The device that is requested. DEV-03: memory that the host can read is one device of its kind.
fn dl_device(request: &ExportRequest) -> Option<Device> {
    request.dl_device.map(|device| {
        let single = [1, 3, 11, 13].contains(&device.device_type.0);
        let index = if single { 0 } else { device.device_id };
        Device::new(device.device_type, index)
    })
}

/// The rules of groups 3 to 5 of the requirements, one after another, each with its ID.
fn by_the_rules(request: &ExportRequest, subject: &Subject) -> Result<Plan, Refusal> {
    let kind = subject.device.device_type.0;
    let (cuda, rocm, pinned) = ([2, 13].contains(&kind), kind == 10, [3, 11].contains(&kind));

    // The meaning of the stream number: STC-01 to STC-07, STR-01 to STR-06; STC-12 and STC-15 for all others.
    let (by_cuda, by_hip) = ([2, 3, 13].contains(&kind), [10, 11].contains(&kind));
    let dl_device = dl_device(request);
    let to_host = dl_device == Some(Device::CPU);
    let reader = match request.stream {
        // DEV-09.
        None if (by_cuda || by_hip) && (to_host || pinned || kind == 13) => Consumer::Host,
        None if by_cuda || by_hip => Consumer::Legacy,
        None => Consumer::Unordered,
        Some(-1) if !(by_cuda || by_hip) => Consumer::Unordered,
        Some(_) if to_host => return Err(Refusal::BadStream),
        Some(-1) => Consumer::Unordered,
        Some(0) if by_hip => Consumer::Legacy,
        Some(1) if by_cuda => Consumer::Legacy,
        Some(2) if by_cuda => Consumer::PerThread,
        Some(handle) if handle > 2 && (by_cuda || by_hip) => {
            Consumer::Stream(usize::try_from(handle).unwrap())
        }
        Some(_) => return Err(Refusal::BadStream),
    };

    assert_eq!(
        consumer(request, subject.device),
        Ok(reader),
        "{request:?}\n{subject:?}"
    );

    // NEG-02, NEG-04, NEG-05, NEG-06.
    let legacy = request.max_version.is_none_or(|version| version.major == 0);
    // DTY-13.
    if legacy && subject.dtype.is_padded() {
        return Err(Refusal::LegacyPadded);
    }

    // DEV-04, DEV-05; DEV-10 for pinned memory; DEV-06 for all targets other than the CPU.
    let wanted = dl_device.unwrap_or(subject.device);
    let stays = wanted == subject.device || wanted == Device::CPU && pinned;
    if !stays && !(wanted == Device::CPU && (cuda || rocm)) {
        return Err(Refusal::Unreachable);
    }

    // FLG-04, NEG-07: the legacy struct has no read-only flag, so its consumer gets no read-only memory.
    let cannot_say = legacy && subject.read_only;
    if cannot_say && stays {
        let refused = subject.legacy == LegacyPolicy::Refuse && !subject.copied;
        match request.copy {
            Some(false) => return Err(Refusal::LegacyReadOnly),
            None if refused => return Err(Refusal::LegacyReadOnly),
            _ => {}
        }
    }
    // CPY-02, DEV-08.
    if request.copy == Some(false) && (!stays || subject.copied) {
        return Err(Refusal::CopyForbidden);
    }
    // CPY-01, CPY-03: a tensor that is made for the request is a copy already, if it is passed on unchanged.
    let is_copy = request.copy == Some(true) || !stays || subject.copied || cannot_say;
    let copies_now = is_copy && !(subject.copied && stays && !cannot_say);
    // CPY-10: copies are made by the CPU, or by the driver of a device that has one.
    let on_host = kind == 1 || pinned || kind == 13;
    // DEV-02, DEV-05: the CPU copies to ordinary host memory only.
    if copies_now && on_host && ![None, Some(Device::CPU)].contains(&dl_device) {
        return Err(Refusal::CannotCopy);
    }
    if copies_now && !(on_host || by_cuda || by_hip) {
        return Err(if stays {
            Refusal::CannotCopy
        } else {
            Refusal::Unreachable
        });
    }

    // CPY-04, CPY-05, CPY-07, FLG-02, FLG-07.
    let flag = |set, mask| if set && !legacy { mask } else { 0 };
    Ok(Plan {
        abi: if legacy { Abi::Legacy } else { Abi::Versioned },
        transfer: if copies_now {
            Transfer::Copy
        } else {
            Transfer::Share
        },
        device: if copies_now && on_host {
            Device::CPU
        } else {
            wanted
        },
        flags: flag(is_copy, COPIED)
            | flag(subject.read_only && !copies_now, READ_ONLY)
            | flag(subject.dtype.is_padded(), PADDED),
    })
}

/// NEG-02, NEG-03, NEG-04, NEG-05, NEG-06, NEG-07, NEG-10, DEV-04, DEV-05, DEV-06, DEV-08, DEV-10, CPY-01, CPY-02, CPY-03,
/// CPY-04, CPY-05, CPY-07, CPY-09, CPY-10, STC-05, STC-06, STC-07, STC-12, STC-15, STR-03, STR-05, STR-06, DTY-13,
/// FLG-02, FLG-04, FLG-07: every cell of the table; faults 77, 78, 79, 83.
#[test]
fn every_plan_follows_the_rules() {
    for_every_cell(|request, subject| {
        let found = plan(request, subject).map_err(|error| refusal(&error));
        let expected = by_the_rules(request, subject);
        assert_eq!(found, expected, "{request:?}\n{subject:?}");
    });
}

/// CPY-02, CPY-04, CPY-05, CPY-07, FLG-01, FLG-02, FLG-06, FLG-07, FLG-10, NEG-07, DTY-12: properties of every plan, whatever the
/// request; faults 73, 75.
#[test]
fn every_plan_has_the_common_properties() {
    for_every_cell(|request, subject| {
        let Ok(plan) = plan(request, subject) else {
            return;
        };
        let legacy = plan.abi == Abi::Legacy;
        let copies = plan.transfer == Transfer::Copy;
        let has = |mask| plan.flags & mask != 0;
        let cell = format!("{request:?}\n{subject:?}\n{plan:?}");

        assert!(
            !copies || request.copy != Some(false),
            "copied although forbidden: {cell}"
        );
        assert!(
            copies || subject.copied || request.copy != Some(true),
            "not copied although request_of for: {cell}"
        );
        if legacy {
            assert_eq!(plan.flags, 0, "there is no place for flags: {cell}");
            assert!(copies || !subject.read_only, "read-only lost: {cell}");
            assert!(!subject.dtype.is_padded(), "padding lost: {cell}");
        } else {
            assert_eq!(has(COPIED), copies || subject.copied, "{cell}");
            assert_eq!(has(READ_ONLY), subject.read_only && !copies, "{cell}");
            assert_eq!(has(PADDED), subject.dtype.is_padded(), "{cell}");
            assert_eq!(plan.flags & !(COPIED | READ_ONLY | PADDED), 0, "{cell}");
        }
        assert_eq!(
            legacy,
            request.max_version.is_none_or(|version| version.major < 1),
            "{cell}"
        );
        if copies && subject.device.device_type.is_host_readable() {
            assert_eq!(plan.device, Device::CPU, "{cell}");
        } else if copies {
            assert!([2, 10].contains(&subject.device.device_type.0), "{cell}");
            assert!(
                [subject.device, Device::CPU].contains(&plan.device),
                "{cell}"
            );
        }
        match dl_device(request) {
            Some(wanted) => assert_eq!(plan.device, wanted, "{cell}"),
            None => assert!(copies || plan.device == subject.device, "{cell}"),
        }
    });
}

const ON_CPU: Subject = Subject {
    device: Device::CPU,
    dtype: DataType::F32,
    read_only: false,
    copied: false,
    legacy: LegacyPolicy::Copy,
};
const READ_ONLY_ON_CPU: Subject = Subject {
    read_only: true,
    ..ON_CPU
};
const MADE: Subject = Subject {
    copied: true,
    ..ON_CPU
};

fn on(device: Device) -> Subject {
    Subject { device, ..ON_CPU }
}

fn request_of(max_version: (u32, u32), copy: Option<bool>) -> ExportRequest {
    ExportRequest {
        max_version: Some(Version::new(max_version.0, max_version.1)),
        copy,
        ..ExportRequest::default()
    }
}

type Outcome = Result<(Abi, Transfer, u64), Refusal>;

fn check(rows: &[(ExportRequest, Subject, Outcome)]) {
    for (request, subject, expected) in rows {
        let found = plan(request, subject)
            .map(|plan| (plan.abi, plan.transfer, plan.flags))
            .map_err(|error| refusal(&error));
        assert_eq!(found, *expected, "{request:?}\n{subject:?}");
    }
}

/// Requests of real consumers, as probed: JAX and tvm-ffi request nothing, NumPy and PyTorch (1, 0), nanobind (1, 1); NEG-03,
/// NEG-10, NEG-21, FLG-04, CPY-09; faults 4, 77.
#[test]
fn real_consumers_are_served() {
    let nothing = ExportRequest::default();
    check(&[
        (nothing, ON_CPU, Ok((Abi::Legacy, Transfer::Share, 0))),
        (
            nothing,
            READ_ONLY_ON_CPU,
            Ok((Abi::Legacy, Transfer::Copy, 0)),
        ),
        (
            request_of((1, 0), None),
            ON_CPU,
            Ok((Abi::Versioned, Transfer::Share, 0)),
        ),
        (
            request_of((1, 0), None),
            READ_ONLY_ON_CPU,
            Ok((Abi::Versioned, Transfer::Share, READ_ONLY)),
        ),
        (
            request_of((1, 0), Some(true)),
            READ_ONLY_ON_CPU,
            Ok((Abi::Versioned, Transfer::Copy, COPIED)),
        ),
        (
            request_of((1, 1), Some(false)),
            READ_ONLY_ON_CPU,
            Ok((Abi::Versioned, Transfer::Share, READ_ONLY)),
        ),
        (
            request_of((0, 0), Some(true)),
            ON_CPU,
            Ok((Abi::Legacy, Transfer::Copy, 0)),
        ),
        (
            request_of((0, 0), Some(true)),
            READ_ONLY_ON_CPU,
            Ok((Abi::Legacy, Transfer::Copy, 0)),
        ),
        (
            request_of((0, 0), Some(false)),
            ON_CPU,
            Ok((Abi::Legacy, Transfer::Share, 0)),
        ),
        (
            request_of((0, 0), Some(false)),
            READ_ONLY_ON_CPU,
            Err(Refusal::LegacyReadOnly),
        ),
        (
            request_of((2, 0), None),
            ON_CPU,
            Ok((Abi::Versioned, Transfer::Share, 0)),
        ),
        (
            request_of((1, 0), None),
            MADE,
            Ok((Abi::Versioned, Transfer::Share, COPIED)),
        ),
        (
            request_of((1, 0), Some(true)),
            MADE,
            Ok((Abi::Versioned, Transfer::Share, COPIED)),
        ),
        (
            request_of((1, 0), Some(false)),
            MADE,
            Err(Refusal::CopyForbidden),
        ),
    ]);
}

/// FLG-04: a producer that refuses copies for legacy consumers refuses the request, unless the consumer requests a copy.
#[test]
fn a_strict_producer_refuses_legacy_consumers() {
    let strict = Subject {
        legacy: LegacyPolicy::Refuse,
        ..READ_ONLY_ON_CPU
    };
    check(&[
        (
            ExportRequest::default(),
            strict,
            Err(Refusal::LegacyReadOnly),
        ),
        (
            request_of((0, 8), Some(false)),
            strict,
            Err(Refusal::LegacyReadOnly),
        ),
        (
            request_of((0, 8), Some(true)),
            strict,
            Ok((Abi::Legacy, Transfer::Copy, 0)),
        ),
        (
            request_of((1, 0), None),
            strict,
            Ok((Abi::Versioned, Transfer::Share, READ_ONLY)),
        ),
    ]);
}

/// DEV-05, DEV-06, DEV-07, DEV-08, DEV-10, CPY-10.
#[test]
fn devices() {
    let to = |device, copy, stream| ExportRequest {
        dl_device: Some(device),
        stream,
        ..request_of((1, 0), copy)
    };
    let pinned = on(Device::new(DeviceType::CUDA_HOST, 0));
    let managed = on(Device::new(DeviceType::CUDA_MANAGED, 0));
    let metal = on(Device::metal(0));
    let share = Ok((Abi::Versioned, Transfer::Share, 0));
    let copy = Ok((Abi::Versioned, Transfer::Copy, COPIED));
    check(&[
        (to(Device::CPU, None, None), ON_CPU, share),
        (
            to(Device::new(DeviceType::CPU, 1), None, None),
            ON_CPU,
            share,
        ),
        (
            to(Device::cuda(0), None, None),
            ON_CPU,
            Err(Refusal::Unreachable),
        ),
        (
            to(Device::cuda(0), None, Some(-1)),
            on(Device::cuda(0)),
            share,
        ),
        (
            to(Device::cuda(1), None, Some(-1)),
            on(Device::cuda(0)),
            Err(Refusal::Unreachable),
        ),
        (to(Device::CPU, None, None), on(Device::cuda(0)), copy),
        (to(Device::CPU, None, None), on(Device::rocm(0)), copy),
        (
            to(Device::CPU, Some(false), None),
            on(Device::cuda(0)),
            Err(Refusal::CopyForbidden),
        ),
        (request_of((1, 0), Some(true)), on(Device::cuda(0)), copy),
        (request_of((1, 0), Some(true)), on(Device::rocm(0)), copy),
        (to(Device::CPU, None, None), pinned, share),
        (to(Device::CPU, Some(true), None), pinned, copy),
        (to(Device::CPU, Some(false), None), pinned, share),
        (to(Device::CPU, None, None), managed, copy),
        (
            to(Device::CPU, Some(false), None),
            managed,
            Err(Refusal::CopyForbidden),
        ),
        (to(pinned.device, None, None), pinned, share),
        (
            to(pinned.device, Some(true), None),
            pinned,
            Err(Refusal::CannotCopy),
        ),
        (to(managed.device, None, None), managed, share),
        (
            to(managed.device, Some(true), None),
            managed,
            Err(Refusal::CannotCopy),
        ),
        (to(Device::metal(0), None, None), metal, share),
        (
            to(Device::metal(0), Some(true), None),
            metal,
            Err(Refusal::CannotCopy),
        ),
        (
            to(Device::CPU, None, None),
            metal,
            Err(Refusal::Unreachable),
        ),
    ]);
    // DEV-02, DEV-03: the exported tensor names the device of its memory.
    for (request, subject, device) in [
        (to(Device::CPU, None, None), pinned, Device::CPU),
        (request_of((1, 0), None), pinned, pinned.device),
        (request_of((1, 0), Some(true)), pinned, Device::CPU),
        (to(Device::CPU, None, None), managed, Device::CPU),
        (
            to(Device::CPU, None, None),
            on(Device::cuda(3)),
            Device::CPU,
        ),
        (
            request_of((1, 0), Some(true)),
            on(Device::cuda(3)),
            Device::cuda(3),
        ),
    ] {
        assert_eq!(
            plan(&request, &subject).map(|plan| plan.device),
            Ok(device),
            "{request:?}"
        );
    }
}

/// STC-01, STC-02, STC-03, STC-04, STC-05, STC-06, STC-07, STC-12, STC-15, STC-16, STR-01, STR-02, STR-03, STR-04, STR-05,
/// STR-06, DEV-09, ERR-04; faults 83.
#[test]
fn streams() {
    use Consumer::{Host, Legacy, PerThread, Stream, Unordered};
    let bad = Err(Refusal::BadStream);
    let streams = [
        None,
        Some(-1),
        Some(0),
        Some(1),
        Some(2),
        Some(3),
        Some(i64::MAX),
        Some(-2),
        Some(i64::MIN),
    ];
    let last = Stream(usize::try_from(i64::MAX).unwrap());
    for (kinds, consumers) in [
        (
            &[
                DeviceType::CPU,
                DeviceType::METAL,
                DeviceType::ONE_API,
                DeviceType(99),
            ][..],
            [
                Ok(Unordered),
                Ok(Unordered),
                bad,
                bad,
                bad,
                bad,
                bad,
                bad,
                bad,
            ],
        ),
        (
            &[DeviceType::CUDA],
            [
                Ok(Legacy),
                Ok(Unordered),
                bad,
                Ok(Legacy),
                Ok(PerThread),
                Ok(Stream(3)),
                Ok(last),
                bad,
                bad,
            ],
        ),
        (
            &[DeviceType::CUDA_MANAGED, DeviceType::CUDA_HOST],
            [
                Ok(Host),
                Ok(Unordered),
                bad,
                Ok(Legacy),
                Ok(PerThread),
                Ok(Stream(3)),
                Ok(last),
                bad,
                bad,
            ],
        ),
        (
            &[DeviceType::ROCM],
            [
                Ok(Legacy),
                Ok(Unordered),
                Ok(Legacy),
                bad,
                bad,
                Ok(Stream(3)),
                Ok(last),
                bad,
                bad,
            ],
        ),
        (
            &[DeviceType::ROCM_HOST],
            [
                Ok(Host),
                Ok(Unordered),
                Ok(Legacy),
                bad,
                bad,
                Ok(Stream(3)),
                Ok(last),
                bad,
                bad,
            ],
        ),
    ] {
        for &kind in kinds {
            for (stream, expected) in streams.into_iter().zip(consumers) {
                let subject = on(Device::new(kind, 0));
                let find = |dl_device| {
                    let request = ExportRequest {
                        stream,
                        dl_device,
                        ..request_of((1, 0), None)
                    };
                    plan(&request, &subject)
                        .and_then(|_| consumer(&request, subject.device))
                        .map_err(|error| refusal(&error))
                };
                assert_eq!(find(None), expected, "{kind} {stream:?}");
                // DEV-09: a consumer that requests the data on the CPU has no stream on which to wait.
                if kind.is_host_readable() || [DeviceType::CUDA, DeviceType::ROCM].contains(&kind) {
                    let expected = match (stream, kind) {
                        (None | Some(-1), DeviceType::CPU) => Ok(Unordered),
                        (Some(_), _) => bad,
                        (None, _) => Ok(Host),
                    };
                    assert_eq!(
                        find(Some(Device::CPU)),
                        expected,
                        "{kind} {stream:?} to the cpu"
                    );
                }
            }
        }
    }
}

/// DTY-13, NEG-07: the legacy struct has no padding flag, so a copy is refused, too.
#[test]
fn padded_values_are_never_exported_legacy() {
    let padded = Subject {
        dtype: DataType::F6_E3M2FN.padded(),
        ..ON_CPU
    };
    for copy in COPIES {
        check(&[(request_of((0, 8), copy), padded, Err(Refusal::LegacyPadded))]);
    }
    check(&[(
        request_of((1, 0), None),
        padded,
        Ok((Abi::Versioned, Transfer::Share, PADDED)),
    )]);
}

/// ERR-10, ERR-12: the first broken rule is reported, with the found and the needed value.
#[test]
fn errors_name_the_request() {
    let request = ExportRequest {
        stream: Some(5),
        dl_device: Some(Device::cuda(3)),
        ..ExportRequest::default()
    };
    let error = plan(&request, &ON_CPU).unwrap_err();
    assert_eq!(
        error,
        Error::BadStream {
            found: 5,
            device: Device::CPU
        }
    );
    let request = ExportRequest {
        stream: None,
        ..request
    };
    assert_eq!(
        plan(&request, &ON_CPU).unwrap_err().to_string(),
        "the data is on cpu, and this producer cannot copy it to cuda:3"
    );
}
