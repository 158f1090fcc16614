//! What is borrowed for `'static` outlives every consumer.

use dlpack_core::{DLPack, Error};

static TABLE: [f32; 4] = [0.0, 0.25, 0.5, 0.75];

#[derive(DLPack)]
struct Table {
    #[dlpack(data, owner)]
    values: &'static [f32],
    #[dlpack(shape)]
    dims: &'static [usize],
}

fn main() -> Result<(), Error> {
    let table = Table {
        values: &TABLE,
        dims: &[2, 2],
    };
    let tensor = table.into_dlpack()?;
    assert!(tensor.view().is_read_only());
    assert_eq!(tensor.view().as_ptr(), TABLE.as_ptr().cast());
    Ok(())
}
