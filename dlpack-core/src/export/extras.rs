//! What a type says of its exports beside how it is described: a table of facts and functions.

use crate::{Device, Error, ExportRequest, Managed};
use crate::{describe::usual::Usual, export::DLPack, loan::facts::Facts};

/// Shape and strides where they lie.
pub type Lists<'a> = (&'a [i64], &'a [i64]);

/// What an export without the value gives; nothing where the value has to be kept.
pub type Shared = Option<Result<Managed, Error>>;

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
    /// The tensor as plain values, if it is of the usual kind.
    pub usual: Option<for<'a> fn(&'a T) -> Option<Usual<'a>>>,
    /// The same as a consumer may write it.
    pub usual_mut: Option<for<'a> fn(&'a mut T) -> Option<Usual<'a>>>,
    /// Shape and strides, where they lie in the value as DLPack wants them: so they can be lent.
    pub lists: Option<for<'a> fn(&'a T) -> Option<Lists<'a>>>,
    /// Exports without keeping the value, where a field holds the memory by itself (key `owner`).
    pub share: Option<fn(&T, Option<&ExportRequest>) -> Shared>,
    /// The same where nobody asks, if the tensor is of the usual kind.
    pub share_usual: Option<fn(&T) -> Option<Managed>>,
}

impl<T: ?Sized> Extras<T> {
    /// Nothing to say.
    pub const NONE: Self = Self {
        facts: Facts::UNKNOWN,
        exclusive: false,
        transparent: false,
        device: None,
        usual: None,
        usual_mut: None,
        lists: None,
        share: None,
        share_usual: None,
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

    /// With a short way to describe what is usual.
    pub const fn usual(mut self, usual: for<'a> fn(&'a T) -> Option<Usual<'a>>) -> Self {
        self.usual = Some(usual);
        self
    }

    /// With a short way to describe what a consumer may write.
    pub const fn usual_mut(mut self, usual: for<'a> fn(&'a mut T) -> Option<Usual<'a>>) -> Self {
        self.usual_mut = Some(usual);
        self
    }

    /// With lists to lend, where their types lie in the value as DLPack wants them.
    pub const fn lists(mut self, lie: bool, lists: for<'a> fn(&'a T) -> Option<Lists<'a>>) -> Self {
        self.lists = if lie { Some(lists) } else { None };
        self
    }

    /// With a way to export that does not keep the value.
    pub const fn share(mut self, share: fn(&T, Option<&ExportRequest>) -> Shared) -> Self {
        self.share = Some(share);
        self
    }

    /// With a short way to do that.
    pub const fn share_usual(mut self, share: fn(&T) -> Option<Managed>) -> Self {
        self.share_usual = Some(share);
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

/// The tensor as plain values, if it is of the usual kind.
#[must_use]
#[inline(always)]
pub fn usual<T: DLPack + ?Sized>(value: &T) -> Option<Usual<'_>> {
    const { T::EXTRAS.usual }.and_then(|usual| usual(value))
}

/// Shape and strides where they lie, if they can be lent.
#[must_use]
#[inline]
pub fn lists<T: DLPack + ?Sized>(value: &T) -> Option<Lists<'_>> {
    const { T::EXTRAS.lists }.and_then(|lists| lists(value))
}

/// An export without the value, if it has something that is cheaper to keep; as it is where nobody asks.
#[inline(always)]
pub fn share<T: DLPack + ?Sized>(value: &T, request: Option<&ExportRequest>) -> Shared {
    const { T::EXTRAS.share }.and_then(|share| share(value, request))
}
