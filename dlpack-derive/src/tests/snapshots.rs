//! One expansion per feature, kept in `tests/snapshots`; `UPDATE_EXPECT=1` rewrites them.

use expect_test::expect_file;
use proc_macro2::{Spacing, TokenStream, TokenTree};

use super::{expand, print};
use crate::syntax::input::Derive;
use crate::syntax::root::Root;

/// The limit for the expansion of a typical struct: a larger one means that logic has moved out of the core.
const USUAL: usize = 43;
/// The limit with lists, owners, accessors or more keys: one more call for each key.
const MORE: usize = 80;
/// The limit with several tensors.
const MANY: usize = 117;

fn pretty(derive: Derive, source: &str) -> (TokenStream, String) {
    let tokens = expand(derive, source).unwrap_or_else(|errors| panic!("refused: {errors:?}"));
    let text = print(&tokens);
    (tokens, text)
}

/// All tokens except for delimiters.
fn flat(tokens: TokenStream) -> Vec<TokenTree> {
    let each = |token| match token {
        TokenTree::Group(group) => flat(group.stream()),
        token => vec![token],
    };
    tokens.into_iter().flat_map(each).collect()
}

/// Names of the prelude and of crates that the expansion uses without a root.
pub(super) fn unrooted(tokens: &TokenStream, source: &str) -> Vec<String> {
    const NAMES: [&str; 14] = [
        "Result",
        "Option",
        "Some",
        "None",
        "Ok",
        "Err",
        "Default",
        "Send",
        "Into",
        "str",
        "core",
        "std",
        "alloc",
        "dlpack_core",
    ];
    let flat = flat(tokens.clone());
    let mut found = Vec::new();
    for (at, token) in flat.iter().enumerate() {
        let name = token.to_string();
        let rooted = at > 0 && flat[at - 1].to_string() == ":";
        if NAMES.contains(&name.as_str()) && !rooted && !source.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The names after `Self::`, which another trait in scope could also define.
pub(super) fn self_paths(tokens: &TokenStream) -> Vec<String> {
    let flat = flat(tokens.clone());
    let joint = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ':' && p.spacing() == Spacing::Joint);
    let path = |window: &[TokenTree]| {
        (window[0].to_string() == "Self" && joint(&window[1])).then(|| window[3].to_string())
    };
    flat.windows(4).filter_map(path).collect()
}

pub(super) fn has_unsafe(tokens: &TokenStream) -> bool {
    flat(tokens.clone())
        .iter()
        .any(|token| token.to_string() == "unsafe")
}

/// The input as a comment above its expansion.
pub(super) fn page(source: &str, expansion: &str) -> String {
    let mut page = String::new();
    let indent = source
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start().len());
    let indent = indent.min().unwrap_or(0);
    for line in source.lines().filter(|line| !line.trim().is_empty()) {
        page += &format!("// {}\n", &line[indent..]);
    }
    page + "\n" + expansion
}

fn check(derive: Derive, source: &str, lines: usize, variants: &[&str], raw: bool) -> String {
    let (tokens, expansion) = pretty(derive, source);
    assert_eq!(
        has_unsafe(&tokens),
        raw,
        "only the user's own `unsafe` is repeated"
    );
    assert_eq!(
        unrooted(&tokens, source),
        [""; 0],
        "every path starts at the crate"
    );
    for path in self_paths(&tokens) {
        assert!(
            variants.contains(&path.as_str()),
            "`Self::{path}` may be another trait's"
        );
    }
    let found = expansion.lines().count();
    assert!(found <= lines, "{found} lines:\n{expansion}");
    page(source, &expansion)
}

