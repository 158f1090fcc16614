//! Finds the way from a field's type to a loan at compile time: a [`Buffer`], or anything that dereferences to a slice.
//!
//! A blanket `impl Buffer for` everything that derefs to `[T]` cannot stand beside the impls for
//! arrays and for the containers of other crates. So the derive asks a probe of the field's type
//! for its route. Method lookup takes the first of these that has a `route`:
//!
//! 1. `Probe<T>`, if `T: Buffer`;
//! 2. what it derefs to, if `T: DerefMut<Target = [E]>`;
//! 3. what that derefs to, if `T: Deref<Target = [E]>`;
//! 4. what that derefs to once more, if `T` is an `Arc<U>` and `U: Deref<Target = [E]>`, such as a memory map;
//! 5. the last one, always, with [`NoRoute`]: the call that is given it says what a buffer is.
//!
//! [`Whole`] does the same for a field that is the whole tensor.

use crate::describe::record::{NamedDocs, Records, Table};
use crate::export::extras::{self, Shared};
use crate::export::hand_over::RawExport;
use crate::layout::{LentLists, shape::RankOf};
use crate::loan::facts::{Facts, NamedFacts};
use crate::{Buffer, DLPack, Descriptor, Element, Error, ExportRequest, Loan, LoanMut, Parts};
use crate::{Writable, element::AnyBits, private::claim::Elem};
use alloc::sync::Arc;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

/// Through `Buffer`.
#[derive(Clone, Copy, Debug)]
pub struct ByBuffer;
/// Through `DLPack`.
#[derive(Clone, Copy, Debug)]
pub struct ByTensor;
/// Through `DerefMut` to a slice.
#[derive(Clone, Copy, Debug)]
pub struct ByDerefMut;
/// Through `Deref` to a slice.
#[derive(Clone, Copy, Debug)]
pub struct ByDeref;

/// Through an `Arc`, and `Deref` to a slice.
#[derive(Clone, Copy, Debug)]
pub struct ByArc;

/// No way at all. What may be asked of a field beside its data holds for it without a bound, so that
/// one mistake is reported once.
#[derive(Clone, Copy, Debug)]
pub struct NoRoute;

/// Asks how a field lends its elements.
#[derive(Debug)]
pub struct Probe<T: ?Sized>(MutStep<T>);
/// Asks how a field is a tensor.
#[derive(Debug)]
pub struct Whole<T: ?Sized>(MutStep<T>);
/// The second step of a probe.
#[derive(Debug)]
pub struct MutStep<T: ?Sized>(RefStep<T>);
/// The third step of a probe.
#[derive(Debug)]
pub struct RefStep<T: ?Sized>(ArcStep<T>);
/// The fourth step of a probe.
#[derive(Debug)]
pub struct ArcStep<T: ?Sized>(Last, PhantomData<T>);
/// The last step of a probe.
#[derive(Debug)]
pub struct Last;
impl<T: ?Sized> MutStep<T> {
    const NEW: Self = Self(RefStep(ArcStep(Last, PhantomData)));
}

macro_rules! probes {
    ($($probe:ident)*) => {$(
        impl<T: ?Sized> $probe<T> {
            /// The probe of this type.
            pub const NEW: Self = Self(MutStep::NEW);
        }
    )*};
}
probes!(Probe Whole);

impl<T: Buffer + ?Sized> Probe<T> {
    /// What the type alone says.
    pub const FACTS: Facts = T::FACTS;

    /// A buffer.
    #[inline]
    #[must_use]
    pub fn route(&self) -> ByBuffer {
        ByBuffer
    }
}

impl<T: DLPack + ?Sized> Whole<T> {
    /// What the type alone says.
    pub const FACTS: Facts = T::EXTRAS.facts;

    /// A tensor by itself.
    #[inline]
    #[must_use]
    pub fn route(&self) -> ByTensor {
        ByTensor
    }
}

impl<T: ?Sized + DerefMut<Target = [E]>, E: Element> MutStep<T> {
    /// A slice that can be written.
    #[inline]
    #[must_use]
    pub fn route(&self) -> ByDerefMut {
        ByDerefMut
    }
}

