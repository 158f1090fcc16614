//! The cost of lending a struct's memory to a function over slices: a 1080p image is flipped into a new one, compared with the
//! same for `Vec`s.
//!
//! The two take turns, call by call; the columns are medians, and the median of the ratios. Each call frees the image of the call
//! before, like a class whose old result is dropped.

use core::hint::black_box;
use std::time::Instant;

use dlpack_core::{Error, SharedBuffer};

const WIDTH: usize = 1920;
const HEIGHT: usize = 1080;
const CHANNELS: usize = 3;
const ROUNDS: usize = 201;

/// Stands for a function of another crate that takes slices.
#[inline(never)]
fn flip_vertically(from: &[u8], to: &mut [u8]) {
    let row = WIDTH * CHANNELS;
    for (from, to) in from.chunks_exact(row).rev().zip(to.chunks_exact_mut(row)) {
        to.copy_from_slice(from);
    }
}

/// Like [`flip_vertically`], for the columns.
#[inline(never)]
fn flip_horizontally(from: &[u8], to: &mut [u8]) {
    let row = WIDTH * CHANNELS;
    for (from, to) in from.chunks_exact(row).zip(to.chunks_exact_mut(row)) {
        let pixels = from.chunks_exact(CHANNELS).rev();
        for (from, to) in pixels.zip(to.chunks_exact_mut(CHANNELS)) {
            to.copy_from_slice(from);
        }
    }
}

struct Kept {
    pixels: SharedBuffer<u8>,
}

impl Kept {
    fn flipped(&mut self, flip: fn(&[u8], &mut [u8])) -> Result<Self, Error> {
        let from = self.pixels.try_as_slice()?;
        let pixels = SharedBuffer::filled(from.len(), |to| flip(from, to))?;
        Ok(Self { pixels })
    }

    /// The method without lent slices: copies, flips, and adopts the result.
    fn flipped_copy(&self, flip: fn(&[u8], &mut [u8])) -> Self {
        let from = self.pixels.to_vec();
        let mut to = vec![0; from.len()];
        flip(&from, &mut to);
        let pixels = SharedBuffer::from(to);
        Self { pixels }
    }
}

fn main() {
    println!("{:<36} {:>10} {:>10} {:>7}", "", "us", "Vec, us", "ratio");
    let pixels: Vec<u8> = (0..=250).cycle().take(WIDTH * HEIGHT * CHANNELS).collect();
    for (name, flip) in [
        ("flip_v", flip_vertically as fn(&[u8], &mut [u8])),
        ("flip_h", flip_horizontally),
    ] {
        let mut kept = Kept {
            pixels: SharedBuffer::copied_from(&pixels).expect("memory"),
        };
        let mut peer = || {
            let from = black_box(&pixels);
            let mut to = vec![0; from.len()];
            flip(from, &mut to);
            black_box(to);
        };
        let [ours, vec, ratio] = measure(
            &mut || drop(black_box(black_box(&mut kept).flipped(flip))),
            &mut peer,
        );
        println!("{name:<36} {ours:>10.0} {vec:>10.0} {ratio:>7.2}");
        let [ours, vec, ratio] = measure(
            &mut || drop(black_box(black_box(&kept).flipped_copy(flip))),
            &mut peer,
        );
        let name = format!("{name}, through a copy");
        println!("{name:<36} {ours:>10.0} {vec:>10.0} {ratio:>7.2}");
    }
}

/// Medians of the microseconds of both, and of their ratio.
fn measure(ours: &mut dyn FnMut(), peer: &mut dyn FnMut()) -> [f64; 3] {
    let clock = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        call();
        start.elapsed().as_secs_f64() * 1e6
    };
    let mut rounds = [[0.0; 3]; ROUNDS];
    for (round, times) in rounds.iter_mut().enumerate() {
        // The second of a pair finds the caches that the first left, so they take turns.
        let (a, b) = if round % 2 == 0 {
            let a = clock(ours);
            (a, clock(peer))
        } else {
            let b = clock(peer);
            (clock(ours), b)
        };
        *times = [a, b, a / b];
    }
    core::array::from_fn(|column| {
        let mut values = rounds.map(|times| times[column]);
        values.sort_by(f64::total_cmp);
        values[ROUNDS / 2]
    })
}
