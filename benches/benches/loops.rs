//! The cost of loops over an imported array: reads, writes in place and reductions, compared with the same loops over a slice or
//! by ndarray.
//!
//! The memory of the array is shared, like that of every array from Python. Each row and its peer take turns, call by call. The
//! columns are medians, and the median of the ratios.

use core::hint::black_box;
use std::time::Instant;

use dlpack_core::array::{View, ViewMut};
use dlpack_core::element::Plain;
use dlpack_core::{DLPack, Managed, SharedBuffer};
use ndarray::{ArrayD, ArrayView2, Zip};

type Row<'a> = &'a mut dyn FnMut(String, &mut dyn FnMut(), &mut dyn FnMut());

fn main() {
    let only: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    println!("{:<44} {:>10} {:>10} {:>7}", "", "ns", "peer, ns", "ratio");
    let mut row = |name: String, ours: &mut dyn FnMut(), peer: &mut dyn FnMut()| {
        if only.iter().all(|word| name.contains(word)) {
            let [ours, peer, ratio] = measure(ours, peer);
            println!("{name:<44} {ours:>10.0} {peer:>10.0} {ratio:>7.2}");
        }
    };
    for (bytes, size) in [
        (256, "256 B"),
        (4 << 10, "4 KB"),
        (64 << 10, "64 KB"),
        (1 << 20, "1 MB"),
        (4 << 20, "4 MB"),
        (16 << 20, "16 MB"),
    ] {
        in_place(bytes, size, &mut row);
        collected(bytes, size, &mut row);
        reduced(bytes, size, &mut row);
    }
    rows(&mut row);
    strided(&mut row);
}

/// Writes to contiguous memory.
fn in_place(bytes: usize, size: &str, row: Row<'_>) {
    let len = bytes / 4;
    let mut slice = vec![0.5_f32; len];
    let other = slice.clone();
    let mut ours = view_mut(&slice, [len]);
    let change = |x: f32| x * 0.5 + 1.0;
    row(
        format!("update, f32, {size}"),
        &mut || black_box(&mut ours).update(change),
        &mut || {
            black_box(&mut slice[..])
                .iter_mut()
                .for_each(|x| *x = change(*x))
        },
    );
    row(
        format!("fill, f32, {size}"),
        &mut || black_box(&mut ours).fill(black_box(0.5)),
        &mut || black_box(&mut slice[..]).fill(black_box(0.5)),
    );
    row(
        format!("copy_from_slice, f32, {size}"),
        &mut || (black_box(&mut ours).copy_from_slice(black_box(&other))).expect("as many"),
        &mut || black_box(&mut slice[..]).copy_from_slice(black_box(&other)),
    );
    let from = view(&other, [len]);
    row(
        format!("copy_from, f32, {size}"),
        &mut || {
            black_box(&mut ours)
                .copy_from(black_box(&from))
                .expect("as many")
        },
        &mut || black_box(&mut slice[..]).copy_from_slice(black_box(&other)),
    );
    row(
        format!("set in a loop, f32, {size}"),
        &mut || {
            let ours = black_box(&mut ours);
            for i in 0..ours.len() {
                ours.set([i], i as f32);
            }
        },
        &mut || {
            let slice = black_box(&mut slice[..]);
            #[expect(clippy::needless_range_loop, reason = "compared with `set`")]
            for i in 0..slice.len() {
                slice[i] = i as f32;
            }
        },
    );
    let mut slice = vec![7_u8; bytes];
    let mut ours = view_mut(&slice, [bytes]);
    row(
        format!("update, u8, {size}"),
        &mut || black_box(&mut ours).update(|x| 255 - x),
        &mut || {
            black_box(&mut slice[..])
                .iter_mut()
                .for_each(|x| *x = 255 - *x)
        },
    );
}

