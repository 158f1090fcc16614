//! [`Dice`]: the random numbers of the tests.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each user of this module uses only some of it"
)]

// Unit tests of a `no_std` crate use this module too.
use std::{format, string::String};

/// Pseudo-random numbers (splitmix64): the same seed, the same cases.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, sides: usize) -> usize {
        let sides = u64::try_from(sides).expect("fits");
        usize::try_from(self.draw() % sides).expect("fits")
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = low.abs_diff(high) + 1;
        low + i64::try_from(self.draw() % span).expect("a small span")
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Runs this many cases, each with random numbers of the next seed. Returns how many panicked, and the first panic.
pub fn play(seed: u64, cases: u64, mut case: impl FnMut(&mut Dice)) -> (u64, Option<String>) {
    let (mut bad, mut first) = (0, None);
    for number in 0..cases {
        let seed = seed.wrapping_add(number);
        let case = core::panic::AssertUnwindSafe(|| case(&mut Dice(seed)));
        let Err(payload) = std::panic::catch_unwind(case) else {
            continue;
        };
        bad += 1;
        first.get_or_insert_with(|| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or(payload.downcast_ref::<&str>().copied());
            format!("seed {seed}: {}", text.unwrap_or("a panic"))
        });
    }
    (bad, first)
}
