//! Types of crates that are not dependencies, as small as their shape allows.

use core::ops::Deref;
use std::sync::Arc;

use dlpack_core::layout::Dims;
use dlpack_core::{
    Buffer, Device, Element, Loan, LoanMut, ProducerStream, StreamHandle, StreamRef,
};

/// Memory of another library, reached through a pointer.
pub(crate) struct Storage(Box<[f32]>);

impl Storage {
    pub(crate) fn new(values: &[f32]) -> Self {
        Self(values.into())
    }

    pub(crate) const fn as_ptr(&self) -> *const f32 {
        self.0.as_ptr()
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }
}

/// As in arrow: a cheap clone that derefs to its values.
#[derive(Clone)]
pub(crate) struct ScalarBuffer<T>(Arc<Vec<T>>);

impl<T> From<Vec<T>> for ScalarBuffer<T> {
    fn from(values: Vec<T>) -> Self {
        Self(Arc::new(values))
    }
}

impl<T> Deref for ScalarBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// As in memmap2: derefs to the bytes of a file.
pub(crate) struct Mmap(pub(crate) Vec<u64>);

impl Deref for Mmap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: any bytes are `u8`s.
        let (_, bytes, _) = unsafe { self.0.align_to::<u8>() };
        bytes
    }
}

/// As in cudarc: memory of a device, of which a clone is a copy.
pub(crate) struct CudaSlice<T>(Vec<T>);

impl<T: Element + Copy> CudaSlice<T> {
    pub(crate) fn new(values: Vec<T>) -> Self {
        Self(values)
    }

    pub(crate) fn address(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }
}

impl<T: Clone> Clone for CudaSlice<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Element> Buffer for CudaSlice<T> {
    fn lend(&self) -> Loan<'_> {
        // SAFETY: the slice keeps its memory, where it is, for as long as it is borrowed. It pretends
        // to lie on a device, so no processor touches it.
        unsafe {
            Loan::from_raw_parts_mut(self.0.as_ptr().cast_mut(), self.0.len(), Device::cuda(0))
        }
    }
}

/// As in cudarc.
pub(crate) struct CudaContext;

/// As in cudarc; handed out as `Arc<CudaStream>`.
pub(crate) struct CudaStream(pub(crate) StreamHandle);

impl ProducerStream for CudaStream {
    fn producer_stream(&self) -> StreamRef<'_> {
        self.0.into()
    }
}

/// As in metal: a handle, to which nothing may be added.
pub(crate) struct MtlBuffer(pub(crate) Box<[u8]>);

impl MtlBuffer {
    pub(crate) const fn handle(&self) -> *const u8 {
        self.0.as_ptr()
    }
}

impl Buffer for MtlBuffer {
    fn lend(&self) -> Loan<'_> {
        // SAFETY: the buffer lives for as long as it is borrowed, and its handle is never followed.
        unsafe {
            Loan::from_raw_parts_mut(self.handle().cast_mut(), self.0.len(), Device::metal(0))
        }
    }
}

/// A pool of memory that several processes share.
pub(crate) struct Pool(pub(crate) Vec<u64>);

impl Deref for Pool {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl Buffer for Pool {
    fn lend(&self) -> Loan<'_> {
        Loan::from(&self.0[..])
    }
}

/// As the crate of this name.
pub(crate) mod faer {
    use super::{Buffer, Dims, Element, Loan, LoanMut};

    /// A matrix by columns, with room behind each.
    pub(crate) struct Mat<T> {
        values: Vec<T>,
        rows: usize,
        cols: usize,
    }

    impl<T: Element + Default + Clone> Mat<T> {
        pub(crate) fn zeros(rows: usize, cols: usize) -> Self {
            let values = vec![T::default(); rows.next_multiple_of(4) * cols];
            Self { values, rows, cols }
        }

        pub(crate) fn as_ptr(&self) -> *const T {
            self.values.as_ptr()
        }
    }

    impl<T> Mat<T> {
        fn layout(&self) -> [Dims; 2] {
            let dims = |list: [usize; 2]| Dims::extents(&list).expect("sizes of memory fit");
            [
                dims([self.rows, self.cols]),
                dims([1, self.rows.next_multiple_of(4)]),
            ]
        }
    }

    impl<T: Element> Buffer for Mat<T> {
        fn lend(&self) -> Loan<'_> {
            let [shape, strides] = self.layout();
            Loan::from(&self.values[..]).with_layout(shape, strides, 0)
        }

        fn lend_mut(&mut self) -> LoanMut<'_> {
            let [shape, strides] = self.layout();
            LoanMut::from(&mut self.values[..]).with_layout(shape, strides, 0)
        }
    }
}
