//! The table from a request and a tensor to a plan, without side effects.

use crate::request::{ExportRequest, LegacyPolicy, consumer::consumer};
use crate::version::{Abi, negotiate};
use crate::{DataType, Device, DeviceType, Error, abi};

/// The properties of a tensor on which its plan depends.
///
/// ```
/// use dlpack_core::{DataType, Device, LegacyPolicy};
/// use dlpack_core::request::Subject;
///
/// let picture = Subject {
///     device: Device::CPU,
///     dtype: DataType::U8,
///     read_only: false,
///     copied: false,
///     legacy: LegacyPolicy::Copy,
/// };
/// assert!(!picture.dtype.is_padded());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subject {
    /// The device of the data.
    pub device: Device,
    /// The data type.
    pub dtype: DataType,
    /// Whether consumers must not write.
    pub read_only: bool,
    /// Whether it is already a copy that was made for this request and that no other code holds.
    pub copied: bool,
    /// How read-only data is exported to a legacy consumer.
    pub legacy: LegacyPolicy,
}

/// Whether the consumer gets the data itself or a copy.
///
/// ```
/// use dlpack_core::{DataType, Device, ExportRequest, LegacyPolicy};
/// use dlpack_core::request::{Subject, Transfer, plan};
///
/// let subject = Subject {
///     device: Device::CPU,
///     dtype: DataType::U8,
///     read_only: false,
///     copied: false,
///     legacy: LegacyPolicy::Copy,
/// };
/// assert_eq!(plan(&ExportRequest::versioned(), &subject)?.transfer, Transfer::Share);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Transfer {
    /// The data itself.
    Share,
    /// A copy that the producer makes, and that no other code holds.
    Copy,
}

/// How a request is answered.
///
/// ```
/// use dlpack_core::{DataType, Device, ExportRequest, LegacyPolicy};
/// use dlpack_core::request::{Subject, plan};
///
/// let subject = Subject {
///     device: Device::CPU,
///     dtype: DataType::U8,
///     read_only: true,
///     copied: false,
///     legacy: LegacyPolicy::Copy,
/// };
/// let plan = plan(&ExportRequest::versioned(), &subject)?;
/// assert_eq!(plan.flags, dlpack_core::abi::DLPACK_FLAG_BITMASK_READ_ONLY);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The struct that the consumer gets.
    pub abi: Abi,
    /// Whether the data is shared or copied.
    pub transfer: Transfer,
    /// The device in the struct.
    pub device: Device,
    /// The flags in the struct.
    pub flags: u64,
}

/// Plans the answer to `request` for a tensor with the properties `subject`.
///
/// ```
/// use dlpack_core::{DataType, Device, ExportRequest, LegacyPolicy};
/// use dlpack_core::request::{Abi, Subject, Transfer, plan};
///
/// let read_only = Subject {
///     device: Device::CPU,
///     dtype: DataType::F32,
///     read_only: true,
///     copied: false,
///     legacy: LegacyPolicy::Copy,
/// };
/// // The legacy struct has no read-only flag, so its consumer gets a writable copy.
/// let plan = plan(&ExportRequest::default(), &read_only)?;
/// assert_eq!((plan.abi, plan.transfer), (Abi::Legacy, Transfer::Copy));
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// The first rule that the request breaks, in this order: its stream, a data type that the legacy struct cannot describe, its
/// device, read-only data for the legacy struct, its `copy`, a copy that cannot be made. Planning has no side effects.
pub fn plan(request: &ExportRequest, subject: &Subject) -> Result<Plan, Error> {
    // On the CPU without a stream, as in most requests, there is nothing to check.
    if subject.device.device_type != DeviceType::CPU || request.stream.is_some() {
        consumer(request, subject.device)?;
    }
    let abi = negotiate(request.max_version);
    if abi == Abi::Legacy && subject.dtype.is_padded() {
        return Err(Error::LegacyPadded {
            dtype: subject.dtype,
        });
    }

    let (device, moved) = target_device(request, subject)?;
    let needed = if moved {
        Some("the data lies on another device")
    } else if subject.copied {
        Some("the tensor is made on request")
    } else if abi == Abi::Legacy && subject.read_only {
        if subject.legacy == LegacyPolicy::Refuse && request.copy != Some(true) {
            return Err(Error::LegacyReadOnly);
        }
        Some("the data is read-only, and a legacy tensor has no flag for that")
    } else {
        None
    };
    let copied = match (request.copy, needed) {
        (Some(false), Some(_)) if abi == Abi::Legacy && subject.read_only && !moved => {
            return Err(Error::LegacyReadOnly);
        }
        (Some(false), Some(why)) => return Err(Error::CopyForbidden { why }),
        (Some(true), _) | (None, Some(_)) => true,
        (Some(false) | None, None) => false,
    };
    // A tensor that was made for this request is already a copy, unless it must still change device or become writable.
    let ready = subject.copied && !moved && (abi == Abi::Versioned || !subject.read_only);
    let transfer = if copied && !ready {
        Transfer::Copy
    } else {
        Transfer::Share
    };
    let device = if transfer == Transfer::Copy {
        device_of_copy(request, device, subject, moved)?
    } else {
        device
    };

    Ok(Plan {
        abi,
        transfer,
        device,
        flags: struct_flags(subject, transfer, copied, abi),
    })
}

