//! A protocol class for type stubs: objects with `__dlpack__`. PyO3 can only describe classes, so this writes what its macros
//! would.
#![expect(
    unsafe_code,
    reason = "defines symbols that PyO3's stub generator reads"
)]

use crate::{class::tensor::Tensor, hints::PRODUCER_ID};

/// PyO3's layout of a stub fragment: the length, followed by as many bytes of JSON.
#[repr(C)]
struct Fragment<const N: usize> {
    len: u32,
    text: [u8; N],
}

impl<const N: usize> Fragment<N> {
    const fn new(parts: &[&str]) -> Self {
        let (mut text, mut at, mut part) = ([0; N], 0, 0);
        while part < parts.len() {
            let bytes = parts[part].as_bytes();
            let mut byte = 0;
            while byte < bytes.len() {
                text[at] = bytes[byte];
                (at, byte) = (at + 1, byte + 1);
            }
            part += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a few hundred bytes")]
        let len = N as u32;
        Self { len, text }
    }
}

const fn len(parts: &[&str]) -> usize {
    let (mut len, mut part) = (0, 0);
    while part < parts.len() {
        len += parts[part].len();
        part += 1;
    }
    len
}

macro_rules! fragments {
    ($($symbol:ident: $($part:expr),+;)+) => {$(
        // The names are unique, and only PyO3's stub generator reads the symbols.
        #[unsafe(no_mangle)]
        #[used]
        static $symbol: Fragment<{ len(&[$($part),+]) }> = Fragment::new(&[$($part),+]);
    )+};
}

const ITSELF: &str = r#"","arguments":{"posonlyargs":[{"name":"self"}]},"returns":"#;
const INT: &str = r#"{"type":"name","id":"int"}"#;

fragments! {
    PYO3_INTROSPECTION_1_DLPACK_PRODUCER:
        r#"{"type":"class","name":"_Producer","id":""#, PRODUCER_ID,
        r#"","parent":""#, Tensor::_PYO3_INTROSPECTION_ID,
        r#"","doc":"Whatever has the two methods of DLPack: an array of any library.","bases":"#,
        r#"[{"type":"attribute","value":{"type":"name","id":"typing"},"attr":"Protocol"}]}"#;
    PYO3_INTROSPECTION_1_DLPACK_PRODUCER_DLPACK:
        r#"{"type":"function","name":"__dlpack__","parent":""#, PRODUCER_ID, ITSELF,
        r#"{"type":"name","id":"object"}}"#;
    PYO3_INTROSPECTION_1_DLPACK_PRODUCER_DEVICE:
        r#"{"type":"function","name":"__dlpack_device__","parent":""#, PRODUCER_ID, ITSELF,
        r#"{"type":"subscript","value":{"type":"name","id":"tuple"},"slice":{"type":"tuple","elts":["#, INT, ",", INT, "]}}}";
}
