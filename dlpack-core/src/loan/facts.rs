//! What the types of a struct say about its tensor before any value exists; read by `assert_exports!`.

use core::marker::PhantomData;

use crate::dtype::DataType;
use crate::element::Element;

/// The part of a tensor that is known at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Facts {
    dtype: Option<DataType>,
    /// The axes in front of those of the element.
    leading: Option<usize>,
    trailing: usize,
    writable: bool,
}

impl Facts {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        dtype: None,
        leading: None,
        trailing: 0,
        writable: false,
    };

    /// A list of `E`, one axis and those of `E`.
    pub const fn list<E: Element>() -> Self {
        Self {
            dtype: Some(E::DTYPE),
            leading: Some(1),
            trailing: E::TRAILING.len(),
            writable: false,
        }
    }

    /// As many axes as the shape has.
    pub const fn rank(self, leading: Option<usize>) -> Self {
        Self { leading, ..self }
    }

    /// The bytes are read as the elements of that list.
    pub const fn elem(self, list: Self) -> Self {
        Self {
            dtype: list.dtype,
            trailing: list.trailing,
            ..self
        }
    }

    /// The data type is a value.
    pub const fn dynamic_dtype(self) -> Self {
        Self {
            dtype: None,
            trailing: 0,
            ..self
        }
    }

    /// No consumer may write.
    pub const fn read_only(self) -> Self {
        Self {
            writable: false,
            ..self
        }
    }

    /// An export that owns the data may be written.
    pub const fn writable(self) -> Self {
        Self {
            writable: true,
            ..self
        }
    }

    /// Whether the items are of this type for sure.
    #[must_use]
    pub const fn has_dtype(self, expected: DataType) -> bool {
        match self.dtype {
            Some(found) => {
                found.code() == expected.code()
                    && found.bits() == expected.bits()
                    && found.lanes() == expected.lanes()
                    && found.is_padded() == expected.is_padded()
            }
            None => false,
        }
    }

    /// Whether the types say what the items are.
    #[must_use]
    pub const fn knows_dtype(self) -> bool {
        self.dtype.is_some()
    }

    /// Whether the types say how many axes there are.
    #[must_use]
    pub const fn knows_rank(self) -> bool {
        self.leading.is_some()
    }

    /// Whether there are so many axes for sure.
    #[must_use]
    pub const fn has_rank(self, expected: usize) -> bool {
        match self.leading {
            Some(leading) => leading + self.trailing == expected,
            None => false,
        }
    }

    /// Whether an export that owns the data may be written for sure.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.writable
    }
}

/// What is known of a type if it is an element; read where another call already complains that it is not.
#[doc(hidden)]
pub struct Elem<E>(PhantomData<E>);

impl<E: Element> Elem<E> {
    /// What a list of them exports.
    pub const FACTS: Facts = Facts::list::<E>();
}

/// States what a type exports; the build fails where that is not so.
///
/// What is named has to be known from the types: the data type of the items, the rank, and whether
/// an export that owns the data may be written to (`writable`) or not (`readonly`).
///
/// ```
/// use dlpack_core::{DLPack, assert_exports};
///
/// #[derive(DLPack)]
/// struct Image {
///     #[dlpack(data, writable)]
///     pixels: Vec<f32>,
///     #[dlpack(shape)]
///     dims: [usize; 3],
/// }
///
/// assert_exports!(Image: f32, rank 3, writable);
/// ```
///
/// ```compile_fail
/// # use dlpack_core::{DLPack, assert_exports};
/// # #[derive(DLPack)]
/// # struct Image { #[dlpack(data)] pixels: Vec<f32>, #[dlpack(shape)] dims: [usize; 3] }
/// assert_exports!(Image: f64);
/// ```
#[macro_export]
macro_rules! assert_exports {
    ($type:ty: $elem:ty $(, $($rest:tt)*)?) => {
        const _: () = {
            const FACTS: $crate::__private::Facts = <$type as $crate::DLPack>::EXTRAS.facts;
            ::core::assert!(
                FACTS.knows_dtype(),
                ::core::concat!(
                    "the data type of `", ::core::stringify!($type),
                    "` is only known at run time: its types do not say it"
                ),
            );
            ::core::assert!(
                FACTS.has_dtype(<$elem as $crate::Element>::DTYPE),
                ::core::concat!(
                    "`", ::core::stringify!($type), "` does not export items of `",
                    ::core::stringify!($elem), "`"
                ),
            );
            $($crate::assert_exports!(@rest $type: $($rest)*);)?
        };
    };
    (@rest $type:ty: rank $rank:literal $(, $($rest:tt)*)?) => {
        ::core::assert!(
            FACTS.knows_rank(),
            ::core::concat!(
                "the rank of `", ::core::stringify!($type),
                "` is only known at run time: its types do not say it"
            ),
        );
        ::core::assert!(
            FACTS.has_rank($rank),
            ::core::concat!(
                "`", ::core::stringify!($type), "` does not export a tensor of rank ", $rank
            ),
        );
        $($crate::assert_exports!(@rest $type: $($rest)*);)?
    };
    (@rest $type:ty: writable $(, $($rest:tt)*)?) => {
        ::core::assert!(
            FACTS.is_writable(),
            ::core::concat!("`", ::core::stringify!($type), "` does not export writable data"),
        );
        $($crate::assert_exports!(@rest $type: $($rest)*);)?
    };
    (@rest $type:ty: readonly $(, $($rest:tt)*)?) => {
        ::core::assert!(
            !FACTS.is_writable(),
            ::core::concat!("`", ::core::stringify!($type), "` exports writable data"),
        );
        $($crate::assert_exports!(@rest $type: $($rest)*);)?
    };
    (@rest $type:ty: $(,)?) => {};
}
