//! Optional properties of an exported type, in addition to its description: a table of facts and functions.

use crate::export::hand_over::RawExport;
use crate::{Device, Error, ExportRequest, Managed};
use crate::{export::DLPack, loan::facts::Facts};

/// Shape and strides, borrowed from the value.
pub type Lists<'a> = (&'a [i64], &'a [i64]);

/// A call of `Extras::share`: how it may return the tensor, and where it stores one that it does not return.
#[derive(Debug, Default)]
pub struct ShareCall {
    /// Whether the function may return a [`RawExport`]: an address, which is cheaper to move than a [`Managed`].
    pub by_address: bool,
    /// The result, unless a [`RawExport`] was returned; `None` if the export has to keep the value itself.
    pub outcome: Option<Result<Managed, Error>>,
}

/// Exports a value without keeping it alive, for a type of which something else keeps the memory, such as a field with the key `owner`.
pub(crate) type ShareFn<T> = fn(&T, Option<&ExportRequest>, &mut ShareCall) -> Option<RawExport>;

/// Optional properties of an exported type. The defaults, [`Extras::NONE`], are valid for every type.
#[must_use]
pub struct Extras<T: ?Sized> {
    /// The properties of the tensor that are known at compile time; see [`assert_exports!`](crate::assert_exports).
    pub facts: Facts,
    /// Whether a consumer may write the data, so that a shared export needs exclusive access.
    pub exclusive: bool,
    /// Returns the imported tensor that a value wraps, or `None` if the value wraps a part of a tensor. Present only if all values of
    /// the type wrap imported tensors: an export may then keep the owner of the tensor instead of the value.
    pub wrapped: Option<for<'a> fn(&'a T) -> Option<&'a Managed>>,
    /// The device of the data, for a type that knows it without a description.
    pub device: Option<fn(&T) -> Device>,
    /// Shape and strides, if the value stores them as `i64`, so that they can be borrowed.
    pub lists: Option<for<'a> fn(&'a T) -> Option<Lists<'a>>>,
    /// Exports without keeping the value, if a field keeps the memory by itself (key `owner`).
    pub share: Option<ShareFn<T>>,
}

impl<T: ?Sized> Extras<T> {
    /// The defaults: no optional property.
    pub const NONE: Self = Self {
        facts: Facts::UNKNOWN,
        exclusive: false,
        wrapped: None,
        device: None,
        lists: None,
        share: None,
    };

    /// Declares that a consumer may write the data, so that a shared export needs exclusive access.
    pub const fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// Declares that a shared export needs exclusive access, if that holds for the field that is the tensor.
    pub const fn exclusive_as(mut self, is_exclusive: bool) -> Self {
        self.exclusive = is_exclusive;
        self
    }

    /// Declares that the value only wraps an imported tensor, and sets the function that returns it, unless the value wraps a part.
    pub const fn transparent(mut self, wrapped: for<'a> fn(&'a T) -> Option<&'a Managed>) -> Self {
        self.wrapped = Some(wrapped);
        self
    }

    /// Sets the function that returns the device.
    pub const fn device(mut self, device: fn(&T) -> Device) -> Self {
        self.device = Some(device);
        self
    }

    /// Sets the function that borrows shape and strides, if `lie` says that the value stores both as `i64`.
    pub const fn lists(mut self, lie: bool, lists: for<'a> fn(&'a T) -> Option<Lists<'a>>) -> Self {
        self.lists = if lie { Some(lists) } else { None };
        self
    }

    /// Sets the function that exports without keeping the value.
    pub const fn share(mut self, share: ShareFn<T>) -> Self {
        self.share = Some(share);
        self
    }
}

/// A table with only the facts. It is a free function, since the compiler resolves it faster than a method on [`Extras::NONE`],
/// and most derives call nothing else.
pub const fn of_types<T: ?Sized>(facts: Facts) -> Extras<T> {
    Extras {
        facts,
        ..Extras::NONE
    }
}

/// Shape and strides of a value, if the type can lend them.
#[must_use]
#[inline]
pub fn lists<T: DLPack + ?Sized>(value: &T) -> Option<Lists<'_>> {
    const { T::EXTRAS.lists }.and_then(|lists| lists(value))
}

/// Exports a value through its `Extras::share`, if the type has one.
#[inline(always)]
pub fn share<T: DLPack + ?Sized>(
    value: &T,
    request: Option<&ExportRequest>,
    call: &mut ShareCall,
) -> Option<RawExport> {
    const { T::EXTRAS.share }.and_then(|share| share(value, request, call))
}

/// Exports a value through its `Extras::share`, with the result as a [`Managed`].
#[inline(always)]
pub(crate) fn share_managed<T: DLPack + ?Sized>(
    value: &T,
    request: Option<&ExportRequest>,
) -> Option<Result<Managed, Error>> {
    let mut call = ShareCall::default();
    let address = share(value, request, &mut call);
    debug_assert!(address.is_none(), "`by_address` is not set");
    call.outcome
}