impl<T: ?Sized + Deref<Target = [E]>, E: Element> RefStep<T> {
    /// A slice.
    #[inline]
    #[must_use]
    pub fn route(&self) -> ByDeref {
        ByDeref
    }
}

impl<U: ?Sized + Deref<Target = [E]>, E: Element> ArcStep<Arc<U>> {
    /// A slice, behind an `Arc`.
    #[inline]
    #[must_use]
    pub fn route(&self) -> ByArc {
        ByArc
    }
}

impl Last {
    /// No way at all.
    #[inline]
    #[must_use]
    pub fn route(&self) -> NoRoute {
        NoRoute
    }
}

macro_rules! steps {
    ($($step:ident to $next:ty;)*) => {$(
        impl<T: ?Sized> Deref for $step<T> {
            type Target = $next;
            fn deref(&self) -> &$next {
                &self.0
            }
        }
    )*};
}
steps! {
    Probe to MutStep<T>;
    Whole to MutStep<T>;
    MutStep to RefStep<T>;
    RefStep to ArcStep<T>;
    ArcStep to Last;
}

/// In scope where the constants of a question are named: the answers where the type has no such
/// trait. The call that needs the trait says so; its constants keep silent, and one mistake is
/// reported once.
pub trait Unsaid {
    /// Of [`Probe`], [`Whole`] and [`Elem`].
    const FACTS: Facts = Facts::UNKNOWN;
    /// Of [`RankOf`].
    const RANK: Option<usize> = None;
    /// Of [`LentLists`].
    const LIE_THERE: bool = false;
    /// Of [`Table`].
    const NAMES: &'static [&'static str] = &[];
    /// Of [`Table`].
    const COLUMNS: NamedFacts = &[];
    /// Of [`Table`].
    const DOCS: NamedDocs = &[];

    /// Of [`Table`].
    #[must_use]
    fn records<L: ?Sized>(_: &L) -> Option<Records<'_>> {
        None
    }

    /// Of [`LentLists`].
    #[must_use]
    fn of<L: ?Sized>(_: &L) -> Option<(&[i64], &[i64])> {
        None
    }
}

/// What is asked here and compiles dereferences to a slice.
impl<T: ?Sized> Unsaid for Probe<T> {
    const FACTS: Facts = Facts::HOST;
}
impl<T: ?Sized> Unsaid for Whole<T> {
    const FACTS: Facts = Facts::HOST;
}
impl<E> Unsaid for Elem<E> {}
impl<S: ?Sized> Unsaid for RankOf<S> {}
impl<L: ?Sized> Unsaid for LentLists<L> {}
impl<L: ?Sized> Unsaid for Table<L> {}

/// A way from `T` to a loan for reading.
pub trait Route<T: ?Sized> {
    /// The loan.
    fn lend(value: &T) -> Loan<'_>;
}

/// The same way to a loan for writing, where the memory can be written.
pub trait RouteMut<T: ?Sized> {
    /// The loan.
    fn lend_mut(value: &mut T) -> LoanMut<'_>;
}

impl<T: Buffer + ?Sized> Route<T> for ByBuffer {
    #[inline]
    fn lend(value: &T) -> Loan<'_> {
        value.lend()
    }
}

impl<T: Buffer + ?Sized> RouteMut<T> for ByBuffer {
    #[inline]
    fn lend_mut(value: &mut T) -> LoanMut<'_> {
        value.lend_mut()
    }
}

impl<T: ?Sized + DerefMut<Target = [E]>, E: Element> RouteMut<T> for ByDerefMut {
    #[inline]
    fn lend_mut(value: &mut T) -> LoanMut<'_> {
        LoanMut::from(&mut **value)
    }
}

impl<T: ?Sized + Deref<Target = [E]>, E: Element> RouteMut<T> for ByDeref {
    #[inline]
    fn lend_mut(value: &mut T) -> LoanMut<'_> {
        LoanMut::from(Self::lend(value))
    }
}

impl<T: Buffer + ?Sized> Route<T> for NoRoute {
    fn lend(value: &T) -> Loan<'_> {
        value.lend()
    }
}

impl<U: ?Sized + Deref<Target = [E]>, E: Element> Route<Arc<U>> for ByArc {
    #[inline]
    fn lend(value: &Arc<U>) -> Loan<'_> {
        Loan::from(&***value)
    }
}