/// Reductions to one number, compared with ndarray's methods and loops over a slice; `benches/python` compares with NumPy.
fn reduced(bytes: usize, size: &str, row: Row<'_>) {
    let slice: Vec<u8> = (0..=250).cycle().take(bytes).collect();
    let ours = view(&slice, [bytes]);
    row(
        format!("max(), u8, {size}"),
        &mut || _ = black_box(black_box(&ours).max()),
        &mut || _ = black_box(black_box(&slice).iter().copied().max()),
    );
    row(
        format!("iter().max(), u8, {size}"),
        &mut || _ = black_box(black_box(&ours).iter().max()),
        &mut || _ = black_box(black_box(&slice).iter().copied().max()),
    );
    row(
        format!("sum(), u8, {size}"),
        &mut || _ = black_box(black_box(&ours).sum()),
        &mut || _ = black_box(black_box(&slice).iter().map(|&x| u64::from(x)).sum::<u64>()),
    );
    let slice = vec![0.5_f32; bytes / 4];
    let ours = view(&slice, [slice.len()]);
    let peer = ArrayD::from_shape_vec(vec![slice.len()], slice.clone()).expect("one axis");
    row(
        format!("sum(), f32, {size}"),
        &mut || _ = black_box(black_box(&ours).sum()),
        &mut || _ = black_box(black_box(&peer).sum()),
    );
    row(
        format!("max(), f32, {size}"),
        &mut || _ = black_box(black_box(&ours).max()),
        &mut || _ = black_box(black_box(&slice).iter().copied().fold(f32::MIN, f32::max)),
    );
    let numbers: Vec<i32> = (0..).take(slice.len()).collect();
    let ours_i32 = view(&numbers, [numbers.len()]);
    row(
        format!("iter().sum(), f32, {size}"),
        &mut || _ = black_box(black_box(&ours).iter().sum::<f32>()),
        &mut || _ = black_box(black_box(&slice).iter().sum::<f32>()),
    );
    row(
        format!("iter().max(), i32, {size}"),
        &mut || _ = black_box(black_box(&ours_i32).iter().max()),
        &mut || _ = black_box(black_box(&numbers).iter().copied().max()),
    );
    let other = view(&slice, [slice.len()]);
    let peer = peer
        .into_dimensionality::<ndarray::Ix1>()
        .expect("one axis");
    let second = peer.clone();
    row(
        format!("dot(), f32, {size}"),
        &mut || _ = black_box(black_box(&ours).dot(black_box(&other))),
        &mut || _ = black_box(black_box(&peer).dot(black_box(&second))),
    );
}

/// A new vector of results, compared with ndarray's `mapv`.
fn collected(bytes: usize, size: &str, row: Row<'_>) {
    let slice = vec![7_u8; bytes];
    let ours = view(&slice, [bytes]);
    let peer = ArrayD::from_shape_vec(vec![bytes], slice).expect("one axis");
    row(
        format!("iter().map().collect(), u8, {size}"),
        &mut || {
            drop(black_box(
                black_box(&ours)
                    .iter()
                    .map(|x| 255 - x)
                    .collect::<Vec<u8>>(),
            ))
        },
        &mut || drop(black_box(black_box(&peer).mapv(|x| 255 - x))),
    );
    row(
        format!("iter().map().collect(), u8 to f32, {size}"),
        &mut || {
            drop(black_box(
                black_box(&ours).iter().map(f32::from).collect::<Vec<f32>>(),
            ))
        },
        &mut || drop(black_box(black_box(&peer).mapv(f32::from))),
    );
    let slice = vec![0.5_f32; bytes / 4];
    let ours = view(&slice, [slice.len()]);
    let peer = ArrayD::from_shape_vec(vec![slice.len()], slice).expect("one axis");
    row(
        format!("iter().map().collect(), f32, {size}"),
        &mut || {
            drop(black_box(
                black_box(&ours)
                    .iter()
                    .map(|x| x * 0.5 + 1.0)
                    .collect::<Vec<f32>>(),
            ))
        },
        &mut || drop(black_box(black_box(&peer).mapv(|x| x * 0.5 + 1.0))),
    );
}

/// Loops over rows, compared with ndarray over its own memory.
fn rows(row: Row<'_>) {
    for (height, width) in [(4096, 16), (1024, 256)] {
        let slice = vec![0.5_f32; height * width];
        let mut ours = view_mut(&slice, [height, width]);
        let mut peer = ndarray::Array2::from_shape_vec((height, width), slice).expect("two axes");
        row(
            format!("rows_mut().update(), {height} x {width}"),
            &mut || {
                for mut row in black_box(&mut ours).rows_mut() {
                    row.update(|x| x * 0.5 + 1.0);
                }
            },
            &mut || {
                for mut row in black_box(&mut peer).rows_mut() {
                    row.map_inplace(|x| *x = *x * 0.5 + 1.0);
                }
            },
        );
        row(
            format!("rows().iter().sum(), {height} x {width}"),
            &mut || {
                for row in black_box(&ours).rows() {
                    black_box(row.iter().sum::<f32>());
                }
            },
            &mut || {
                for row in black_box(&peer).rows() {
                    black_box(row.iter().sum::<f32>());
                }
            },
        );
        row(
            format!("at([i, j]), {height} x {width}"),
            &mut || {
                let ours = black_box(&ours);
                let [height, width] = ours.shape();
                let mut sum = 0.0;
                for i in 0..height {
                    for j in 0..width {
                        sum += ours.at([i, j]);
                    }
                }
                black_box(sum);
            },
            &mut || {
                let peer = black_box(&peer);
                let (height, width) = peer.dim();
                let mut sum = 0.0;
                for i in 0..height {
                    for j in 0..width {
                        sum += peer[[i, j]];
                    }
                }
                black_box(sum);
            },
        );
        row(
            format!("set([i, j]), {height} x {width}"),
            &mut || {
                let ours = black_box(&mut ours);
                let [height, width] = ours.shape();
                for i in 0..height {
                    for j in 0..width {
                        ours.set([i, j], (i + j) as f32);
                    }
                }
            },
            &mut || {
                let peer = black_box(&mut peer);
                let (height, width) = peer.dim();
                for i in 0..height {
                    for j in 0..width {
                        peer[[i, j]] = (i + j) as f32;
                    }
                }
            },
        );
    }
}

