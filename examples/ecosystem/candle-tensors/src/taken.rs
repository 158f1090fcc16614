//! The memory of a candle tensor, on its way to Python.

use core::cell::RefCell;

use candle_core::{CpuStorage, InplaceOp1, Layout, Result, Tensor, bail};
use dlpack_pyo3::DLPack;

/// What a tensor of candle was.
#[derive(DLPack, Default)]
pub(crate) struct Taken {
    #[dlpack(data)]
    values: Vec<f32>,
    #[dlpack(shape)]
    shape: Vec<usize>,
    #[dlpack(strides)]
    strides: Vec<usize>,
    #[dlpack(offset)]
    offset: usize,
}

/// Takes the memory out of a tensor. Clones of the tensor, and other views of its memory, then read zeros.
pub(crate) fn take(tensor: Tensor) -> Result<Taken> {
    let taken = Take::default();
    tensor.inplace_op1(&taken)?;
    Ok(taken.0.into_inner())
}

/// candle has no function for it, but shows the memory to an operation in place.
#[derive(Default)]
struct Take(RefCell<Taken>);

impl InplaceOp1 for Take {
    fn name(&self) -> &'static str {
        "take"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let CpuStorage::F32(values) = storage else {
            bail!("only float32 is taken");
        };
        // As many zeros stay behind, as candle relies on the length. Their pages are never touched.
        let zeros = vec![0.0; values.len()];
        *self.0.borrow_mut() = Taken {
            values: core::mem::replace(values, zeros),
            shape: layout.dims().to_vec(),
            strides: layout.stride().to_vec(),
            offset: layout.start_offset(),
        };
        Ok(())
    }
}
