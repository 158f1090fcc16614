//! Tensors over memory that keeps itself, that of a [`SharedBuffer`](crate::SharedBuffer): who exports or adopts one again
//! holds the memory, and no tensor between.
//!
//! ```text
//! SharedBuffer ──▶ export ──▶ object in Python ──▶ export of that ──▶ SharedBuffer
//!      └──▶ Home ◀─────┴──────────────────────────────────┴────────────────┘
//! ```
#![expect(unsafe_code, reason = "the owner has to keep what was described")]

use core::sync::atomic::AtomicBool;

use crate::export::block::Unfinished;
use crate::export::dims_storage::Capacity;
use crate::export::layer::kept_by;
use crate::export::ways::{finish, planned, way};
use crate::request::{Plan, plan::Way};
use crate::{Descriptor, Device, Error, ExportRequest, Managed, loan::shared::Home};

/// The owner of an export that holds nothing but memory which keeps itself.
pub(super) struct Root(Home);

impl Root {
    #[inline]
    pub(super) fn of(home: &Home) -> Self {
        Self(home.clone())
    }
}

/// What only the drop of a root reads.
static MARK: AtomicBool = AtomicBool::new(false);

impl Drop for Root {
    /// Reads the mark, so that no other function has the code of a root's deleter, nor then its address.
    fn drop(&mut self) {
        // SAFETY: a static, which nobody writes.
        unsafe { MARK.as_ptr().read_volatile() };
    }
}

/// The memory that a described tensor lies in, if that keeps itself and contains every item.
#[inline]
pub(crate) fn home_of<'a>(described: &Descriptor<'a>) -> Option<&'a Home> {
    let home = match described.home {
        // SAFETY: the home of a buffer, which is lent for `'a`.
        Some(home) => Some(unsafe { home.as_ref() }),
        // SAFETY: a root is the whole owner, and its drop does what no other does.
        None => unsafe { kept_by::<Root>(described) }.map(|root| &root.0),
    };
    home.filter(|home| keeps(home, described))
}

/// Whether memory contains every item of a tensor, which may be written only if the memory may be.
#[inline]
fn keeps(home: &Home, described: &Descriptor<'_>) -> bool {
    let (start, bytes) = home.bytes();
    described.device == Device::CPU
        && (described.read_only || !home.access().is_read_only())
        && described.lies_in(start, bytes)
}

/// Exports a described tensor by the memory that it lies in, as a consumer asks for it, or as it is where nobody asked: nothing
/// where that memory does not keep itself, or a copy is asked for.
///
/// ```
/// use dlpack_core::binding::share_root;
/// use dlpack_core::{DLPack, SharedBuffer};
///
/// let buffer = SharedBuffer::<f32>::zeroed(3)?;
/// let tensor = share_root(&mut buffer.describe()?, None).expect("it keeps itself")?;
/// drop(buffer);
/// assert_eq!(tensor.view().to_vec::<f32>()?, [0.0; 3]);
/// assert!(share_root(&mut [1_u8].describe()?, None).is_none());
/// # Ok::<(), dlpack_core::Error>(())
/// ```
pub fn share_root(
    described: &mut Descriptor<'_>,
    request: Option<&ExportRequest>,
) -> Option<Result<Managed, Error>> {
    let home = home_of(described)?;
    let plan = match planned(described, request) {
        Ok(plan) => plan,
        Err(error) => return Some(Err(error)),
    };
    if way(described, &plan) != Way::Share {
        return None;
    }
    // SAFETY: the memory contains every item, and may be written if the tensor may be.
    Some(unsafe { export_root(home, described, &plan, request) })
}

/// # Safety
///
/// The memory [`keeps`] the tensor.
unsafe fn export_root(
    home: &Home,
    described: &mut Descriptor<'_>,
    plan: &Plan,
    request: Option<&ExportRequest>,
) -> Result<Managed, Error> {
    let capacity = Capacity::of_rank(described.rank());
    let block = |root| Unfinished::new(root, capacity);
    // SAFETY: passed on to the caller.
    unsafe { finish(|| Root::of(home), block, described, plan, request) }
}

/// The same tensor, held by the memory that `keeper` lies in, if that keeps itself and contains every item; else the tensor as
/// it is. So a tensor that came back by another protocol does not hold what it came by.
///
/// ```
/// use dlpack_core::binding::keep_by_root_of;
/// use dlpack_core::{DLPack, SharedBuffer};
///
/// let buffer = SharedBuffer::copied_from(&[1_u8, 2, 3])?;
/// let whole = buffer.clone().into_dlpack()?;
/// let part = keep_by_root_of(buffer.clone().into_dlpack()?.slice(0, 1..3)?, &whole);
/// assert_eq!(part.view().to_vec::<u8>()?, [2, 3]);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[must_use]
pub fn keep_by_root_of(mut tensor: Managed, keeper: &Managed) -> Managed {
    let (sole, copied) = (tensor.is_unique(), tensor.view().is_copied());
    let keep = |tensor: &mut Managed| {
        let keeper = Descriptor::of(keeper).ok()?;
        let home = home_of(&keeper)?;
        let mut described = Descriptor::of_mut(tensor).ok()?;
        if !keeps(home, &described) {
            return None;
        }
        let plan = planned(&described, None).ok()?;
        // SAFETY: as in `share_root`.
        unsafe { export_root(home, &mut described, &plan, None) }.ok()
    };
    match keep(&mut tensor) {
        Some(kept) => kept.with_base_facts(sole, copied),
        None => tensor,
    }
}
