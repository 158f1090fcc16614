//! A ring of fixed capacity, as a crate might have one already.

use dlpack_core::{Buffer, Element, Loan, LoanMut, Writable};

/// The newest values, the oldest overwritten first.
pub(crate) struct Ring<T> {
    slots: Box<[T]>,
    next: usize,
}

impl<T: Copy + Default> Ring<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            slots: vec![T::default(); capacity].into(),
            next: 0,
        }
    }

    pub(crate) fn push(&mut self, value: T) {
        self.slots[self.next] = value;
        self.next = (self.next + 1) % self.slots.len();
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        &self.slots
    }
}

impl<T: Element> Buffer for Ring<T> {
    fn lend(&self) -> Loan<'_> {
        Loan::from(&self.slots[..])
    }

    fn lend_mut(&mut self) -> LoanMut<'_> {
        LoanMut::from(&mut self.slots[..])
    }
}

/// The only owner of a ring may let a consumer write to it.
impl<T: Element> Writable for Ring<T> {}
