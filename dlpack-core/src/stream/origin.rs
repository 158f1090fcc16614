//! Where memory on a device comes from, as far as streams go.

use crate::{Device, ReleasePolicy, stream::Queue};

/// Where described memory comes from, as far as streams go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) device: Device,
    pub(crate) queue: Option<Queue>,
    #[cfg_attr(
        not(feature = "std"),
        expect(dead_code, reason = "nothing waits there")
    )]
    pub(crate) policy: ReleasePolicy,
}
