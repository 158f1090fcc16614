//! A reference-counted value like `Arc`, except that a failed allocation is an error instead of an abort.
#![expect(unsafe_code, reason = "frees a value after its last reference")]

use alloc::{alloc::alloc, boxed::Box};
#[cfg(feature = "streams")]
use core::ffi::c_void;
use core::{alloc::Layout, any::TypeId, mem::ManuallyDrop, ops::Deref, ptr::NonNull};

use crate::sync::atomic::{AtomicUsize, Ordering};

#[cfg(all(test, loom))]
mod models;

/// A counted reference to a value. With the type `()`, the type of the value is erased: the reference only keeps it alive.
#[derive(Debug)]
pub(crate) struct Counted<T = ()>(NonNull<Allocation<T>>);

/// The allocation. The fields before `value` have the same offsets for values of all types.
#[repr(C)]
struct Allocation<T> {
    reference_count: AtomicUsize,
    functions: &'static ValueFunctions,
    value: T,
}

/// Functions of an allocation that depend on the type of its value.
struct ValueFunctions {
    /// Drops the value and frees the allocation; called with the last reference.
    drop_value: unsafe fn(NonNull<Allocation<()>>),
    type_id: fn() -> TypeId,
}

// SAFETY: `new` accepts only values that are `Send` and `Sync`.
unsafe impl<T> Send for Counted<T> {}
// SAFETY: `new` accepts only values that are `Send` and `Sync`.
unsafe impl<T> Sync for Counted<T> {}

impl<T: Send + Sync + 'static> Counted<T> {
    const FUNCTIONS: &'static ValueFunctions = &ValueFunctions {
        // SAFETY: only `drop` calls this, after it has removed the last reference to this value, which has type `T`.
        drop_value: |inner| drop(unsafe { free_allocation::<T>(inner) }),
        type_id: TypeId::of::<T>,
    };

    /// Allocates the value with one reference. If the allocation fails, returns the value and the number of bytes.
    pub(crate) fn new(value: T) -> Result<Self, (T, usize)> {
        let layout = Layout::new::<Allocation<T>>();
        // SAFETY: the size of the layout is not 0, because it contains a count.
        let inner = unsafe { alloc(layout) }.cast::<Allocation<T>>();
        let Some(inner) = NonNull::new(inner) else {
            return Err((value, layout.size()));
        };
        let content = Allocation {
            reference_count: AtomicUsize::new(1),
            functions: Self::FUNCTIONS,
            value,
        };
        // SAFETY: `alloc` returned memory with this layout, and no other thread has its address yet.
        unsafe { inner.write(content) };
        Ok(Self(inner))
    }

    /// Erases the type of the value.
    pub(crate) fn erase_type(self) -> Counted {
        Counted(ManuallyDrop::new(self).0.cast())
    }

    /// Converts the reference to a pointer that C code can keep, for [`from_raw`](Counted::from_raw).
    #[cfg(feature = "streams")]
    pub(crate) fn into_raw(self) -> *mut c_void {
        ManuallyDrop::new(self).0.as_ptr().cast()
    }

    /// Returns the value if this is the only reference.
    pub(crate) fn into_value(self) -> Result<T, Self> {
        if self.reference_count() > 1 {
            return Err(self);
        }
        let inner = ManuallyDrop::new(self).0.cast();
        // SAFETY: this was the only reference, the value has type `T`, and `self` is not used again.
        Ok(unsafe { free_allocation(inner) })
    }
}

impl Counted {
    /// The value, if its type is `T`.
    pub(crate) fn downcast_ref<T: Send + Sync + 'static>(&self) -> Option<&T> {
        // SAFETY: the allocation lives while a reference such as `self` exists. The fields before `value` have the same offsets
        // for values of all types.
        let functions = unsafe { (*self.0.as_ptr()).functions };
        let is_one = (functions.type_id)() == TypeId::of::<T>();
        // SAFETY: the value has type `T`, and is only accessed by shared reference while references to it exist.
        is_one.then(|| unsafe { &(*self.0.cast::<Allocation<T>>().as_ptr()).value })
    }

    /// Returns the reference with the type of its value, if that is `T`.
    pub(crate) fn downcast<T: Send + Sync + 'static>(self) -> Result<Counted<T>, Self> {
        if self.downcast_ref::<T>().is_none() {
            return Err(self);
        }
        Ok(Counted(ManuallyDrop::new(self).0.cast()))
    }
}

