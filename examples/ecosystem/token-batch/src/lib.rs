//! A batch of tokenized texts as three arrays: what a model is fed, without a list of Python's on the way.
//!
//! `tokenizers` keeps a vector for each text. One copy puts those of a batch behind each other, and that is the last one:
//! NumPy and torch look at the batch itself.
//!
//! ```text
//! cd examples/ecosystem/token-batch && maturin develop --release && python texts.py
//! ```
#![forbid(unsafe_code)]

use dlpack_pyo3::{DLPack, dlpack_pymethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::normalizers::Lowercase;
use tokenizers::pre_tokenizers::whitespace::Whitespace;
use tokenizers::{Encoding, PaddingParams, Tokenizer};

/// Texts as numbers, a row for each, as long as the longest: each attribute is an array.
#[pyclass(frozen, module = "token_batch")]
#[derive(DLPack)]
struct Batch {
    /// Which word.
    #[dlpack(tensor(shape = dims))]
    ids: Vec<i64>,
    /// Whether there is one.
    #[dlpack(tensor(shape = dims))]
    mask: Vec<bool>,
    /// Where it begins and ends in its text, in characters.
    #[dlpack(tensor(shape = dims))]
    offsets: Vec<[u32; 2]>,
    dims: [usize; 2],
}

#[dlpack_pymethods(arrays = "numpy")]
#[pymethods]
impl Batch {}

impl From<Vec<Encoding>> for Batch {
    fn from(texts: Vec<Encoding>) -> Self {
        let ids = texts.iter().flat_map(Encoding::get_ids);
        let mask = texts.iter().flat_map(Encoding::get_attention_mask);
        let offsets = texts.iter().flat_map(Encoding::get_offsets);
        let place = |&(from, to): &(usize, usize)| [from as u32, to as u32];
        Self {
            ids: ids.map(|&id| id.into()).collect(),
            mask: mask.map(|&is| is == 1).collect(),
            offsets: offsets.map(place).collect(),
            dims: [texts.len(), texts.first().map_or(0, Encoding::len)],
        }
    }
}

/// A tokenizer that knows a few words.
#[pyclass(frozen, module = "token_batch")]
struct Words(Tokenizer);

#[pymethods]
impl Words {
    /// The words get the numbers from 2 on; 0 is for padding, and 1 for a word that is not among them.
    #[new]
    fn new(words: Vec<String>) -> PyResult<Self> {
        let special = ["[PAD]", "[UNK]"].map(String::from);
        let words = special.into_iter().chain(words);
        let model = WordLevel::builder()
            .vocab(words.zip(0..).collect())
            .unk_token("[UNK]".into())
            .build();
        let mut tokenizer = Tokenizer::new(model.map_err(failed)?);
        tokenizer.with_normalizer(Some(Lowercase)).map_err(failed)?;
        tokenizer.with_pre_tokenizer(Some(Whitespace {}));
        tokenizer.with_padding(Some(PaddingParams::default()));
        Ok(Self(tokenizer))
    }

    /// Tokenizes many texts on all processors, while Python runs on.
    fn batch(&self, py: Python<'_>, texts: Vec<String>) -> PyResult<Batch> {
        let texts = py.detach(|| self.0.encode_batch_char_offsets(texts, true));
        texts.map(Batch::from).map_err(failed)
    }
}

fn failed(error: tokenizers::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// What `import token_batch` gets from Rust.
#[pymodule(name = "token_batch", gil_used = false)]
mod module {
    #[pymodule_export]
    use super::{Batch, Words};
}
