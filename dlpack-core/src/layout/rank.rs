//! How many axes a list has, where its type says so: itself a type, so that strides which do not fit are an error of types.

use core::marker::PhantomData;

use crate::layout::shape::{Shape, Strides};

/// So many axes.
#[derive(Debug)]
pub enum Fixed<const N: usize> {}

/// As many axes as the list is long.
#[derive(Debug)]
pub enum Open {}

/// Either of them.
pub trait Rank {
    /// How many axes, where the type says so.
    const RANK: Option<usize>;
}

impl<const N: usize> Rank for Fixed<N> {
    const RANK: Option<usize> = Some(N);
}

impl Rank for Open {
    const RANK: Option<usize> = None;
}

/// Says which rank of strides goes with which rank of a shape.
pub trait Fits<R> {}

impl<const N: usize> Fits<Self> for Fixed<N> {}
// A list of unknown length goes with every shape, and any strides with it: only its values can tell.
impl<const N: usize> Fits<Open> for Fixed<N> {}
impl<R> Fits<R> for Open {}

/// Says which strides go with which shape, as far as the types know; the derive asks for it.
#[diagnostic::on_unimplemented(
    message = "strides `{Self}` do not fit shape `{S}`",
    label = "one stride an axis, as many as `{S}` has"
)]
pub trait StridesFor<S: ?Sized>: Strides {}

#[diagnostic::do_not_recommend]
impl<S: Shape + ?Sized, T: Strides<Rank: Fits<S::Rank>> + ?Sized> StridesFor<S> for T {}

/// The rank of a shape; read where another call already complains that it is none.
#[derive(Debug)]
pub struct RankOf<S: ?Sized>(PhantomData<S>);

impl<S: Shape + ?Sized> RankOf<S> {
    /// How many axes, where the type says so.
    pub const RANK: Option<usize> = <S::Rank as Rank>::RANK;
}
