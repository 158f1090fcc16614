//! [`Elsewhere`]: a tensor on a device, at an address that must not be read.
#![expect(
    unsafe_code,
    reason = "claims memory at an address, as the tests of device rules need it"
)]

use dlpack_pyo3::{DLPack, Device, DeviceType, dlpack_pymethods};
use pyo3::prelude::*;

use crate::alive::Alive;

/// Four floats of which only the address is known.
#[pyclass(frozen, module = "dlpack_probe")]
#[derive(DLPack)]
#[dlpack(
    // SAFETY: the address is only passed on; no test reads there.
    unsafe(data = self.address as *const f32, len = 4),
    device = self.device
)]
pub(crate) struct Elsewhere {
    address: usize,
    device: Device,
    _alive: Alive,
}

#[dlpack_pymethods]
#[pymethods]
impl Elsewhere {
    #[new]
    #[pyo3(signature = (device_type, device_id=0))]
    fn new(device_type: i32, device_id: i32) -> Self {
        Self {
            address: 0x1000,
            device: Device {
                device_type: DeviceType(device_type),
                device_id,
            },
            _alive: Alive::new(),
        }
    }
}
