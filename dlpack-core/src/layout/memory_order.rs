//! Sorts the axes of arrays by stride, so that a loop over all elements visits them in the order of memory.

use crate::layout::extent::stride_to_isize;

/// The largest number of axes that are sorted. For arrays with more, the caller keeps the given order.
const MOST_AXES: usize = 8;

/// The axes of `K` arrays with the same shape, sorted by the strides of the first array: the longest stride first. Axes on which
/// the first array has a negative stride are reversed in all arrays. Axes of size 1 are left out.
#[derive(Debug)]
pub(crate) struct MemoryOrder<const K: usize> {
    axes: usize,
    shape: [i64; MOST_AXES],
    strides: [[i64; MOST_AXES]; K],
    /// The distance from the element with index 0 on every axis to the first element in this order, in units of the strides.
    first: [isize; K],
}

impl<const K: usize> MemoryOrder<K> {
    /// Sorts the axes of arrays that are not empty. Returns `None` for more than [`MOST_AXES`] axes of size 2 or more.
    pub(crate) fn new(shape: &[i64], strides: [&[i64]; K]) -> Option<Self> {
        let mut order = Self {
            axes: 0,
            shape: [1; MOST_AXES],
            strides: [[0; MOST_AXES]; K],
            first: [0; K],
        };
        for (axis, &extent) in shape.iter().enumerate() {
            if extent == 1 {
                continue;
            }
            if order.axes == MOST_AXES {
                return None;
            }
            let mut strides: [i64; K] = core::array::from_fn(|array| strides[array][axis]);
            if strides[0] < 0 {
                for (first, stride) in order.first.iter_mut().zip(&mut strides) {
                    let last = stride_to_isize(extent - 1).wrapping_mul(stride_to_isize(*stride));
                    *first = first.wrapping_add(last);
                    *stride = stride.wrapping_neg();
                }
            }
            // Inserted before the first axis with a shorter stride. An axis of stride 0, which repeats elements, goes outermost.
            let length = |stride: i64| if stride == 0 { i64::MAX } else { stride };
            let mut at = order.axes;
            while at > 0 && length(order.strides[0][at - 1]) < length(strides[0]) {
                at -= 1;
            }
            order.shape[at..=order.axes].rotate_right(1);
            order.shape[at] = extent;
            for (list, stride) in order.strides.iter_mut().zip(strides) {
                list[at..=order.axes].rotate_right(1);
                list[at] = stride;
            }
            order.axes += 1;
        }
        Some(order)
    }

    pub(crate) fn shape(&self) -> &[i64] {
        &self.shape[..self.axes]
    }

    /// The strides of one of the arrays.
    pub(crate) fn strides(&self, array: usize) -> &[i64] {
        &self.strides[array][..self.axes]
    }

    /// The distance from the element with index 0 on every axis to the first element in this order, in units of the strides.
    pub(crate) fn first(&self, array: usize) -> isize {
        self.first[array]
    }
}

#[cfg(test)]
mod tests {
    use super::MemoryOrder;

    fn check<const K: usize>(
        shape: &[i64],
        strides: [&[i64]; K],
        expected: &[i64],
        ordered: [&[i64]; K],
        first: [isize; K],
    ) {
        let order = MemoryOrder::new(shape, strides).expect("few axes");
        assert_eq!(order.shape(), expected);
        for array in 0..K {
            assert_eq!(order.strides(array), ordered[array], "array {array}");
            assert_eq!(order.first(array), first[array], "array {array}");
        }
    }

    #[test]
    fn axes_are_sorted_by_the_strides_of_the_first_array() {
        check(&[2, 3], [&[3, 1]], &[2, 3], [&[3, 1]], [0]);
        check(&[3, 2], [&[1, 3]], &[2, 3], [&[3, 1]], [0]);
        check(
            &[4, 3, 2],
            [&[2, 8, 1], &[6, 2, 1]],
            &[3, 4, 2],
            [&[8, 2, 1], &[2, 6, 1]],
            [0, 0],
        );
        // Equal strides stay as they are.
        check(&[2, 3, 4], [&[5, 5, 5]], &[2, 3, 4], [&[5, 5, 5]], [0]);
    }

    #[test]
    fn negative_strides_start_at_the_other_end() {
        check(&[5], [&[-2]], &[5], [&[2]], [-8]);
        check(
            &[5, 2],
            [&[-2, 10], &[2, -1]],
            &[2, 5],
            [&[10, 2], &[-1, -2]],
            [-8, 8],
        );
    }

    #[test]
    fn axes_of_one_element_and_repeated_elements() {
        check(&[1, 3, 1], [&[i64::MIN, 1, i64::MAX]], &[3], [&[1]], [0]);
        check(&[3, 2], [&[1, 0]], &[2, 3], [&[0, 1]], [0]);
        check::<1>(&[], [&[]], &[], [&[]], [0]);
        assert!(MemoryOrder::new(&[2; 9], [&[1; 9]]).is_none());
        assert!(MemoryOrder::new(&[1; 20], [&[1; 20]]).is_some());
    }
}
