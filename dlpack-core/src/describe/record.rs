//! Structs of scalars: each field of a slice of such structs is a strided tensor.

use core::{marker::PhantomData, mem::size_of, ops::Deref};

use crate::describe::{descriptor::Descriptor, parts::Parts};
use crate::{Element, Error, Loan, loan::facts::NamedFacts};

/// A `#[repr(C)]` struct with one column of a table for each field; derived.
///
/// ```
/// use dlpack_core::{DLPackTensors, Record};
///
/// #[derive(Record)]
/// #[repr(C)]
/// struct Trade { price: f64, size: u32, bid: bool }
///
/// #[derive(dlpack_core::DLPack)]
/// struct Tape {
///     #[dlpack(columns)]
///     trades: Vec<Trade>,
/// }
///
/// let tape = Tape { trades: vec![Trade { price: 1.5, size: 10, bid: true }] };
/// assert_eq!(Tape::NAMES, ["price", "size", "bid"]);
/// assert_eq!(tape.describe_tensor("size")?.strides(), [4]);
/// dlpack_core::assert_exports!(Tape, "size": u32, rank 1, readonly);
/// # Ok::<(), dlpack_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a record",
    label = "`columns` needs a list of records",
    note = "add `#[derive(Record)]` and `#[repr(C)]` to `{Self}`"
)]
pub trait Record: Sized + Send + Sync + 'static {
    /// The names of the columns, in the order of the fields.
    const NAMES: &'static [&'static str];

    /// What the field types prove at compile time; see [`assert_exports!`](crate::assert_exports).
    #[doc(hidden)]
    const COLUMNS: NamedFacts = &[];

    /// The doc comments of the fields that have one.
    #[doc(hidden)]
    const DOCS: NamedDocs = &[];

    /// Describes the column of this name over a slice of records.
    ///
    /// ```
    /// use dlpack_core::Record;
    ///
    /// #[derive(Record)]
    /// #[repr(C)]
    /// struct Sample { time: f64, channels: [i16; 4] }
    ///
    /// let samples = [Sample { time: 0.0, channels: [0; 4] }, Sample { time: 0.1, channels: [1; 4] }];
    /// let channels = Sample::column(&samples, "channels")?;
    /// assert_eq!((channels.shape(), channels.strides()), (&[2, 4][..], &[8, 1][..]));
    /// # Ok::<(), dlpack_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTensor`], or [`Error::PartialStride`] if the size of a record is no multiple of the size of the column's
    /// items.
    fn column<'a>(rows: &'a [Self], name: &str) -> Result<Descriptor<'a>, Error>;
}

/// Pairs of a name and its doc comment.
#[doc(hidden)]
pub type NamedDocs = &'static [(&'static str, &'static str)];

/// A list of records: any type that dereferences to a slice of them.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no columns",
    label = "expected `Vec<R>`, `Box<[R]>`, `Arc<[R]>` or another type that derefs to `[R]`",
    note = "`R` is a `#[repr(C)]` struct that derives `Record`"
)]
pub trait Columns {
    /// The type of a row.
    type Record: Record;
    /// The rows.
    fn rows(&self) -> &[Self::Record];
}

impl<L: Deref<Target: Rows>> Columns for L {
    type Record = <L::Target as Rows>::Record;

    fn rows(&self) -> &[Self::Record] {
        self.deref().slice()
    }
}

/// A slice of records.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no columns",
    label = "expected `Vec<R>`, `Box<[R]>`, `Arc<[R]>` or another type that derefs to `[R]`",
    note = "`R` is a `#[repr(C)]` struct that derives `Record`"
)]
pub trait Rows {
    /// The type of a row.
    type Record: Record;
    /// The rows.
    fn slice(&self) -> &[Self::Record];
}

impl<R: Record> Rows for [R] {
    type Record = R;

    fn slice(&self) -> &[R] {
        self
    }
}

/// The constants of a list's columns. If `L` has no columns, the defaults of `private::probe::Unsaid` apply, so that the error
/// is only reported once, by the call that needs the columns.
#[doc(hidden)]
pub struct Table<L: ?Sized>(PhantomData<L>);

impl<L: Columns + ?Sized> Table<L> {
    /// The names of the columns.
    pub const NAMES: &'static [&'static str] = L::Record::NAMES;
    /// What the column types prove at compile time.
    pub const COLUMNS: NamedFacts = L::Record::COLUMNS;
    /// The doc comments of the columns.
    pub const DOCS: NamedDocs = L::Record::DOCS;
}

/// Describes the column of the field that `field` borrows from each row.
#[doc(hidden)]
pub fn record_column<'a, R: Record, F: Element>(
    rows: &'a [R],
    field: impl Fn(&'a R) -> &'a F,
) -> Result<Descriptor<'a>, Error> {
    Parts::new()
        .shape([rows.len()])
        .byte_strides([size_of::<R>()])
        .describe(Loan::of_field::<R, F>(rows, field))
}
