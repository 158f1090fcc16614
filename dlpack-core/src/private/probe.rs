//! Selects at compile time how a field lends its elements: by [`Buffer`], or by dereferencing to a slice.
//!
//! A blanket `impl Buffer` for all types that dereference to `[T]` would overlap with the impls for arrays and for
//! containers of other crates. So the derive calls the method `__route` on a probe of the field's type. (With a plain
//! name, a method of the user's with that name could come first.) Method lookup dereferences the probe step by step, and
//! selects the first step with a bound that holds:
//!
//! 1. `Probe<T>`, if `T: Buffer`;
//! 2. [`MutStep`], if `T: DerefMut<Target = [E]>`;
//! 3. [`RefStep`], if `T: Deref<Target = [E]>`;
//! 4. [`ArcStep`], if `T` is an `Arc<U>` and `U: Deref<Target = [E]>`, for example a memory map;
//! 5. [`TensorStep`], if `T: DLPack`: the field is a tensor, and other keys beside `data` describe its layout again. It returns
//!    [`WithKeys`]. The bound of that route always fails, so rustc reports the message of [`AcceptsKeys`];
//! 6. [`LastStep`], always. It returns [`NoRoute`]. The bound `T: Buffer` of that route fails, so rustc reports the message of
//!    `Buffer`.
//!
//! [`Whole`] is the probe for a field that is a tensor itself: with the key `tensor`, or with `data` and no other key. Its first
//! step is `T: DLPack`; the others are those of `Probe`.

use crate::describe::record::{NamedDocs, Records, Table};
use crate::export::extras::{self, ShareCall};
use crate::export::hand_over::RawExport;
use crate::layout::{LentLists, shape::RankOf};
use crate::loan::facts::{Facts, NamedFacts};
use crate::private::{assertion::ElementOf, tensor::Accepts};
use crate::{Buffer, DLPack, Descriptor, Element, Error, ExportRequest, Loan, LoanMut, Parts};
use crate::{TensorRef, Writable, element::AnyBits};
use alloc::sync::Arc;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

/// The route by `Buffer`.
#[derive(Clone, Copy, Debug)]
pub struct ByBuffer;
/// The route by `DLPack`.
#[derive(Clone, Copy, Debug)]
pub struct ByTensor;
/// The route by `DerefMut` to a slice.
#[derive(Clone, Copy, Debug)]
pub struct ByDerefMut;
/// The route by `Deref` to a slice.
#[derive(Clone, Copy, Debug)]
pub struct ByDeref;

/// The route through an `Arc`, and by `Deref` to a slice.
#[derive(Clone, Copy, Debug)]
pub struct ByArc;

/// The route for a field that is a tensor, and has other keys beside `data`. Only its impl of [`Route`] has a bound, so that the
/// mistake is reported only once.
#[derive(Clone, Copy, Debug)]
pub struct WithKeys;

/// No route. Only its impls of [`Route`] and [`RouteToTensor`] have a bound, so that the mistake is reported only once.
#[derive(Clone, Copy, Debug)]
pub struct NoRoute;

/// The first step of the probe for a field that lends its elements.
#[derive(Debug)]
pub struct Probe<T: ?Sized>(MutStep<T>);
/// The first step of the probe for a field that is a tensor itself.
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
pub struct ArcStep<T: ?Sized>(TensorStep<T>);
/// The fifth step of a probe.
#[derive(Debug)]
pub struct TensorStep<T: ?Sized>(LastStep, PhantomData<T>);
/// The last step of a probe.
#[derive(Debug)]
pub struct LastStep;
impl<T: ?Sized> MutStep<T> {
    const NEW: Self = Self(RefStep(ArcStep(TensorStep(LastStep, PhantomData))));
}

impl<T: ?Sized> Probe<T> {
    /// The probe for this type.
    pub const NEW: Self = Self(MutStep::NEW);
}

impl<T: ?Sized> Whole<T> {
    /// The probe for this type.
    pub const NEW: Self = Self(MutStep::NEW);
}

impl<T: Buffer + ?Sized> Probe<T> {
    /// The facts that the type determines.
    pub const FACTS: Facts = T::FACTS;

