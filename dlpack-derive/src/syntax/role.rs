//! The keys of the grammar: the name of each, the sites where it is allowed, and its form there.

use crate::syntax::root::Root;

macro_rules! roles {
    ($($role:ident = $name:literal, $example:literal;)*) => {
        /// A key of `#[dlpack(..)]`: the role of a field or an expression in a tensor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Role { $($role),* }

        impl Role {
            const ALL: &[Self] = &[$(Self::$role),*];

            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$role => $name),* }
            }

            /// The key with an example value, for messages.
            pub(crate) const fn example(self, root: Root) -> &'static str {
                let example = match self { $(Self::$role => $example),* };
                // The default path, which has the effect of leaving out the key.
                if let Self::Crate = self { root.name() } else { example }
            }
        }
    };
}
roles! {
    Data = "data", "&self.items[..]";
    Shape = "shape", "[rows, 3]";
    Strides = "strides", "[pitch, _]";
    ByteStrides = "byte_strides", "[pitch, _]";
    Order = "order", "\"F\"";
    Offset = "offset", "start";
    ByteOffset = "byte_offset", "header";
    Elem = "elem", "f32";
    Dtype = "dtype", "DataType::F32";
    Device = "device", "Device::CPU";
    Stream = "stream", "self.stream.clone()";
    Owner = "owner", "";
    ReadOnly = "readonly", "";
    Writable = "writable", "";
    Set = "set", "";
    Tensor = "tensor", "";
    Columns = "columns", "";
    Via = "via", "self.to_array()";
    Unsafe = "unsafe", "";
    Legacy = "legacy", "\"refuse\"";
    Release = "release", "\"immediate\"";
    Skip = "skip", "";
    Nested = "nested", "";
    Info = "info", "";
    Arrays = "arrays", "\"numpy\"";
    Pickle = "pickle", "";
    Iterable = "iterable", "";
    Crate = "crate", "";
    Bound = "bound", "\"T: Element\"";
    Name = "name", "\"weights\"";
    Len = "len", "self.len";
}

/// A place where attributes or nested keys can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    Struct,
    Field,
    Enum,
    Variant,
    VariantField,
    /// The keys in `tensor(..)` on a field.
    FieldTensor,
    /// The keys in `tensor(..)` on the struct.
    FreeTensor,
    /// The keys in `unsafe(..)`.
    Raw,
    /// On a struct with `Element` or `Record`.
    Row,
    RowField,
    /// The options of `#[dlpack_pymethods(..)]`.
    Methods,
}

/// What may follow a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Flag,
    Expr,
    /// `"C"`, `"F"` or an expression.
    Order,
    Text,
    Type,
    Path,
    List(Site),
    FlagOrList(Site),
}

