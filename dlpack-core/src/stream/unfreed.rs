//! Owners that could not be dropped when their consumer was done, and when they are tried again.
#![expect(unsafe_code, reason = "frees, on the caller's word, what graphs read")]

use alloc::{boxed::Box, vec::Vec};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::stream::driver::{Driver, driver};
use crate::stream::release::{Freeing, Release, Settlement, settle};
use crate::{Device, device::Api, panics::contain_panic};

/// An owner that could not be dropped when its consumer was done.
pub(super) struct Unfreed {
    link: Freeing,
    /// Dropped where it may be, or forgotten.
    owner: Box<dyn Send>,
}

/// Those whose data is in a graph.
pub(super) static GRAPHS: Mutex<Vec<Unfreed>> = Mutex::new(Vec::new());
/// Those for which the driver refused; they are tried again.
pub(super) static RETRIES: Mutex<Vec<Unfreed>> = Mutex::new(Vec::new());

/// Nothing panics while one of them is locked.
fn lock(list: &Mutex<Vec<Unfreed>>) -> MutexGuard<'_, Vec<Unfreed>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Unfreed {
    #[cold]
    pub(super) fn push<O: Send + 'static>(list: &Mutex<Vec<Self>>, link: &Freeing, owner: O) {
        let one = Self {
            link: *link,
            owner: Box::new(owner),
        };
        lock(list).push(one);
    }

    /// Drops the owner if that can be done now.
    fn try_release(self, driver: &'static Driver) -> Result<(), Self> {
        match settle(driver, &self.link) {
            Ok(Settlement::Free(_visit)) => {
                // Whoever is dropped here has nothing to do with the owner that the caller is dropping.
                contain_panic(|| drop(self.owner));
                Ok(())
            }
            Ok(Settlement::Captured) | Err(_) => Err(self),
        }
    }
}

/// Drops the owner when there is next something to do with the driver.
pub(crate) fn free_later<O: Send + 'static>(device: Device, owner: O) {
    Unfreed::push(&RETRIES, &Freeing::at_once(device, Release::Free), owner);
}

/// Tries again to free what could not be freed before: called whenever something has been done with the driver, and so
/// not where it refuses, or where a capture is known that this could break.
pub(crate) fn retry(api: Api) {
    let waiting = {
        let mut list = lock(&RETRIES);
        if list.is_empty() {
            return;
        }
        core::mem::take(&mut *list)
    };
    let Ok(driver) = driver(api) else {
        return lock(&RETRIES).extend(waiting);
    };
    for one in waiting {
        let same = one.link.origin.device.device_type.api() == Some(api);
        let left = if same {
            one.try_release(driver)
        } else {
            Err(one)
        };
        if let Err(one) = left {
            lock(&RETRIES).push(one);
        }
    }
}

/// How many owners are kept because their data was read in a capture: a graph may be launched long after its consumer
/// has let go of the tensor.
///
/// ```
/// assert_eq!(dlpack_core::stream::captured(), 0);
/// ```
#[must_use]
pub fn captured() -> usize {
    lock(&GRAPHS).len()
}

/// Drops the owners of data that was read in captures.
///
/// ```
/// // SAFETY: nothing was ever captured here.
/// unsafe { dlpack_core::stream::release_captured() };
/// ```
///
/// # Safety
///
/// No graph that reads their data is launched any more. One that is running still is waited for.
pub unsafe fn release_captured() {
    let read = core::mem::take(&mut *lock(&GRAPHS));
    for mut one in read {
        one.link.release = Release::AfterAll;
        lock(&RETRIES).push(one);
    }
    for api in [Api::Cuda, Api::Hip] {
        retry(api);
    }
}