#[cfg(feature = "streams")]
impl Counted {
    /// Converts a pointer from [`into_raw`](Counted::into_raw) to the reference that it represents.
    ///
    /// # Safety
    ///
    /// `into_raw` returned the pointer, and this function is called with it at most once.
    pub(crate) unsafe fn from_raw(hold: *mut c_void) -> Self {
        // SAFETY: by this function's contract `into_raw` returned the pointer, so it is not null. The count and the
        // function behind it have the same offsets for values of all types.
        Self(unsafe { NonNull::new_unchecked(hold.cast()) })
    }
}

/// Frees the allocation of a value and returns the value.
///
/// # Safety
///
/// The value has type `T`, and no reference to it is left.
unsafe fn free_allocation<T>(inner: NonNull<Allocation<()>>) -> T {
    // SAFETY: `new` allocated it with the layout of `Allocation<T>`; by this function's contract no reference to it is left.
    unsafe { Box::from_raw(inner.cast::<Allocation<T>>().as_ptr()) }.value
}

impl<T> Counted<T> {
    /// The number of references. If it is 1, the uses of the value by all dropped references happened before this call.
    pub(crate) fn reference_count(&self) -> usize {
        self.counter().load(Ordering::Acquire)
    }

    /// Whether `other` refers to the same value.
    #[cfg(feature = "streams")]
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn counter(&self) -> &AtomicUsize {
        // SAFETY: the allocation lives while a reference such as `self` exists.
        unsafe { &(*self.0.as_ptr()).reference_count }
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the value lives while a reference such as `self` exists, and is only accessed by shared reference.
        unsafe { &(*self.0.as_ptr()).value }
    }
}

impl<T> Clone for Counted<T> {
    fn clone(&self) -> Self {
        let before = self.counter().fetch_add(1, Ordering::Relaxed);
        // Only leaked references (`mem::forget`) can make the count this large.
        if before > usize::MAX / 2 {
            // Otherwise repeated panics would count up to an overflow.
            self.counter().fetch_sub(1, Ordering::Relaxed);
            panic!("too many references to one value");
        }
        Self(self.0)
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        if self.counter().fetch_sub(1, Ordering::Release) == 1 {
            // Makes all other uses of the value happen before its drop. A fence would do too, but ThreadSanitizer does not
            // support fences.
            self.reference_count();
            // SAFETY: the allocation lives until `drop_value` frees it.
            let functions = unsafe { (*self.0.as_ptr()).functions };
            // SAFETY: the count was 1, so `self` was the last reference, and `drop_value` belongs to this value.
            unsafe { (functions.drop_value)(self.0.cast()) };
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::sync::Arc;
    use alloc::{vec, vec::Vec};

    use super::*;

    /// A type with the layout of its field.
    struct Wrapped(Arc<()>);

    #[test]
    fn only_the_type_of_the_value_is_found() {
        let value = Arc::new(());
        let counted = Counted::new(Wrapped(value.clone())).ok().unwrap();
        let erased = counted.erase_type();
        assert!(erased.downcast_ref::<Arc<()>>().is_none());
        let erased = erased.downcast::<Arc<()>>().err().unwrap();
        let Wrapped(found) = erased.downcast_ref().unwrap();
        assert!(Arc::ptr_eq(found, &value));
        let counted = erased.downcast::<Wrapped>().ok().unwrap();
        assert_eq!(Arc::strong_count(&value), 2);
        drop(counted.into_value().ok().unwrap());
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    #[cfg(feature = "std")]
    fn a_refused_clone_is_not_counted() {
        let counted = Counted::new(1).ok().unwrap();
        let most = usize::MAX / 2 + 1;
        counted.counter().store(most, Ordering::Relaxed);
        let clone = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| counted.clone()));
        assert!(clone.is_err());
        assert_eq!(counted.reference_count(), most);
        counted.counter().store(1, Ordering::Relaxed);
    }

    #[test]
    fn a_value_comes_back_where_its_memory_lies() {
        let list = vec![1_u16, 2];
        let address = list.as_ptr();
        let erased = Counted::new(list).ok().unwrap().erase_type();
        let other = erased.clone();
        let list = erased.downcast::<Vec<u16>>().ok().unwrap();
        let list = list.into_value().err().unwrap();
        drop(other);
        let list = list.into_value().ok().unwrap();
        assert_eq!(list.as_ptr(), address);
    }
}