impl Role {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|role| role.name() == name)
    }

    /// The form of the key at a site; `None` if it is not allowed there.
    pub(crate) fn form(self, site: Site) -> Option<Form> {
        use Role as R;
        let form = match (site, self) {
            (Site::Struct | Site::Enum | Site::Row | Site::Methods, R::Crate) => Form::Path,
            (Site::Methods, R::Info | R::Pickle | R::Iterable) => Form::Flag,
            (Site::Methods, R::Arrays) => Form::Text,
            (Site::Struct | Site::Enum | Site::Row, R::Bound) => Form::Text,

            (Site::Field, R::Tensor) => Form::FlagOrList(Site::FieldTensor),
            (Site::Field, R::Data | R::Owner | R::Columns) => Form::Flag,
            (Site::Field, role) if role.lays_out() => Form::Flag,
            (Site::Variant | Site::RowField, R::Skip)
            | (Site::RowField, R::Nested)
            | (Site::VariantField, R::Data) => Form::Flag,

            (Site::Struct, R::Tensor) => Form::List(Site::FreeTensor),
            (Site::Struct | Site::FreeTensor, R::Unsafe) => Form::List(Site::Raw),
            (Site::Struct, R::Via) => Form::Expr,
            (Site::Struct, R::Legacy | R::Release) => Form::Text,
            (Site::Struct | Site::Field, R::ReadOnly | R::Writable) => Form::Flag,

            (Site::FieldTensor | Site::FreeTensor, R::Name) => Form::Text,
            (Site::FieldTensor | Site::FreeTensor, R::ReadOnly)
            | (Site::FieldTensor, R::Owner | R::Set) => Form::Flag,

            (Site::Struct | Site::FreeTensor | Site::Raw, R::Data) | (Site::Raw, R::Len) => {
                Form::Expr
            }
            (Site::Struct | Site::FieldTensor | Site::FreeTensor, R::Elem) => Form::Type,
            (Site::Struct | Site::FieldTensor | Site::FreeTensor, R::Order) => Form::Order,
            (Site::Struct | Site::FieldTensor | Site::FreeTensor, role) if role.lays_out() => {
                Form::Expr
            }
            _ => return None,
        };
        Some(form)
    }

    /// Whether the key gets an error of its own at a site where it is not allowed. Options of a class and keys of a tensor are
    /// unknown to each other.
    pub(crate) fn is_known(self, site: Site) -> bool {
        let of_class = self.form(Site::Methods).is_some();
        match site {
            Site::Methods => of_class,
            _ => !of_class || self == Self::Crate,
        }
    }

    /// Whether the key describes the layout of the elements, by a field or an expression.
    pub(crate) const fn lays_out(self) -> bool {
        matches!(
            self,
            Self::Shape
                | Self::Strides
                | Self::ByteStrides
                | Self::Order
                | Self::Offset
                | Self::ByteOffset
                | Self::Dtype
                | Self::Device
                | Self::Stream
        )
    }

    /// Names that other libraries use for the key.
    const fn synonyms(self) -> &'static [&'static str] {
        match self {
            Self::Data => &[
                "array", "buf", "elements", "items", "memory", "ptr", "storage", "values",
            ],
            Self::Shape => &[
                "dim",
                "dims",
                "dimensions",
                "extent",
                "extents",
                "size",
                "sizes",
            ],
            Self::Strides => &["step", "steps"],
            Self::ByteStrides => &["linesize", "pitch"],
            Self::Order => &["layout", "major"],
            Self::Offset => &["begin", "start"],
            Self::Elem => &["item", "scalar"],
            Self::Dtype => &["datatype", "type"],
            Self::Device => &["cuda", "dev", "gpu"],
            Self::Stream => &["queue"],
            Self::Owner => &["arc", "base", "keep"],
            Self::ReadOnly => &["const", "immutable", "ro"],
            Self::Writable => &["mut", "mutable", "rw", "write"],
            Self::Columns => &["fields", "records", "rows"],
            Self::Skip => &["ignore"],
            Self::Name => &["rename"],
            Self::Len => &["count", "size"],
            _ => &[],
        }
    }

    /// Where the key is allowed, for the error of a misplaced one.
    pub(crate) const fn allowed_place(self) -> &'static str {
        match self {
            Self::Data | Self::Owner | Self::Columns | Self::Tensor => "a field",
            Self::Skip => "an enum variant",
            Self::Nested => "a field of a struct with `#[derive(Record)]`",
            Self::Name | Self::Set => "`tensor(..)`",
            Self::Len => "`unsafe(data = .., len = ..)`",
            Self::ReadOnly | Self::Writable => "the `data` field",
            _ => "the struct",
        }
    }
}

impl Site {
    /// The name of the site in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Struct | Self::Row => "the struct",
            Self::Field | Self::RowField => "a field",
            Self::Enum => "an enum",
            Self::Variant => "a variant",
            Self::VariantField => "a variant's field",
            Self::FieldTensor | Self::FreeTensor => "`tensor(..)`",
            Self::Raw => "`unsafe(..)`",
            Self::Methods => "`#[dlpack_pymethods]`",
        }
    }

    /// What a key at this site is called in messages, after `dlpack`.
    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::Struct | Self::Row => "struct attribute",
            Self::Field | Self::VariantField | Self::RowField => "field attribute",
            Self::Enum => "enum attribute",
            Self::Variant => "variant attribute",
            Self::FieldTensor | Self::FreeTensor => "tensor attribute",
            Self::Raw => "`unsafe` attribute",
            Self::Methods => "class option",
        }
    }

    /// The keys that are allowed here, as a message lists them.
    pub(crate) fn expected(self) -> String {
        let names: Vec<_> = self
            .roles()
            .map(|role| format!("`{}`", role.name()))
            .collect();
        match &names[..] {
            [one] => one.clone(),
            many => format!("one of {}", many.join(", ")),
        }
    }

    /// The key that a misspelled one was probably meant to be, or a key by its name in other libraries.
    pub(crate) fn nearest_key(self, word: &str) -> Option<Role> {
        let word = word.to_lowercase().replace('_', "");
        let meant = || {
            self.roles()
                .find(|role| role.synonyms().contains(&word.as_str()))
        };
        self.roles()
            .map(|role| (edit_distance(&word, &role.name().replace('_', "")), role))
            .filter(|&(far, role)| far <= 2 && far * 2 < role.name().len())
            .min_by_key(|&(far, _)| far)
            .map(|(_, role)| role)
            .or_else(meant)
    }

    pub(crate) fn roles(self) -> impl Iterator<Item = Role> {
        Role::ALL
            .iter()
            .copied()
            .filter(move |role| role.form(self).is_some())
    }
}

/// The edit distance between two words.
fn edit_distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.chars().count()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.chars().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.chars().count()]
}
