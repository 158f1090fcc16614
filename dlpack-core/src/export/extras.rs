//! What a type says of its exports beside how it is described: a table of facts and functions.

use crate::export::hand_over::RawExport;
use crate::{Device, Error, ExportRequest, Managed};
use crate::{export::DLPack, loan::facts::Facts};

/// Shape and strides where they lie.
pub type Lists<'a> = (&'a [i64], &'a [i64]);

/// How the caller of `Extras::share` gets its result.
#[derive(Debug, Default)]
pub struct Shared {
    /// Whether the function may return a [`RawExport`], which saves the move of a [`Managed`].
    pub by_address: bool,
    /// The result, unless that was returned; `None` if the value itself has to be kept.
    pub outcome: Option<Result<Managed, Error>>,
}

/// Exports a value without keeping it, as the key `owner` allows.
pub(crate) type ShareFn<T> = fn(&T, Option<&ExportRequest>, &mut Shared) -> Option<RawExport>;

/// What a type says of its exports beside how it is described. Whoever says nothing is exported in the ordinary way.
#[must_use]
pub struct Extras<T: ?Sized> {
    /// What the types alone say; see [`assert_exports!`](crate::assert_exports).
    pub facts: Facts,
    /// Whether the data may be written by a consumer, so that a shared export needs exclusive access.
    pub exclusive: bool,
    /// The value is a tensor of somebody else and nothing besides: whatever keeps that will do in its stead.
    pub transparent: bool,
    /// Where the data is, of a type that knows without being described.
    pub device: Option<fn(&T) -> Device>,
    /// Shape and strides, where they lie in the value as DLPack wants them: so they can be lent.
    pub lists: Option<for<'a> fn(&'a T) -> Option<Lists<'a>>>,
    /// Exports without keeping the value, where a field holds the memory by itself (key `owner`).
    pub share: Option<ShareFn<T>>,
}

impl<T: ?Sized> Extras<T> {
    /// Nothing to say.
    pub const NONE: Self = Self {
        facts: Facts::UNKNOWN,
        exclusive: false,
        transparent: false,
        device: None,
        lists: None,
        share: None,
    };

    /// Written by a consumer.
    pub const fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// Nothing but the tensor of somebody else.
    pub const fn transparent(mut self) -> Self {
        self.transparent = true;
        self
    }

    /// With a way to say where the data is.
    pub const fn device(mut self, device: fn(&T) -> Device) -> Self {
        self.device = Some(device);
        self
    }

    /// With lists to lend, where their types lie in the value as DLPack wants them.
    pub const fn lists(mut self, lie: bool, lists: for<'a> fn(&'a T) -> Option<Lists<'a>>) -> Self {
        self.lists = if lie { Some(lists) } else { None };
        self
    }

    /// With a way to export that does not keep the value.
    pub const fn share(mut self, share: ShareFn<T>) -> Self {
        self.share = Some(share);
        self
    }
}

/// Nothing but what the types say. A function, since the compiler finds it sooner than a method of [`Extras::NONE`]; most
/// derives call it alone.
pub const fn of_types<T: ?Sized>(facts: Facts) -> Extras<T> {
    Extras {
        facts,
        ..Extras::NONE
    }
}

/// Shape and strides where they lie, if they can be lent.
#[must_use]
#[inline]
pub fn lists<T: DLPack + ?Sized>(value: &T) -> Option<Lists<'_>> {
    const { T::EXTRAS.lists }.and_then(|lists| lists(value))
}

/// Exports a value by its `Extras::share`, if it has one.
#[inline(always)]
pub fn share<T: DLPack + ?Sized>(
    value: &T,
    request: Option<&ExportRequest>,
    other: &mut Shared,
) -> Option<RawExport> {
    const { T::EXTRAS.share }.and_then(|share| share(value, request, other))
}

/// As [`share`], with the result as a [`Managed`].
#[inline(always)]
pub(crate) fn share_managed<T: DLPack + ?Sized>(
    value: &T,
    request: Option<&ExportRequest>,
) -> Option<Result<Managed, Error>> {
    let mut shared = Shared::default();
    let address = share(value, request, &mut shared);
    debug_assert!(address.is_none(), "`by_address` is not set");
    shared.outcome
}
