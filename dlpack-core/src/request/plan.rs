//! The one table that turns a request and a tensor into a plan; pure.

use crate::request::{ExportRequest, LegacyPolicy, consumer::consumer};
use crate::version::{Abi, negotiate};
use crate::{DataType, Device, DeviceType, Error, abi};

/// What the plan has to know of a tensor.
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
    /// Where it lies.
    pub device: Device,
    /// What it holds.
    pub dtype: DataType,
    /// Whether a consumer must not write to it.
    pub read_only: bool,
    /// Whether it is a copy already, made for this request, so that nobody else holds it.
    pub copied: bool,
    /// What to do with it for a legacy consumer.
    pub legacy: LegacyPolicy,
}

/// Whether the consumer gets the data or a copy of it.
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
    /// The data themselves.
    Share,
    /// A copy, made by the producer, that nobody else holds.
    Copy,
}

/// How a request is served.
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
    /// What it gets.
    pub transfer: Transfer,
    /// The device that is stamped on it.
    pub device: Device,
    /// The flags that are set in it.
    pub flags: u64,
}

/// How `request` is served for a tensor such as `subject`, or why not.
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
/// // The legacy struct cannot say read-only, so its consumer gets a copy that it may write to.
/// let plan = plan(&ExportRequest::default(), &read_only)?;
/// assert_eq!((plan.abi, plan.transfer), (Abi::Legacy, Transfer::Copy));
/// # Ok::<(), dlpack_core::Error>(())
/// ```
///
/// # Errors
///
/// The first rule that the request breaks: its stream, its device, its copying, the limits of the
/// legacy struct, in this order. Nothing was done then.
pub fn plan(request: &ExportRequest, subject: &Subject) -> Result<Plan, Error> {
    // Most tensors need no more than this look.
    if subject.device.device_type != DeviceType::CPU || request.stream.is_some() {
        consumer(request, subject.device)?;
    }
    let abi = negotiate(request.max_version);
    if abi == Abi::Legacy && subject.dtype.is_padded() {
        return Err(Error::LegacyPadded {
            dtype: subject.dtype,
        });
    }

    let (device, moved) = target(request, subject)?;
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
    // What was made for this request is a copy already, unless it still has to move or be unlocked.
    let ready = subject.copied && !moved && (abi == Abi::Versioned || !subject.read_only);
    let transfer = if copied && !ready {
        Transfer::Copy
    } else {
        Transfer::Share
    };
    let device = if transfer == Transfer::Copy {
        copied_to(device, subject, moved)?
    } else {
        device
    };

    Ok(Plan {
        abi,
        transfer,
        device,
        flags: flags(subject, transfer, copied, abi),
    })
}

/// What the struct says of the tensor beside its fields. A copy may be written.
#[inline]
fn flags(subject: &Subject, transfer: Transfer, copied: bool, abi: Abi) -> u64 {
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

/// Where a copy lies, if one can be made: it is the processor that copies, or the driver of the device.
fn copied_to(requested: Device, subject: &Subject, moved: bool) -> Result<Device, Error> {
    let device = subject.device;
    if device.device_type.is_host_readable() {
        // A copy of host memory is ordinary memory, wherever the original was registered.
        return Ok(Device::CPU);
    }
    if cfg!(feature = "std") && device.device_type.stream_api().is_some() {
        return Ok(requested);
    }
    if moved {
        return unreachable(device, requested);
    }
    Err(Error::CannotCopy { device })
}

/// The device that the consumer gets the data on, and whether they have to move there.
fn target(request: &ExportRequest, subject: &Subject) -> Result<(Device, bool), Error> {
    let own = subject.device;
    match request.dl_device {
        None => Ok((own, false)),
        Some(requested) if requested == own => Ok((own, false)),
        Some(Device::CPU) if own.device_type.is_pinned() => Ok((Device::CPU, false)),
        Some(Device::CPU) if own.device_type.stream_api().is_some() => Ok((Device::CPU, true)),
        Some(requested) => unreachable(own, requested),
    }
}

fn unreachable<T>(data: Device, requested: Device) -> Result<T, Error> {
    Err(Error::UnreachableDevice { data, requested })
}

/// The plan of an export from Rust to Rust, where nobody asked for anything.
#[inline]
pub(crate) fn plan_unasked(subject: &Subject) -> Plan {
    let (abi, transfer) = (Abi::Versioned, Transfer::Share);
    Plan {
        abi,
        transfer,
        device: subject.device,
        flags: flags(subject, transfer, subject.copied, abi),
    }
}

/// Where the data of an export comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// From its owner, which goes with it.
    Share,
    /// The processor copies.
    CopyHost,
    /// A driver copies, or has to be waited for.
    CopyDevice,
    /// It is a copy, which was made for this request before it was planned.
    AlreadyCopied,
}

impl Plan {
    /// The way for data on this device; `copied` if they are a copy that goes with their description.
    #[inline]
    pub(crate) fn way(&self, device: Device, copied: bool) -> Way {
        match (self.transfer, copied, device.device_type) {
            (Transfer::Copy, _, DeviceType::CPU) => Way::CopyHost,
            (Transfer::Copy, _, _) => Way::CopyDevice,
            (Transfer::Share, true, _) => Way::AlreadyCopied,
            (Transfer::Share, false, _) => Way::Share,
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
            (Transfer::Share, Device::CPU, false, Way::Share),
            (Transfer::Share, gpu, false, Way::Share),
            (Transfer::Share, Device::CPU, true, Way::AlreadyCopied),
            (Transfer::Share, gpu, true, Way::AlreadyCopied),
            // What was made for the request is copied once more where it still has to be unlocked, or to move.
            (Transfer::Copy, Device::CPU, true, Way::CopyHost),
            (Transfer::Copy, Device::CPU, false, Way::CopyHost),
            (Transfer::Copy, gpu, true, Way::CopyDevice),
            (Transfer::Copy, gpu, false, Way::CopyDevice),
        ] {
            let plan = Plan {
                abi: Abi::Versioned,
                transfer,
                device,
                flags: 0,
            };
            let found = plan.way(device, copied);
            assert_eq!(found, expected, "{transfer:?} {device} {copied}");
        }
    }
}