impl<U: ?Sized + Deref<Target = [E]>, E: Element> RouteMut<Arc<U>> for ByArc {
    #[inline]
    fn lend_mut(value: &mut Arc<U>) -> LoanMut<'_> {
        LoanMut::from(Self::lend(value))
    }
}

impl<T: ?Sized> RouteMut<T> for NoRoute {
    fn lend_mut(_: &mut T) -> LoanMut<'_> {
        unreachable!("`data` refuses this route, so this never compiled")
    }
}

/// A way from `T` to memory that is written through it.
#[diagnostic::on_unimplemented(
    message = "`{T}` cannot be exported as writable",
    label = "`{T}` lends its elements for reading only",
    note = "use a type that owns its elements alone (`Vec<T>`, `Box<[T]>`), or `SharedBuffer<T>`, or drop `writable`"
)]
pub trait RouteToWrite<T: ?Sized> {}

impl<T: Writable + ?Sized> RouteToWrite<T> for ByBuffer {}
impl<T: ?Sized + DerefMut<Target = [E]>, E: AnyBits> RouteToWrite<T> for ByDerefMut {}
impl<T: ?Sized> RouteToWrite<T> for NoRoute {}

/// A way from `T` to the whole tensor.
pub trait RouteToTensor<T: ?Sized> {
    /// As it is seen through a shared reference.
    fn describe(value: &T) -> Result<Descriptor<'_>, Error>;
}

/// The same way for the other questions that are asked of a whole tensor.
pub trait RouteToTensorMut<T: ?Sized> {
    /// As it is seen through an exclusive reference.
    fn describe_mut(value: &mut T) -> Result<Descriptor<'_>, Error>;

    /// Without keeping the value, if it can.
    #[inline]
    fn share(value: &T, request: Option<&ExportRequest>, other: &mut Shared) -> Option<RawExport> {
        let _ = (value, request, other);
        None
    }
}

impl<T: DLPack + ?Sized> RouteToTensor<T> for ByTensor {
    #[inline]
    fn describe(value: &T) -> Result<Descriptor<'_>, Error> {
        value.describe()
    }
}

impl<T: DLPack + ?Sized> RouteToTensorMut<T> for ByTensor {
    #[inline]
    fn describe_mut(value: &mut T) -> Result<Descriptor<'_>, Error> {
        value.describe_mut()
    }

    #[inline]
    fn share(value: &T, request: Option<&ExportRequest>, other: &mut Shared) -> Option<RawExport> {
        extras::share(value, request, other)
    }
}

impl<T: DLPack + ?Sized> RouteToTensor<T> for NoRoute {
    fn describe(value: &T) -> Result<Descriptor<'_>, Error> {
        value.describe()
    }
}

impl<T: ?Sized> RouteToTensorMut<T> for NoRoute {
    fn describe_mut(_: &mut T) -> Result<Descriptor<'_>, Error> {
        unreachable!("`whole` refuses this route, so this never compiled")
    }
}

macro_rules! derefs {
    ($($route:ident)*) => {$(
        impl<T: ?Sized + Deref<Target = [E]>, E: Element> Route<T> for $route {
            #[inline]
            fn lend(value: &T) -> Loan<'_> {
                Loan::from(&**value)
            }
        }
    )*};
}
derefs!(ByDerefMut ByDeref);

macro_rules! slices {
    ($($route:ident)*) => {$(
        impl<T: ?Sized> RouteToTensor<T> for $route
        where
            $route: Route<T>,
        {
            #[inline]
            fn describe(value: &T) -> Result<Descriptor<'_>, Error> {
                Parts::new().describe(<$route as Route<T>>::lend(value))
            }
        }

        impl<T: ?Sized> RouteToTensorMut<T> for $route
        where
            $route: RouteMut<T>,
        {
            #[inline]
            fn describe_mut(value: &mut T) -> Result<Descriptor<'_>, Error> {
                Parts::new().describe_mut(<$route as RouteMut<T>>::lend_mut(value))
            }
        }
    )*};
}
slices!(ByDerefMut ByDeref ByArc);