    /// Selects the route by `Buffer`.
    #[inline]
    #[must_use]
    pub fn __route(&self) -> ByBuffer {
        ByBuffer
    }
}

impl<T: DLPack + ?Sized> Whole<T> {
    /// The facts that the type determines.
    pub const FACTS: Facts = T::EXTRAS.facts;
    /// Whether a consumer may write the data, so that a shared export needs exclusive access.
    pub const EXCLUSIVE: bool = T::EXTRAS.exclusive;

    /// Selects the route by `DLPack`.
    #[inline]
    #[must_use]
    pub fn __route(&self) -> ByTensor {
        ByTensor
    }
}

impl<T: ?Sized + DerefMut<Target = [E]>, E: Element> MutStep<T> {
    /// Selects the route by `DerefMut` to a slice.
    #[inline]
    #[must_use]
    pub fn __route(&self) -> ByDerefMut {
        ByDerefMut
    }
}

impl<T: ?Sized + Deref<Target = [E]>, E: Element> RefStep<T> {
    /// Selects the route by `Deref` to a slice.
    #[inline]
    #[must_use]
    pub fn __route(&self) -> ByDeref {
        ByDeref
    }
}

impl<U: ?Sized + Deref<Target = [E]>, E: Element> ArcStep<Arc<U>> {
    /// Selects the route through an `Arc`.
    #[inline]
    #[must_use]
    pub fn __route(&self) -> ByArc {
        ByArc
    }
}

impl<T: DLPack + ?Sized> TensorStep<T> {
    /// Selects the route that reports the other keys.
    #[inline]
    #[must_use]
    pub fn __route(&self) -> WithKeys {
        WithKeys
    }
}

impl LastStep {
    /// Selects no route.
    #[inline]
    #[must_use]
    pub fn __route(&self) -> NoRoute {
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
    ArcStep to TensorStep<T>;
    TensorStep to LastStep;
}

/// Default constants for types that do not implement the trait that a probe looks for. Derived code has this trait in scope. If
/// the type implements the trait, an inherent constant of the probe takes precedence. If not, another call reports the missing
/// trait, and these defaults keep the constants from reporting it again.
pub trait ProbeDefaults {
    /// The default of `FACTS` in [`Probe`], [`Whole`] and [`ElementOf`].
    const FACTS: Facts = Facts::UNKNOWN;
    /// The default of `EXCLUSIVE` in [`Whole`].
    const EXCLUSIVE: bool = false;
    /// The default of `RANK` in [`RankOf`].
    const RANK: Option<usize> = None;
    /// The default of `LIE_THERE` in [`LentLists`].
    const LIE_THERE: bool = false;
    /// The default of `NAMES` in [`Table`].
    const NAMES: &'static [&'static str] = &[];
    /// The default of `COLUMNS` in [`Table`].
    const COLUMNS: NamedFacts = &[];
    /// The default of `DOCS` in [`Table`].
    const DOCS: NamedDocs = &[];

    /// The default of `TENSOR` in [`Accepts`].
    const TENSOR: fn(&TensorRef<'_>) -> bool = |_| false;
    /// The default of `DATA` in [`Accepts`].
    const DATA: fn(&TensorRef<'_>, Option<usize>) -> bool = |_, _| false;

    /// The default of `records` in [`Table`].
    #[must_use]
    fn records<L: ?Sized>(_: &L) -> Option<Records<'_>> {
        None
    }

    /// The default of `replace` in [`Accepts`].
    fn replace<F: ?Sized>(_: &mut F, _: &TensorRef<'_>) -> bool {
        false
    }

    /// The default of `of` in [`LentLists`].
    #[must_use]
    fn of<L: ?Sized>(_: &L) -> Option<(&[i64], &[i64])> {
        None
    }
}

/// If this impl is selected and the code compiles, `T` dereferences to a slice, so its memory is host memory.
impl<T: ?Sized> ProbeDefaults for Probe<T> {
    const FACTS: Facts = Facts::HOST;
}
impl<T: ?Sized> ProbeDefaults for Whole<T> {
    const FACTS: Facts = Facts::HOST;
}
impl<E> ProbeDefaults for ElementOf<E> {}
impl<S: ?Sized> ProbeDefaults for RankOf<S> {}
impl<L: ?Sized> ProbeDefaults for LentLists<L> {}
impl<L: ?Sized> ProbeDefaults for Table<L> {}
impl<T: ?Sized> ProbeDefaults for Accepts<T> {}

/// A route from `T` to a loan for reading.
pub trait Route<T: ?Sized> {
    /// Lends the elements.
    fn lend(value: &T) -> Loan<'_>;
}

/// A route from `&mut T` to a loan, for writing if the memory can be written.
pub trait RouteMut<T: ?Sized> {
    /// Lends the elements.
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

/// A tensor whose layout other keys could describe again. No type implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is a tensor itself: `#[dlpack(data)]` on it excludes all other keys of this tensor",
    label = "it has a shape, strides, a device and an access of its own",
    note = "remove the other keys, and the struct is this tensor; or describe its elements here: `data = &self.field.elements[..]`"
)]
pub trait AcceptsKeys {}

