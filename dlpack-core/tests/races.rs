//! Concurrent operations of several threads on the same tensors and buffers; the campaign `races` runs them under
//! ThreadSanitizer.
//!
//! `DLPACK_CASES` sets the number of operations of each thread. `DLPACK_PLANT` adds a data race, which ThreadSanitizer must
//! report.

#![expect(
    unsafe_code,
    reason = "makes foreign tensors; plants a race on request"
)]

mod dice;
mod made;

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dice::Dice;
use dlpack_core::array::{View, ViewMut};
use dlpack_core::{DLPack, ExportRequest, FromDLPack, Managed, SharedBuffer};
use made::{Deleted, Foreign, dtype};

const THREADS: u64 = 6;
/// The number of items of each tensor.
const ITEMS: usize = 64;

/// Values that the threads exchange: most are made by one thread, read by another and dropped by a third.
#[derive(Default)]
struct Pool {
    tensors: Mutex<Vec<Managed>>,
    buffers: Mutex<Vec<SharedBuffer<u64>>>,
    shared: Mutex<Vec<Arc<Vec<u64>>>>,
}

fn give<T>(place: &Mutex<Vec<T>>, thing: T) {
    let mut things = place.lock().expect("no holder panics");
    things.push(thing);
    if things.len() > 40 {
        let dropped = things.swap_remove(0);
        // A deleter must not run while this thread holds the lock.
        drop(things);
        drop(dropped);
    }
}

fn take<T>(place: &Mutex<Vec<T>>, dice: &mut Dice) -> Option<T> {
    let mut things = place.lock().expect("no holder panics");
    let at = dice.below(things.len().max(1));
    (!things.is_empty()).then(|| things.swap_remove(at))
}

fn clone<T: Clone>(place: &Mutex<Vec<T>>) -> Option<T> {
    place.lock().expect("no holder panics").last().cloned()
}

/// The low and the high half of each value are equal, so that a torn write is noticed.
/// Under Miri memory is read byte by byte.
fn whole(value: &u64) -> bool {
    cfg!(miri) || value >> 32 == value & 0xffff_ffff
}

/// CAP-13, CAP-20, FLG-05: six threads import, share, clone, read, write and drop; deleters run on any of them.
#[test]
fn imports_and_buffers() {
    let cases: u64 = std::env::var("DLPACK_CASES").map_or(3000, |cases| cases.parse().unwrap());
    let cases = if cfg!(miri) { cases.min(50) } else { cases };
    let (pool, memory) = (Pool::default(), SharedBuffer::<u64>::zeroed(ITEMS).unwrap());
    let (deleted, imported) = (Deleted::default(), AtomicUsize::new(0));
    let import = || {
        imported.fetch_add(1, Ordering::SeqCst);
        let foreign = Foreign {
            deleted: deleted.clone(),
            ..Foreign::new(memory.as_ptr().cast(), dtype(1, 64, 1), &[64])
        };
        // SAFETY: a valid tensor over `memory`, which all code accesses atomically in words of 64 bits.
        unsafe { Managed::from_raw(foreign.versioned()) }
            .unwrap()
            .shared()
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pool, memory, import) = (&pool, &memory, &import);
            scope.spawn(move || {
                let mut dice = Dice(thread);
                for _ in 0..cases {
                    act(pool, memory, import, &mut dice);
                }
            });
        }
    });
    drop(pool);
    assert_eq!(deleted.times(), imported.into_inner());
    assert!(memory.to_vec().iter().all(whole));
}

fn act(pool: &Pool, memory: &SharedBuffer<u64>, import: &impl Fn() -> Managed, dice: &mut Dice) {
    let (index, value) = (dice.below(ITEMS), dice.draw() & 0xffff_ffff);
    let value = value << 32 | value;
    match dice.below(14) {
        0 => give(&pool.tensors, import()),
        1 => drop(take(&pool.tensors, dice)),
        2 => {
            if let Some(tensor) = take(&pool.tensors, dice) {
                let read = tensor.view().to_vec::<u64>().expect("readable");
                assert!(read.iter().all(whole));
                assert!(
                    tensor
                        .view()
                        .iter::<u64>()
                        .unwrap()
                        .all(|value| whole(&value))
                );
                give(&pool.tensors, tensor);
            }
        }
        3 => {
            if let Some(tensor) = take(&pool.tensors, dice) {
                give(
                    &pool.buffers,
                    SharedBuffer::from_dlpack(tensor).expect("a list"),
                );
            }
        }
        4 => {
            let buffer = clone(&pool.buffers).unwrap_or_else(|| memory.clone());
            assert!(whole(&buffer.get(index)));
            if !buffer.is_read_only() {
                buffer.set(index, value);
            }
        }
        5 => {
            let buffer = clone(&pool.buffers).unwrap_or_else(|| memory.clone());
            give(&pool.tensors, Arc::new(buffer).to_dlpack().unwrap());
        }
        6 => give(
            &pool.buffers,
            SharedBuffer::copied_from(&[value; ITEMS]).unwrap(),
        ),
        7 => {
            if let Some(mut buffer) = take(&pool.buffers, dice) {
                if let Some(alone) = buffer.get_mut() {
                    alone.fill(value);
                }
                give(&pool.buffers, buffer);
            }
        }
        8 => {
            // No other thread has the tensor until it is in the pool.
            let mut tensor = vec![value; ITEMS].into_dlpack().unwrap();
            tensor.as_mut_slice::<u64>().unwrap().fill(value);
            give(&pool.tensors, tensor);
        }
        9 => give(&pool.shared, Arc::new(vec![value; ITEMS])),
        10 => {
            if let Some(list) = clone(&pool.shared) {
                let tensor = list.to_dlpack().unwrap();
                assert!(tensor.view().as_slice::<u64>().unwrap().iter().all(whole));
                give(&pool.tensors, tensor);
            }
        }
        11 => {
            if let Some(tensor) = take(&pool.tensors, dice) {
                let view = View::<u64, [i64; 1]>::new(tensor).unwrap();
                assert!(view.iter().all(|value| whole(&value)) && whole(&view.at([index])));
                assert!(view.transpose().to_vec().unwrap().iter().all(whole));
                give(&pool.tensors, view.into_managed());
            }
        }
        12 => {
            if let Some(tensor) = take(&pool.tensors, dice) {
                let tensor = match ViewMut::<u64, [i64; 1]>::try_new(tensor) {
                    Err((_, tensor)) => tensor,
                    Ok(mut view) => {
                        view.set([index], value);
                        view.slice_mut(0, index / 2..index).unwrap().fill(value);
                        view.update(|value| value.rotate_left(32));
                        view.into_managed()
                    }
                };
                give(&pool.tensors, tensor);
            }
        }
        _ => {
            if let Some(tensor) = take(&pool.tensors, dice) {
                let copy = ExportRequest {
                    copy: Some(dice.below(2) == 0),
                    ..ExportRequest::versioned()
                };
                // The new export owns the tensor, or a copy of it.
                give(&pool.tensors, tensor.into_dlpack_with(&copy).unwrap());
            }
        }
    }
}

/// The negative control: two threads write the same number without synchronisation.
#[test]
fn planted() {
    if std::env::var_os("DLPACK_PLANT").is_none() {
        return;
    }
    let buffer = SharedBuffer::<u64>::zeroed(1).unwrap();
    let begin = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for value in 0..2 {
            let (buffer, begin) = (buffer.clone(), &begin);
            scope.spawn(move || {
                begin.wait();
                for _ in 0..100 {
                    // SAFETY: none; this is the planted race.
                    unsafe { buffer.as_ptr().write(value) };
                }
            });
        }
    });
}