/// Other strides, compared with ndarray's views.
fn strided(row: Row<'_>) {
    let (height, width) = (512, 1024);
    let slice: Vec<f32> = (0..height * width).map(|i| i as f32).collect();
    let mut ours = view_mut(&slice, [height, width]);
    let second = view(&slice, [height, width / 2, 2]);
    let mut pairs = view_mut(&slice, [height, width / 2, 2]);
    let second = second.index(2, 0).expect("of two");
    let mut peer =
        ndarray::Array2::from_shape_vec((height, width), slice.clone()).expect("two axes");
    let steps = slice.clone();
    let steps = ArrayView2::from_shape((height, width), &steps).expect("two axes");
    let steps = steps.slice(ndarray::s![.., ..;2]);
    row(
        "iter().sum(), transposed".into(),
        &mut || _ = black_box(black_box(&ours).transpose().iter().sum::<f32>()),
        &mut || _ = black_box(black_box(&peer).t().iter().sum::<f32>()),
    );
    row(
        "iter().sum(), a[:, ::2]".into(),
        &mut || _ = black_box(black_box(&second).iter().sum::<f32>()),
        &mut || _ = black_box(black_box(&steps).iter().sum::<f32>()),
    );
    row(
        "sum(), transposed".into(),
        &mut || _ = black_box(black_box(&ours).transpose().sum()),
        &mut || _ = black_box(black_box(&peer).t().sum()),
    );
    row(
        "sum(), a[:, ::2]".into(),
        &mut || _ = black_box(black_box(&second).sum()),
        &mut || _ = black_box(black_box(&steps).sum()),
    );
    row(
        "update, transposed".into(),
        &mut || {
            let mut turned = black_box(&mut ours).permute_mut(&[1, 0]).expect("two axes");
            turned.update(|x| x * 0.5 + 1.0);
        },
        &mut || {
            let mut turned = black_box(&mut peer).view_mut().reversed_axes();
            turned.map_inplace(|x| *x = *x * 0.5 + 1.0);
        },
    );
    row(
        "update, a[:, ::2]".into(),
        &mut || {
            let mut steps = black_box(&mut pairs).index_mut(2, 0).expect("of two");
            steps.update(|x| x * 0.5 + 1.0);
        },
        &mut || {
            let mut steps = black_box(&mut peer).slice_mut(ndarray::s![.., ..;2]);
            steps.map_inplace(|x| *x = *x * 0.5 + 1.0);
        },
    );
    row(
        "fill, transposed".into(),
        &mut || {
            let mut turned = black_box(&mut ours).permute_mut(&[1, 0]).expect("two axes");
            turned.fill(black_box(0.5));
        },
        &mut || {
            let mut turned = black_box(&mut peer).view_mut().reversed_axes();
            turned.fill(black_box(0.5));
        },
    );
    let a = view(&slice, [height, width]);
    let b = ArrayView2::from_shape((height, width), &slice).expect("two axes");
    let turned = view(&slice, [width, height]);
    let turned_peer = ArrayView2::from_shape((width, height), &slice).expect("two axes");
    row(
        "copy_from, transposed".into(),
        &mut || {
            black_box(&mut ours)
                .copy_from(&black_box(&turned).transpose())
                .expect("one shape")
        },
        &mut || black_box(&mut peer).assign(&black_box(turned_peer).reversed_axes()),
    );
    row(
        "for (x, y) in a.zip(&b), sum of products".into(),
        &mut || {
            let mut sum = 0.0;
            for (x, y) in black_box(&a).zip(black_box(&ours)).expect("one shape") {
                sum += x * y;
            }
            black_box(sum);
        },
        &mut || {
            let mut sum = 0.0;
            Zip::from(black_box(b))
                .and(black_box(&peer))
                .for_each(|x, y| sum += x * y);
            black_box(sum);
        },
    );
    row(
        "a.zip(&b).map().sum()".into(),
        &mut || {
            let pairs = black_box(&a).zip(black_box(&ours)).expect("one shape");
            black_box(pairs.map(|(x, y)| x * y).sum::<f32>());
        },
        &mut || {
            let mut sum = 0.0;
            Zip::from(black_box(b))
                .and(black_box(&peer))
                .for_each(|x, y| sum += x * y);
            black_box(sum);
        },
    );
    row(
        "a.zip(&b.transpose()).map().sum()".into(),
        &mut || {
            let other = black_box(&turned).transpose();
            let pairs = black_box(&a).zip(&other).expect("one shape");
            black_box(pairs.map(|(x, y)| x * y).sum::<f32>());
        },
        &mut || {
            let mut sum = 0.0;
            Zip::from(black_box(b))
                .and(black_box(turned_peer).reversed_axes())
                .for_each(|x, y| sum += x * y);
            black_box(sum);
        },
    );
    row(
        "for x in &a, f32".into(),
        &mut || {
            let mut sum = 0.0;
            for x in black_box(&a) {
                sum += x;
            }
            black_box(sum);
        },
        &mut || {
            let mut sum = 0.0;
            for &x in &black_box(b) {
                sum += x;
            }
            black_box(sum);
        },
    );
    let line = view(&slice[..width], [width]);
    let line_peer = ndarray::ArrayView1::from(&slice[..width]);
    row(
        "broadcast_to().zip(&b).map().sum()".into(),
        &mut || {
            let lines = black_box(&line)
                .broadcast_to([height, width])
                .expect("one width");
            let pairs = lines.zip(black_box(&a)).expect("one shape");
            black_box(pairs.map(|(x, y)| x * y).sum::<f32>());
        },
        &mut || {
            let lines = black_box(&line_peer).broadcast((height, width));
            let mut sum = 0.0;
            Zip::from(lines.expect("one width"))
                .and(black_box(&b))
                .for_each(|x, y| sum += x * y);
            black_box(sum);
        },
    );
    row(
        "zip of two views, sum of products".into(),
        &mut || {
            let pairs = black_box(&a).iter().zip(black_box(&ours).iter());
            black_box(pairs.map(|(x, y)| x * y).sum::<f32>());
        },
        &mut || {
            let mut sum = 0.0;
            Zip::from(black_box(b))
                .and(black_box(&peer))
                .for_each(|x, y| sum += x * y);
            black_box(sum);
        },
    );
}