macro_rules! snapshots {
    ($($name:ident: $derive:ident, $lines:expr, $source:literal;)*) => {
        $(#[test]
        fn $name() {
            let found = check(Derive::$derive, $source, $lines, &["Mono", "Multi", "Both", "Empty", "Off"], stringify!($name).starts_with("raw_pointer"));
            expect_file![concat!("../../tests/snapshots/", stringify!($name), ".rs")].assert_eq(&found);
        })*
    };
}
snapshots! {
    data_and_shape: DLPack, USUAL, "
        struct Image {
            #[dlpack(data)]
            pixels: Vec<f32>,
            #[dlpack(shape)]
            dims: [usize; 3],
        }
    ";
    newtype: DLPack, USUAL, "
        struct Image<const C: usize>(Tensor<3>);
    ";
    data_of_a_tensor: DLPack, USUAL, "
        struct Scan {
            #[dlpack(data)]
            image: Image,
            taken: u64,
        }
    ";
    only_field_with_keys: DLPack, MORE, "
        #[dlpack(shape = [_, 3], order = \"C\")]
        struct Points { items: Vec<f32> }
    ";
    tuple_struct: DLPack, MORE, "
        #[dlpack(shape = [self.1, self.2])]
        struct Matrix(#[dlpack(data)] Vec<f64>, usize, usize);
    ";
    column_major: DLPack, MORE, "
        #[dlpack(shape = [nrows, ncols], order = \"F\")]
        struct ColMajor { #[dlpack(data)] v: Vec<f64>, nrows: usize, ncols: usize }
    ";
    padded_rows: DLPack, MORE, "
        #[dlpack(shape = [height, width, 3], byte_strides = [linesize, _, _])]
        struct Frame { #[dlpack(data)] data: Bytes, height: u32, width: u32, linesize: usize }
    ";
    strides_field: DLPack, MORE, "
        struct View {
            #[dlpack(data)] items: Vec<f32>,
            #[dlpack(shape)] shape: [i64; 3],
            #[dlpack(strides)] strides: [i64; 2],
        }
    ";
    layout_field: DLPack, MORE, "
        struct Frame {
            #[dlpack(data)] pixels: SharedBuffer<f32>,
            #[dlpack(shape, strides)] layout: Layout<3>,
        }
    ";
    strides_without_shape: DLPack, MORE, "
        #[dlpack(strides = vec![self.step])]
        struct Every { #[dlpack(data)] items: Vec<f32>, step: i64 }
    ";
    owner: DLPack, MORE, "
        #[dlpack(shape = [_, dim])]
        struct Vectors { #[dlpack(data, owner)] values: ScalarBuffer<f32>, dim: i32 }
    ";
    owner_elsewhere: DLPack, MORE, "
        #[dlpack(data = &self.map[header..])]
        struct Mapped { #[dlpack(owner)] map: Arc<Mmap>, header: usize }
    ";
    stream_and_device: DLPack, MORE, "
        struct Page {
            #[dlpack(data)] kv: CudaSlice<bf16>,
            #[dlpack(shape)] dims: (usize, usize, usize),
            #[dlpack(stream)] s: Arc<CudaStream>,
            #[dlpack(device)] device: Device,
        }
    ";
    run_time_layout: DLPack, MORE, "
        #[dlpack(byte_offset = header + 8, device = Device::CPU)]
        struct File {
            #[dlpack(data)] map: Mmap,
            header: usize,
            #[dlpack(dtype)] kind: Kind,
            #[dlpack(order)] order: Layout,
            #[dlpack(shape)] shape: Vec<u64>,
        }
    ";
    offset_and_order_by_expression: DLPack, MORE, "
        #[dlpack(shape = self.shape(), order = self.order(), dtype = DataType::F32, stream = self.queue())]
        struct Part { #[dlpack(data)] items: Pool, #[dlpack(offset)] first: usize }
    ";
    elem: DLPack, USUAL, "
        #[dlpack(elem = Complex<f32>)]
        struct Signal { #[dlpack(data)] bytes: Vec<f32>, rate: f64 }
    ";
    readonly: DLPack, USUAL, "
        struct Table { #[dlpack(data, readonly)] items: Vec<f32>, name: String }
    ";
    writable: DLPack, MORE, "
        struct Observation { #[dlpack(data, writable)] items: Vec<f32>, #[dlpack(shape)] dims: [usize; 2] }
    ";
    policies: DLPack, USUAL, "
        #[dlpack(legacy = \"refuse\", release = \"immediate\")]
        struct Weights { #[dlpack(data)] items: CudaSlice<f32>, epoch: u32 }
    ";
    policies_by_default: DLPack, USUAL, "
        #[dlpack(legacy = \"copy\", release = \"safe\")]
        struct Weights { #[dlpack(data)] items: CudaSlice<f32>, epoch: u32 }
    ";
    data_expression: DLPack, USUAL, "
        #[dlpack(data = &self.map[..len], shape = [len])]
        struct Mapped { map: Mmap, len: usize }
    ";
    raw_pointer: DLPack, USUAL, "
        #[dlpack(unsafe(data = self.storage.as_ptr(), len = self.storage.len()))]
        struct Tensor<const N: usize> {
            storage: Storage,
            #[dlpack(shape)] shape: [usize; N],
            #[dlpack(strides)] strides: [usize; N],
        }
    ";
    raw_pointer_writable: DLPack, USUAL, "
        #[dlpack(unsafe(data = ptr, len = len), device = Device::cuda(0), writable)]
        struct Tensor { ptr: *mut f32, len: usize }
    ";
    via: DLPack, USUAL, "
        #[dlpack(via = self.to_array())]
        struct Lazy { graph: Graph }
    ";
    via_with_policy: DLPack, USUAL, "
        #[dlpack(via = self.to_array(), legacy = \"refuse\")]
        struct Lazy { graph: Graph }
    ";
    variants: DLPack, MANY, "
        enum Audio {
            Mono(Array1<f32>),
            Multi { samples: Array2<f32> },
            Both(u32, #[dlpack(data)] Array2<i16>),
            #[dlpack(skip)] Empty,
            #[dlpack(skip)] Off(u8),
        }
    ";
    tensors: DLPack, MANY + 32, "
        #[dlpack(tensor(name = \"head\", data = &self.obs[..n], shape = [n, 1], readonly))]
        pub struct Batch {
            #[dlpack(tensor)] pub obs: Vec<f32>,
            #[dlpack(tensor(name = \"reward\", shape = [_, n], elem = f32))] rewards: Vec<f32>,
            #[dlpack(tensor)] pub(crate) mask: Option<Array2<bool>>,
            #[dlpack(tensor(shape = [n]))] done: Option<Vec<bool>>,
            n: usize,
        }
    ";
    raw_pointer_tensor: DLPack, MORE, "
        #[dlpack(tensor(name = \"kv\", unsafe(data = ptr, len = 3), device = Device::cuda(0)))]
        struct Cache { ptr: *const f32 }
    ";
    data_and_tensors: DLPack, MANY, "
        struct Batch {
            #[dlpack(data, tensor(name = \"obs\"), tensor(name = \"pairs\", shape = [_, 2]))] items: Vec<f32>,
            #[dlpack(tensor)] rewards: Vec<f32>,
        }
    ";
    tensor_owners: DLPack, MANY, "
        struct Batch {
            #[dlpack(tensor(owner))] state: SharedBuffer<f32>,
            #[dlpack(tensor, owner)] mask: Option<Arc<Bytes>>,
        }
    ";
    tensor_setters: DLPack, MANY, "
        struct Batch {
            #[dlpack(tensor(set, shape = [n, _], order = \"F\"))] mask: Option<Vec<bool>>,
            n: usize,
        }
    ";
    columns: DLPack, USUAL, "
        struct Series { #[dlpack(columns)] candles: Vec<Candle>, name: String }
    ";
    columns_and_tensors: DLPack, MORE, "
        struct Series {
            /// In seconds,
            ///
            ///  all of them.
            #[dlpack(tensor)] times: Vec<i64>,
            /// No tensor's.
            #[dlpack(columns)] candles: Vec<Candle>,
            #[dlpack(columns)] trades: Arc<[Trade]>,
        }
    ";
    data_and_columns: DLPack, MORE, "
        struct Series { #[dlpack(data, owner, columns)] candles: Arc<[Candle]>, label: u8 }
    ";
    raw_identifiers: DLPack, MORE + 6, "
        #[dlpack(shape = [r#type, 2])]
        struct Raw { #[dlpack(data, tensor)] r#fn: Vec<f32>, r#type: usize }
    ";
    krate: DLPack, MORE, "
        #[dlpack(crate = crate::private::dl, shape = [n])]
        struct Rooted { #[dlpack(data)] items: Vec<f32>, n: usize }
    ";
    generics: DLPack, USUAL, "
        #[dlpack(bound = \"E: Element, Vec<E>: Send\")]
        struct Tensor<E: Copy + 'static, const N: usize = 2>
        where
            E: Clone,
        {
            #[dlpack(data)] items: Vec<E>,
            #[dlpack(shape)] shape: [usize; N],
        }
    ";
    scalar: DLPack, USUAL, "
        #[dlpack(shape = [])]
        struct Loss([f32; 1]);
    ";
    element: Element, MORE, "
        #[repr(C)]
        struct Point { x: f32, y: f32, z: f32 }
    ";
    element_transparent: Element, USUAL, "
        #[repr(transparent)]
        struct Pixel<T: Element>([T; 3]);
    ";
    record_packed: Record, USUAL + 50, "
        #[repr(C, packed)]
        struct Tick {
            price: f64,
            #[dlpack(nested)] at: [Place; 2]
        }
    ";
    record: Record, USUAL + 36, "
        #[repr(C)]
        struct Trade {
            #[doc = \"In euros.\"] price: f64,
            #[doc = concat!(\"not\", \"to be read\")] size: u32,
            r#type: u8,
            /// Nobody's.
            #[dlpack(skip)] pad: [u8; 3]
        }
    ";
    from_fields: FromDLPack, USUAL, "
        struct Image {
            #[dlpack(data)] pixels: Vec<f32>,
            #[dlpack(shape)] dims: [usize; 3],
            #[dlpack(device)] device: Device,
            #[dlpack(strides)] strides: Vec<i64>,
            #[dlpack(byte_offset)] start: usize,
            label: String,
        }
    ";
    from_list: FromDLPack, 52, "
        #[dlpack(shape = [height, self.width, 3, height], byte_strides = [linesize, _, _, _])]
        struct Frame { #[dlpack(data)] data: Vec<u8>, height: u32, width: u32, linesize: usize }
    ";
    from_list_of_strides: FromDLPack, USUAL, "
        #[dlpack(strides = [row, _])]
        struct Rows { #[dlpack(data)] items: Vec<f32>, #[dlpack(shape)] sizes: Vec<usize>, row: isize }
    ";
    from_tuple: FromDLPack, USUAL, "
        #[dlpack(shape = [self.1, self.2], order = \"F\", offset = self.3)]
        struct Matrix(#[dlpack(data)] Vec<f64>, usize, usize, usize);
    ";
    from_data_of_a_tensor: FromDLPack, USUAL, "
        struct Scan {
            #[dlpack(data)]
            image: Image,
            taken: u64,
        }
    ";
    from_newtype: FromDLPack, USUAL, "
        struct Wrapper(Vec<f32>);
    ";
    from_variants: FromDLPack, USUAL, "
        enum Audio {
            Mono(Vec<f32>),
            Both { rate: u32, #[dlpack(data)] samples: Vec<i16> },
            #[dlpack(skip)] Empty,
        }
    ";
}

#[test]
fn an_item_with_mistakes_still_has_its_traits() {
    let source = "#[dlpack(crate = ::dl)] struct Image { #[dlpack(tensor, dat)] pixels: Vec<f32> }";
    let show = |derive| {
        let tokens = crate::run_derive(
            derive,
            Root::Core,
            source.parse().expect("the test's own item lexes"),
        );
        print(&tokens)
    };
    let found =
        show(Derive::DLPack) + "\n" + &show(Derive::FromDLPack) + "\n" + &show(Derive::Record);
    expect_file!["../../tests/snapshots/stub.rs"].assert_eq(&page(source, &found));
}

/// Two fields may be stored anywhere; only a single field with both lists can be a `Layout`.
#[test]
fn lists_in_one_field_may_be_lent() {
    for (fields, may) in [
        ("#[dlpack(shape, strides)] b: Layout<2>", true),
        (
            "#[dlpack(shape)] b: [i64; 1], #[dlpack(strides)] c: [i64; 1]",
            false,
        ),
        ("#[dlpack(shape)] b: Layout<2>", false),
    ] {
        let source = format!("struct S {{ #[dlpack(data)] a: Vec<f32>, {fields} }}");
        let found = expand(Derive::DLPack, &source).expect("no mistake");
        assert_eq!(found.to_string().contains(". lists ("), may, "{source}");
    }
}

#[test]
fn no_stub_where_it_would_not_compile() {
    for source in [
        "struct View { #[dlpack(dat)] items: *const f32 }",
        "#[dlpack(crate = \"dl\")] struct Image(Vec<f32>);",
    ] {
        let tokens = crate::run_derive(
            Derive::DLPack,
            Root::Core,
            source.parse().expect("the test's own item lexes"),
        );
        assert!(!tokens.to_string().contains("impl"), "{tokens}");
    }
}

/// Shows that the assertions above can fail.
#[test]
fn the_checks_can_fail() {
    let tokens: TokenStream = "unsafe { Some(Self::NAMES) }".parse().expect("lexes");
    assert!(has_unsafe(&tokens));
    assert_eq!(unrooted(&tokens, ""), ["Some"]);
    assert_eq!(self_paths(&tokens), ["NAMES"]);
    let source = "struct Image { #[dlpack(data)] pixels: Vec<f32>, n: usize }";
    assert!(std::panic::catch_unwind(|| check(Derive::DLPack, source, 3, &[], false)).is_err());
    assert!(std::panic::catch_unwind(|| check(Derive::DLPack, source, USUAL, &[], true)).is_err());
}