impl<T: AcceptsKeys + ?Sized> Route<T> for WithKeys {
    fn lend(_: &T) -> Loan<'_> {
        unreachable!("no type has this bound, so this never compiled")
    }
}

impl<T: ?Sized> RouteMut<T> for WithKeys {
    fn lend_mut(_: &mut T) -> LoanMut<'_> {
        unreachable!("`data` refuses this route, so this never compiled")
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

/// A route from `T` to memory that can be written through it. It is the bound of the key `writable`.
#[diagnostic::on_unimplemented(
    message = "`{T}` cannot be exported as writable",
    label = "`{T}` lends its elements for reading only",
    note = "use a type that owns its elements exclusively (`Vec<T>`, `Box<[T]>`), or `SharedBuffer<T>`, or drop `writable`"
)]
pub trait RouteToWrite<T: ?Sized> {}

impl<T: Writable + ?Sized> RouteToWrite<T> for ByBuffer {}
impl<T: ?Sized + DerefMut<Target = [E]>, E: AnyBits> RouteToWrite<T> for ByDerefMut {}
impl<T: ?Sized> RouteToWrite<T> for NoRoute {}
impl<T: ?Sized> RouteToWrite<T> for WithKeys {}

/// A route from `T` to a description of the tensor that it is.
pub trait RouteToTensor<T: ?Sized> {
    /// Describes the tensor through a shared reference.
    fn describe(value: &T) -> Result<Descriptor<'_>, Error>;
}

/// A route from `&mut T` to a description of the tensor that it is, and to an export that does not keep the struct alive.
pub trait RouteToTensorMut<T: ?Sized> {
    /// Describes the tensor through an exclusive reference.
    fn describe_mut(value: &mut T) -> Result<Descriptor<'_>, Error>;

    /// Exports the tensor without keeping the value alive, if the type supports that.
    #[inline]
    fn share_tensor(
        value: &T,
        request: Option<&ExportRequest>,
        call: &mut ShareCall,
    ) -> Option<RawExport> {
        let _ = (value, request, call);
        None
    }
}

/// A route from `T` to a description, for a field with `data` and no other key. It differs from [`RouteToTensor`] in the message
/// for a type without a route, which is that of `Buffer`.
pub trait RouteToData<T: ?Sized> {
    /// Describes the tensor through a shared reference.
    fn describe(value: &T) -> Result<Descriptor<'_>, Error>;
}

impl<T: Buffer + ?Sized> RouteToData<T> for NoRoute {
    fn describe(value: &T) -> Result<Descriptor<'_>, Error> {
        DLPack::describe(value)
    }
}

macro_rules! data_routes {
    ($($route:ident)*) => {$(
        impl<T: ?Sized> RouteToData<T> for $route
        where
            $route: RouteToTensor<T>,
        {
            #[inline]
            fn describe(value: &T) -> Result<Descriptor<'_>, Error> {
                <$route as RouteToTensor<T>>::describe(value)
            }
        }
    )*};
}
data_routes!(ByTensor ByDerefMut ByDeref ByArc);

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
    fn share_tensor(
        value: &T,
        request: Option<&ExportRequest>,
        call: &mut ShareCall,
    ) -> Option<RawExport> {
        extras::share(value, request, call)
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