/// The flags of the struct. A copy is writable.
#[inline]
fn struct_flags(subject: &Subject, transfer: Transfer, copied: bool, abi: Abi) -> u64 {
    let flag = |is: bool, flag: u64| if is { flag } else { 0 };
    if abi == Abi::Legacy {
        return 0;
    }
    flag(copied, abi::DLPACK_FLAG_BITMASK_IS_COPIED)
        | flag(
            subject.read_only && transfer == Transfer::Share,
            abi::DLPACK_FLAG_BITMASK_READ_ONLY,
        )
        | flag(
            subject.dtype.is_padded(),
            abi::DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED,
        )
}

/// The device of a copy, if one can be made: by the host, or by the driver of the device.
fn device_of_copy(
    request: &ExportRequest,
    target: Device,
    subject: &Subject,
    moved: bool,
) -> Result<Device, Error> {
    let device = subject.device;
    if device.device_type.is_host_readable() {
        // DEV-05: a copy of host-readable memory is ordinary host memory, even if the original was registered with a driver. It does
        // not answer a request that names the device of such memory.
        return match request.dl_device {
            Some(_) if target != Device::CPU => Err(Error::CannotCopy { device }),
            _ => Ok(Device::CPU),
        };
    }
    if cfg!(feature = "streams") && device.device_type.stream_api().is_some() {
        return Ok(target);
    }
    if moved {
        return unreachable_device(device, target);
    }
    Err(Error::CannotCopy { device })
}

/// The device on which the consumer gets the data, and whether the data must move there.
fn target_device(request: &ExportRequest, subject: &Subject) -> Result<(Device, bool), Error> {
    let own = subject.device;
    match request.requested_device() {
        None => Ok((own, false)),
        Some(requested) if requested == own => Ok((own, false)),
        Some(Device::CPU) if own.device_type.is_pinned() => Ok((Device::CPU, false)),
        Some(Device::CPU) if own.device_type.stream_api().is_some() => Ok((Device::CPU, true)),
        Some(requested) => unreachable_device(own, requested),
    }
}

fn unreachable_device<T>(data: Device, requested: Device) -> Result<T, Error> {
    Err(Error::UnreachableDevice { data, requested })
}

/// The plan of an export without a request, for a consumer in Rust.
#[inline]
pub(crate) fn plan_without_request(subject: &Subject) -> Plan {
    let (abi, transfer) = (Abi::Versioned, Transfer::Share);
    Plan {
        abi,
        transfer,
        device: subject.device,
        flags: struct_flags(subject, transfer, subject.copied, abi),
    }
}

/// Where the data of an export comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransferPath {
    /// The memory of the owner, which the export keeps.
    Share,
    /// A copy by the host.
    CopyHost,
    /// A copy by a driver, or by the host after it has waited for a driver.
    CopyDevice,
    /// A copy that was made for this request before the plan.
    AlreadyCopied,
}

impl Plan {
    /// The source of the data on this device; `copied` if the description owns a copy.
    #[inline]
    pub(crate) fn transfer_path(&self, device: Device, copied: bool) -> TransferPath {
        match (self.transfer, copied, device.device_type) {
            (Transfer::Copy, _, DeviceType::CPU) => TransferPath::CopyHost,
            (Transfer::Copy, _, _) => TransferPath::CopyDevice,
            (Transfer::Share, true, _) => TransferPath::AlreadyCopied,
            (Transfer::Share, false, _) => TransferPath::Share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_has_its_way() {
        let gpu = Device::cuda(0);
        for (transfer, device, copied, expected) in [
            (Transfer::Share, Device::CPU, false, TransferPath::Share),
            (Transfer::Share, gpu, false, TransferPath::Share),
            (
                Transfer::Share,
                Device::CPU,
                true,
                TransferPath::AlreadyCopied,
            ),
            (Transfer::Share, gpu, true, TransferPath::AlreadyCopied),
            // A tensor that was made for the request is copied once more if it must become writable or change device.
            (Transfer::Copy, Device::CPU, true, TransferPath::CopyHost),
            (Transfer::Copy, Device::CPU, false, TransferPath::CopyHost),
            (Transfer::Copy, gpu, true, TransferPath::CopyDevice),
            (Transfer::Copy, gpu, false, TransferPath::CopyDevice),
        ] {
            let plan = Plan {
                abi: Abi::Versioned,
                transfer,
                device,
                flags: 0,
            };
            let found = plan.transfer_path(device, copied);
            assert_eq!(found, expected, "{transfer:?} {device} {copied}");
        }
    }
}
