//! The cost of reading an imported array or a shared buffer, compared with the same loops over a slice.
//!
//! Other code may write the array, like every array from Python. Each row and its floor take turns, call by call. The output has
//! their medians, and the median of their ratio.

use core::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use dlpack_core::element::Plain;
use dlpack_core::{DLPack, Managed, SharedBuffer};

/// An array over the buffer, as in an import.
#[derive(DLPack)]
#[dlpack(shape = [self.shape[0], self.shape[1]], strides = [self.strides[0], self.strides[1]])]
struct Array<T: Plain> {
    #[dlpack(data)]
    data: SharedBuffer<T>,
    shape: [usize; 2],
    strides: [usize; 2],
}

/// An array over memory that no other code writes.
#[derive(DLPack)]
#[dlpack(shape = [self.shape[0], self.shape[1]], strides = [self.strides[0], self.strides[1]])]
struct Alone {
    #[dlpack(data)]
    data: Vec<f32>,
    shape: [usize; 2],
    strides: [usize; 2],
}

fn main() {
    let only: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    println!("{:<44} {:>10} {:>10} {:>7}", "", "ns", "slice, ns", "ratio");
    let mut row = |name: String, ours: &mut dyn FnMut(), floor: &mut dyn FnMut()| {
        if only.iter().all(|word| name.contains(word)) {
            let [ours, floor, ratio] = measured(ours, floor);
            println!("{name:<44} {ours:>10.0} {floor:>10.0} {ratio:>7.2}");
        }
    };
    for (bytes, size) in [
        (4 << 10, "4 KB"),
        (64 << 10, "64 KB"),
        (1 << 20, "1 MB"),
        (16 << 20, "16 MB"),
    ] {
        lists::<u8>("u8", bytes, size, &mut row);
        lists::<f32>("f32", bytes, size, &mut row);
        lists::<f64>("f64", bytes, size, &mut row);
        reduced(bytes, size, &mut row);
        strided(bytes, size, &mut row);
    }
    buffers(&mut row);
}

type Row<'a> = &'a mut dyn FnMut(String, &mut dyn FnMut(), &mut dyn FnMut());

/// All elements into a vector.
fn lists<T: Plain + Clone + From<u8>>(kind: &str, bytes: usize, size: &str, row: Row<'_>) {
    let slice = vec![T::from(1); bytes / size_of::<T>()];
    let import = imported(&slice, [1, slice.len()], [slice.len(), 1]);
    row(
        format!("to_vec, {kind}, {size}"),
        &mut || drop(black_box(import.view().to_vec::<T>().expect("readable"))),
        &mut || drop(black_box(black_box(&slice).clone())),
    );
}

/// All elements into one number.
fn reduced(bytes: usize, size: &str, row: Row<'_>) {
    let slice = vec![0.5_f32; bytes / 4];
    let import = imported(&slice, [1, slice.len()], [slice.len(), 1]);
    row(
        format!("iter().sum(), f32, {size}"),
        &mut || _ = black_box(import.view().iter::<f32>().expect("readable").sum::<f32>()),
        &mut || _ = black_box(black_box(&slice).iter().sum::<f32>()),
    );
    row(
        format!("for item in iter(), f32, {size}"),
        &mut || {
            let mut sum = 0.0;
            for item in import.view().iter::<f32>().expect("readable") {
                sum += item;
            }
            black_box(sum);
        },
        &mut || _ = black_box(black_box(&slice).iter().sum::<f32>()),
    );
    let slice: Vec<u8> = (0..=250).cycle().take(bytes).collect();
    let import = imported(&slice, [1, slice.len()], [slice.len(), 1]);
    row(
        format!("iter().max(), u8, {size}"),
        &mut || _ = black_box(import.view().iter::<u8>().expect("readable").max()),
        &mut || _ = black_box(black_box(&slice).iter().copied().fold(0, u8::max)),
    );
}

/// A transposed array and every second column of one, compared with copies of unshared memory.
fn strided(bytes: usize, size: &str, row: Row<'_>) {
    let items = bytes / 4;
    let width = 1 << (items.ilog2() / 2);
    let height = items / width;
    let slice = vec![0.5_f32; 2 * items];
    for (name, shape, strides) in [
        ("transposed", [width, height], [1, width]),
        ("a[:, ::2]", [height, width], [2 * width, 2]),
    ] {
        let import = imported(&slice, shape, strides);
        let alone = Alone {
            data: slice.clone(),
            shape,
            strides,
        };
        let alone = alone.into_dlpack().expect("inside the data");
        let to_vec = |tensor: &Managed| tensor.view().to_vec::<f32>().expect("readable");
        row(
            format!("to_vec, {name}, {size}; to one not shared"),
            &mut || drop(black_box(to_vec(&import))),
            &mut || drop(black_box(to_vec(&alone))),
        );
        row(
            format!("iter().sum(), {name}, {size}; to one not shared"),
            &mut || _ = black_box(import.view().iter::<f32>().expect("readable").sum::<f32>()),
            &mut || _ = black_box(alone.view().iter::<f32>().expect("readable").sum::<f32>()),
        );
    }
}

/// Typical operations of a simulation on its observations.
fn buffers(row: Row<'_>) {
    let slice = vec![0.5_f32; 1088];
    let mut vector = slice.clone();
    let buffer = SharedBuffer::copied_from(&slice).expect("memory");
    row(
        "SharedBuffer::copy_from_slice, 1088 f32".into(),
        &mut || black_box(&buffer).copy_from_slice(black_box(&slice)),
        &mut || black_box(&mut vector).copy_from_slice(black_box(&slice)),
    );
    row(
        "SharedBuffer::to_vec, 1088 f32".into(),
        &mut || drop(black_box(black_box(&buffer).to_vec())),
        &mut || drop(black_box(black_box(&slice).clone())),
    );
}

/// An array as Python would pass it: its producer keeps it, and may write it.
fn imported<T: Plain + Clone>(slice: &[T], shape: [usize; 2], strides: [usize; 2]) -> Managed {
    let data = SharedBuffer::copied_from(slice).expect("memory");
    let array = Array {
        data,
        shape,
        strides,
    };
    Arc::new(array).to_dlpack().expect("inside the data")
}

/// Medians of the nanoseconds of both, and of their ratio.
fn measured(ours: &mut dyn FnMut(), floor: &mut dyn FnMut()) -> [f64; 3] {
    const ROUNDS: usize = 31;
    let clock = |call: &mut dyn FnMut(), turns: u32| {
        let start = Instant::now();
        for _ in 0..turns {
            call();
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(turns)
    };
    floor();
    // Some milliseconds for each round.
    let mut turns = 1;
    while turns < 20_000 && clock(ours, turns) * f64::from(turns) < 1e6 {
        turns *= 2;
    }
    let mut rounds = [[0.0; 3]; ROUNDS];
    for (round, times) in rounds.iter_mut().enumerate() {
        // The second of a pair finds the caches that the first left, so they take turns.
        let (a, b) = if round % 2 == 0 {
            let a = clock(ours, turns);
            (a, clock(floor, turns))
        } else {
            let b = clock(floor, turns);
            (clock(ours, turns), b)
        };
        *times = [a, b, a / b];
    }
    core::array::from_fn(|column| {
        let mut values = rounds.map(|times| times[column]);
        values.sort_by(f64::total_cmp);
        values[ROUNDS / 2]
    })
}
