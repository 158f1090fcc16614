//! Device memory for copies.
#![expect(unsafe_code, reason = "calls C functions that were found by name")]

use crate::stream::deferred::defer_free;
use crate::stream::driver::{ApiCalls, Driver, find_driver};
use crate::stream::owner::StreamOwner;
use crate::stream::session::{DriverSession, handle_of};
use crate::stream::state::StreamState;
use crate::stream::{Queue, context::StreamContext, release::Release, rules::Origin};
use crate::{Device, Error};

/// Device memory that core allocated through the driver.
///
/// | | allocated | freed |
/// |---|---|---|
/// | a device with memory pools | in the order of the stream that uses it first | CUDA: at once, when no work uses it any more. HIP: on the default stream, since another free waits for the device |
/// | any other, or a stream of another device | by a call that can wait for the device | by a call that can wait for the device |
pub(crate) struct DeviceMemory {
    device: Device,
    pub(crate) address: usize,
    /// Whether it was allocated from a pool.
    pooled: bool,
}

impl DeviceMemory {
    pub(crate) const fn unallocated(device: Device) -> Self {
        Self {
            device,
            address: 0,
            pooled: false,
        }
    }

    /// Allocates memory for work on a stream of this context, and makes that context current. The address is a multiple of 256.
    pub(crate) fn new(
        session: &DriverSession,
        bytes: usize,
        stream: Queue,
        there: StreamContext,
    ) -> Result<Self, Error> {
        let device = session.device;
        session.enter_context(there.to_enter)?;
        let mut address = 0;
        let stream = handle_of(stream.handle);
        // The pool is that of the stream's device. It may have to grow, and other threads may capture meanwhile.
        session.relax_capture_mode()?;
        let pooled = session.current_device()? == device.device_id
            // SAFETY: `address` is valid for writing, and the stream lives.
            && unsafe { session.driver.allocate_ordered(&raw mut address, bytes, stream) }?;
        if !pooled {
            session.enter_context(session.home_context()?.to_enter)?;
            // SAFETY: `address` is valid for writing the result.
            session.run_blocking(|| unsafe { session.driver.allocate(&raw mut address, bytes) })?;
        }
        let memory = Self {
            device,
            address,
            pooled,
        };
        session.enter_context(there.to_enter).map(|()| memory)
    }

    /// Defers the free until the release condition is met: the driver may or may not wait for work that still uses the memory.
    pub(crate) fn free_after(self, release: Release, bytes: usize) -> StreamOwner<Self> {
        let link = StreamState::new(Origin::of_device(self.device)).with_release(release, bytes);
        StreamOwner::new(self, link)
    }

    fn free_memory(&self, driver: &'static Driver) -> Result<(), Error> {
        let session = driver.begin_session(self.device)?;
        session.enter_context(session.home_context()?.to_enter)?;
        if let (true, ApiCalls::Hip(..)) = (self.pooled, &driver.api_calls) {
            // SAFETY: the address came from `allocate_ordered` and is freed once, here.
            return unsafe { driver.free_ordered(self.address, handle_of(0)) }.map(drop);
        }
        // SAFETY: the address came from the driver and is freed once, here.
        session.run_blocking(|| unsafe { driver.free(self.address) })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let Self {
            device,
            address,
            pooled,
        } = *self;
        let Some(api) = device.device_type.stream_api() else {
            return;
        };
        if address != 0
            && find_driver(api)
                .and_then(|driver| self.free_memory(driver))
                .is_err()
        {
            let again = Self {
                device,
                address,
                pooled,
            };
            defer_free(device, Release::Free, again);
        }
    }
}
