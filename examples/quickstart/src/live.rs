//! A buffer that both sides write to while both hold it, as a simulation does with its observations.

use std::sync::Arc;

use dlpack_core::{DLPack, Error, SharedBuffer};

use crate::show::{facts, numbers};

#[derive(DLPack)]
#[dlpack(shape = [_, 2])]
struct Observations {
    #[dlpack(data)]
    values: SharedBuffer<f32>,
}

pub(crate) fn main() -> Result<(), Error> {
    let world = Arc::new(Observations {
        values: SharedBuffer::zeroed(4)?,
    });
    let tensor = world.to_dlpack()?;
    let facts = facts!(tensor.view(), f32);
    numbers("A shared buffer", &facts, world.values.as_ptr().addr());
    assert_eq!(facts.address, world.values.as_ptr().addr());
    assert!(
        !facts.read_only,
        "this memory may be written through a share"
    );

    world.values.set(3, 0.5);
    println!("  now      {:?}", tensor.view().to_vec::<f32>()?);
    assert_eq!(tensor.view().to_vec::<f32>()?, [0.0, 0.0, 0.0, 0.5]);
    Ok(())
}
