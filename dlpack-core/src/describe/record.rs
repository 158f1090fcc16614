//! The trait [`Record`], for structs of scalars. Each field of a slice of such structs is described as a strided tensor.

use core::{marker::PhantomData, mem::size_of, ops::Deref};

use crate::describe::{descriptor::Descriptor, parts::Parts};
use crate::element::{Axes, RecordLayout};
use crate::{Element, Error, Loan, loan::facts::NamedFacts};

/// A `#[repr(C)]` struct. Each of its fields becomes a column of a table, or a field of a structured NumPy array. Derive it.
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
    note = "add `#[derive(Record)]` and `#[repr(C)]` to `{Self}`; a field that is one column, such as a `Vec<f64>`, has the key `tensor` instead"
)]
pub trait Record: Sized + Send + Sync + 'static {
    /// The names of the columns, in the order of the fields.
    const NAMES: &'static [&'static str];

    /// The fields and their offsets in the struct. Empty if the trait is implemented by hand.
    const LAYOUT: &'static RecordLayout = &RecordLayout::of::<Self>(&[]);

    /// The compile-time facts of each column; see [`assert_exports!`](crate::assert_exports).
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
    /// [`Error::NoSuchTensor`], or [`Error::PartialStride`] if the size of a record is not a multiple of the item size of the
    /// column.
    fn column<'a>(rows: &'a [Self], name: &str) -> Result<Descriptor<'a>, Error>;
}

/// A record, or an array of records: the type of a field with the key `nested`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a record, nor an array of records",
    label = "`nested` needs a struct with `#[derive(Record)]`, or an array of such structs",
    note = "add `#[derive(Record)]` and `#[repr(C)]` to the struct; a field whose type is a number or an array of numbers needs no key"
)]
pub trait Nested {
    /// The layout of the record, and the axes of the array (none for a single record).
    const NESTED: (&'static RecordLayout, Axes);
}

#[diagnostic::do_not_recommend]
impl<R: Record> Nested for R {
    const NESTED: (&'static RecordLayout, Axes) = (R::LAYOUT, Axes::NONE);
}

impl<R: Nested, const N: usize> Nested for [R; N] {
    const NESTED: (&'static RecordLayout, Axes) = (R::NESTED.0, Axes::of_array(N, R::NESTED.1));
}

/// The memory of a list of records, lent to a consumer that reads it by its [`RecordLayout`], such as NumPy.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    data: *const u8,
    len: usize,
    /// The layout of each record. Its size is the size of the record type.
    layout: &'static RecordLayout,
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a> Records<'a> {
    /// Lends the records of a slice.
    #[must_use]
    pub fn of<R: Record>(rows: &'a [R]) -> Self {
        const {
            assert!(
                R::LAYOUT.size() == size_of::<R>(),
                "the layout of a record is that of another type"
            );
        }
        Self {
            data: rows.as_ptr().cast(),
            len: rows.len(),
            layout: R::LAYOUT,
            lifetime: PhantomData,
        }
    }

    /// Lends the records of a slice for reading and writing.
    #[must_use]
    pub fn of_mut<R: Record>(rows: &'a mut [R]) -> Self {
        let data = rows.as_mut_ptr().cast_const().cast();
        Self {
            data,
            ..Self::of(rows)
        }
    }

    /// Lends bytes as records of a layout that is known at run time. Returns `None` unless the bytes are a whole number of records.
    #[doc(hidden)]
    #[must_use]
    pub fn of_bytes(bytes: &'a [u8], layout: &'static RecordLayout) -> Option<Self> {
        let len = bytes.len().checked_div(layout.size())?;
        (len * layout.size() == bytes.len()).then_some(Self {
            data: bytes.as_ptr(),
            len,
            layout,
            lifetime: PhantomData,
        })
    }

    /// The address of the first record.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.data
    }

    /// The number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The layout of each record.
    #[must_use]
    pub fn layout(&self) -> &'static RecordLayout {
        self.layout
    }
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

/// The constants of the columns of `L`. If `L` is not a list of records, the constants of `private::probe::ProbeDefaults` apply,
/// so that only the call that needs the columns reports the error.
#[doc(hidden)]
pub struct Table<L: ?Sized>(PhantomData<L>);

impl<L: Columns + ?Sized> Table<L> {
    /// The names of the columns.
    pub const NAMES: &'static [&'static str] = L::Record::NAMES;
    /// The facts that the column types determine at compile time.
    pub const COLUMNS: NamedFacts = L::Record::COLUMNS;
    /// The doc comments of the columns.
    pub const DOCS: NamedDocs = L::Record::DOCS;

    /// Lends the records of the list.
    #[inline]
    pub fn records(list: &L) -> Option<Records<'_>> {
        Some(Records::of(list.rows()))
    }
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
