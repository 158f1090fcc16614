//! What the targets share: the model and the hand-made tensors of core's own tests, and a reader of bytes.

#[path = "../../dlpack-core/tests/forgery/mod.rs"]
pub mod forgery;
#[path = "../../dlpack-core/tests/dice/mod.rs"]
pub mod dice;
#[path = "../../dlpack-core/tests/made/mod.rs"]
pub mod made;
#[path = "../../dlpack-core/tests/oracle/mod.rs"]
pub mod oracle;

/// Makes values of the fuzzer's bytes; zeros once they are used up.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    pub fn word(&mut self) -> i64 {
        i64::from_le_bytes(core::array::from_fn(|_| self.byte()))
    }

    /// Mostly a small number; every so often one that overflows something.
    pub fn number(&mut self) -> i64 {
        match self.byte() {
            0xff => self.word(),
            0xfe => i64::MAX - i64::from(self.byte()),
            0xfd => -i64::MAX + i64::from(self.byte()),
            0xfc => 1 << (self.byte() % 63),
            byte => i64::from(byte.cast_signed() / 2),
        }
    }

    pub fn numbers(&mut self, most: u8) -> Vec<i64> {
        let len = self.byte() % (most + 1);
        (0..len).map(|_| self.number()).collect()
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }
}

/// The places of all items, in items from the first one, or `None` where one lies outside of
/// `low..high` or there are more than `most`.
pub fn places(
    shape: &[i64],
    strides: &[i64],
    low: i64,
    high: i64,
    most: usize,
) -> Option<Vec<i64>> {
    if shape.contains(&0) {
        return Some(Vec::new());
    }
    let mut places = vec![0_i128];
    for (&extent, &stride) in shape.iter().zip(strides) {
        if places.len().checked_mul(usize::try_from(extent).ok()?)? > most {
            return None;
        }
        let steps = || (0..i128::from(extent)).map(|index| index * i128::from(stride));
        places = (places.iter())
            .flat_map(|at| steps().map(move |step| at.saturating_add(step)))
            .collect();
    }
    (places.into_iter())
        .map(|place| {
            i64::try_from(place)
                .ok()
                .filter(|place| (low..high).contains(place))
        })
        .collect()
}
