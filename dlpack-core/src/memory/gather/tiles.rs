//! Tests of the sizes of tiles.

use super::{Axis, MAX_AXES, Route};
use crate::memory::moves::Unit;

/// 128 lines of a cache line each, fewer where they would compete, more where the other side is short.
#[test]
fn tiles_fit_the_cache() {
    let tile = |extents: [i64; 2], stride| {
        let axes = &mut [Axis::ONCE; MAX_AXES];
        Route::new(&extents, &[1, stride], 4, axes).and_then(|route| route.tile)
    };
    assert_eq!(tile([1000, 1000], 1001), Some([128, 16]));
    assert_eq!(tile([1000, 1000], 256), Some([32, 16]));
    assert_eq!(tile([1000, 1000], 1024), Some([16, 16]));
    assert_eq!(tile([5, 1000], 1001), Some([409, 16]));
    assert_eq!(tile([1000, 20], 1001), Some([128, 102]));
    assert_eq!(tile([16, 20], 1001), Some([128, 102]));
}

/// Squares of eight bytes a line, but where single loads are no slower.
#[test]
fn squares_have_lines_of_eight_bytes() {
    let sides = [Unit::<u8>::SIDE, Unit::<u16>::SIDE, Unit::<u32>::SIDE];
    assert_eq!(sides, [8, 4, 0]);
    assert_eq!(Unit::<u64>::SIDE, 2);
}
