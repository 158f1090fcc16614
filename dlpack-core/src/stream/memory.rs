//! Memory of a device, for copies.
#![expect(unsafe_code, reason = "calls C functions that were found by name")]

use crate::stream::driver::{Driver, Own, driver};
use crate::stream::link::Link;
use crate::stream::owner::StreamOwner;
use crate::stream::visit::{Visit, raw};
use crate::stream::waiting::free_later;
use crate::stream::{Queue, place::Place, release::Release, rules::Origin};
use crate::{Device, Error};

/// Memory of a device that the driver gave us.
///
/// | | made | freed |
/// |---|---|---|
/// | a device with memory pools | in the order of the stream that uses it first | CUDA: at once, when nobody uses it any more. HIP waits for the device there, but not if it is freed on the default stream |
/// | any other, or a stream of another device | by a call that can wait for the device | likewise |
pub(crate) struct DeviceMemory {
    device: Device,
    pub(crate) address: usize,
    /// Whether it is a pool's.
    pooled: bool,
}

impl DeviceMemory {
    pub(crate) const fn none(device: Device) -> Self {
        Self {
            device,
            address: 0,
            pooled: false,
        }
    }

    /// New memory, the address of which is a multiple of 256, for work on a stream of this place, which is entered then.
    pub(crate) fn new(
        visit: &Visit,
        bytes: usize,
        stream: Queue,
        there: Place,
    ) -> Result<Self, Error> {
        let device = visit.device;
        visit.enter(there.enter)?;
        let mut address = 0;
        let stream = raw(stream.handle);
        // A pool is that of the stream's device. It may have to grow, and others may capture meanwhile.
        visit.relax()?;
        let pooled = visit.device_of_now()? == device.device_id
            // SAFETY: a place for the result, and a stream that lives.
            && unsafe { visit.driver.allocate_ordered(&raw mut address, bytes, stream) }?;
        if !pooled {
            visit.enter(visit.primary()?.enter)?;
            // SAFETY: a place for the result.
            visit.blocking(|| unsafe { visit.driver.allocate(&raw mut address, bytes) })?;
        }
        let memory = Self {
            device,
            address,
            pooled,
        };
        visit.enter(there.enter).map(|()| memory)
    }

    /// The same, freed only then: the driver may wait for what is still at work there, or may not.
    pub(crate) fn after(self, release: Release, bytes: usize) -> StreamOwner<Self> {
        let link = Link::new(Origin::unsaid(self.device)).after(release, bytes);
        StreamOwner::new(self, link)
    }

    fn free(&self, driver: &'static Driver) -> Result<(), Error> {
        let visit = driver.visit(self.device)?;
        visit.enter(visit.primary()?.enter)?;
        if let (true, Own::Hip(..)) = (self.pooled, &driver.own) {
            // SAFETY: the address came from `allocate_ordered`, and this is the one time.
            return unsafe { driver.free_ordered(self.address, raw(0)) }.map(drop);
        }
        // SAFETY: the address came from the driver, and this is the one time.
        visit.blocking(|| unsafe { driver.free(self.address) })
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
        if address != 0 && driver(api).and_then(|driver| self.free(driver)).is_err() {
            let again = Self {
                device,
                address,
                pooled,
            };
            free_later(device, Release::Free, again);
        }
    }
}
