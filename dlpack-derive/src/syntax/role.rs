//! The keys of the grammar, each spelled once, with the places where it may stand and the form it takes there.

use crate::syntax::root::Root;

macro_rules! roles {
    ($($role:ident = $name:literal, $example:literal;)*) => {
        /// A key of `#[dlpack(..)]`: what a field or an expression is to the tensor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Role { $($role),* }

        impl Role {
            const ALL: &[Self] = &[$(Self::$role),*];

            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$role => $name),* }
            }

            /// A value for messages: what the key looks like with one.
            pub(crate) const fn example(self, root: Root) -> &'static str {
                let example = match self { $(Self::$role => $example),* };
                // The path that stands there already, were it left out.
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

/// Where an attribute, or a list inside one, stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    Struct,
    Field,
    Enum,
    Variant,
    VariantField,
    /// `tensor(..)` on a field.
    FieldTensor,
    /// `tensor(..)` on the struct.
    FreeTensor,
    /// `unsafe(..)`.
    Raw,
    /// The struct of `Element` and `Record`.
    Row,
    RowField,
    /// `#[dlpack_pymethods(..)]`
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

    /// The form of the key at a site; `None` where it does not belong.
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

    /// Whether the key is worth a message of its own where it does not belong: the options of a class
    /// and the keys of a tensor are strangers to each other.
    pub(crate) fn is_known(self, site: Site) -> bool {
        let of_class = self.form(Site::Methods).is_some();
        match site {
            Site::Methods => of_class,
            _ => !of_class || self == Self::Crate,
        }
    }

    /// Whether the key says where and how the elements lie, which a field can do as well as an expression.
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

    /// What else the key is called in other libraries.
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

    /// Where the key belongs, for a message about one that stands elsewhere.
    pub(crate) const fn home(self) -> &'static str {
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
    /// How a message names the site.
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

    /// What a key is called here, behind `dlpack`.
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

    /// The keys that may stand here, as a message lists them.
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

    /// The key that a misspelt one was probably meant to be, or one in the words of other libraries.
    pub(crate) fn nearest(self, word: &str) -> Option<Role> {
        let word = word.to_lowercase().replace('_', "");
        let meant = || {
            self.roles()
                .find(|role| role.synonyms().contains(&word.as_str()))
        };
        self.roles()
            .map(|role| (distance(&word, &role.name().replace('_', "")), role))
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

/// Insertions, removals and replacements of letters between two words.
fn distance(left: &str, right: &str) -> usize {
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