/// An array as Python would pass it: its producer keeps it, and may write it.
fn shared<T: Plain + Clone, const N: usize>(slice: &[T], shape: [usize; N]) -> Managed
where
    Exported<T, N>: DLPack,
{
    let data = SharedBuffer::copied_from(slice).expect("memory");
    std::sync::Arc::new(Exported { data, shape })
        .to_dlpack()
        .expect("inside the data")
}

fn view<T: Plain + Clone, const N: usize>(slice: &[T], shape: [usize; N]) -> View<T, [i64; N]>
where
    [i64; N]: dlpack_core::array::Rank,
{
    View::new(shared(slice, shape)).expect("an array")
}

fn view_mut<T: Plain + Clone, const N: usize>(
    slice: &[T],
    shape: [usize; N],
) -> ViewMut<T, [i64; N]>
where
    [i64; N]: dlpack_core::array::Rank,
{
    ViewMut::new(shared(slice, shape)).expect("an array")
}

/// An array over a shared buffer.
#[derive(DLPack)]
struct Exported<T: Plain, const N: usize> {
    #[dlpack(data)]
    data: SharedBuffer<T>,
    #[dlpack(shape)]
    shape: [usize; N],
}

/// Medians of the nanoseconds of both, and of their ratio.
fn measure(ours: &mut dyn FnMut(), peer: &mut dyn FnMut()) -> [f64; 3] {
    const ROUNDS: usize = 31;
    let clock = |call: &mut dyn FnMut(), turns: u32| {
        let start = Instant::now();
        for _ in 0..turns {
            call();
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(turns)
    };
    peer();
    // About a millisecond for each round.
    let mut turns = 1;
    while turns < 20_000 && clock(ours, turns) * f64::from(turns) < 1e6 {
        turns *= 2;
    }
    let mut rounds = [[0.0; 3]; ROUNDS];
    for (round, times) in rounds.iter_mut().enumerate() {
        // The second of a pair finds the caches that the first left, so they take turns.
        let (a, b) = if round % 2 == 0 {
            let a = clock(ours, turns);
            (a, clock(peer, turns))
        } else {
            let b = clock(peer, turns);
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
