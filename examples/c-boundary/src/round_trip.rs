//! Tensors that pass between Rust and C, and their owners afterwards.

use std::sync::Arc;

use dlpack_core::{DLPack, Error};

use crate::library;

/// Row-major, like its neighbours in C.
#[derive(DLPack)]
struct Matrix {
    #[dlpack(data)]
    values: Vec<f64>,
    #[dlpack(shape)]
    dims: (usize, usize),
}

fn matrix() -> Matrix {
    Matrix {
        values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        dims: (2, 3),
    }
}

/// C consumes the tensor: our matrix is dropped when C calls the deleter, not before.
pub(crate) fn to_c_and_gone() -> Result<(), Error> {
    let shared = Arc::new(matrix());
    let tensor = shared.to_dlpack()?;
    assert_eq!(Arc::strong_count(&shared), 2);
    let sum = library::sum(tensor);
    println!("C added up a matrix of ours: {sum}");
    assert_eq!(sum, 21.0);
    assert_eq!(Arc::strong_count(&shared), 1);
    Ok(())
}

/// C writes to what it alone may see, and leaves alone what we still share.
pub(crate) fn to_c_and_back() -> Result<(), Error> {
    let (tensor, written) = library::double(matrix().into_dlpack()?)?;
    println!(
        "C doubled a matrix that it had for itself: {:?}",
        tensor.view().as_slice::<f64>()?
    );
    assert!(written);
    assert_eq!(
        tensor.view().as_slice::<f64>()?,
        [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    );

    let shared = Arc::new(matrix());
    let (tensor, written) = library::double(shared.to_dlpack()?)?;
    println!(
        "C did not touch one that we share: {:?}",
        tensor.view().as_slice::<f64>()?
    );
    assert!(!written);
    assert_eq!(shared.values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    Ok(())
}

/// We consume a tensor of C, read it where it lies, and call its deleter by dropping it.
pub(crate) fn from_c() -> Result<(), Error> {
    let tensor = library::ramp(5)?;
    println!(
        "a tensor of C: {:?}, {} alive",
        tensor.view().as_slice::<i32>()?,
        library::alive()
    );
    assert_eq!(tensor.view().as_slice::<i32>()?, [0, 1, 2, 3, 4]);
    assert_eq!(library::alive(), 1);
    drop(tensor);
    assert_eq!(library::alive(), 0);
    Ok(())
}
