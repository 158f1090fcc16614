//! Tests of the sizes of tiles.

use super::{Axis, MAX_AXES, Route};

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
