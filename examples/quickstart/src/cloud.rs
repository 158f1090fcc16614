//! A point cloud: every field of an array of structs as a tensor of its own.

use std::sync::Arc;

use dlpack_core::{DLPack, DLPackTensors, Error, Record};

use crate::show::{facts, numbers, picture};

#[derive(Record, Clone, Copy)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
    z: f32,
    intensity: u16,
    ring: u16,
}

#[derive(DLPack)]
struct Cloud {
    #[dlpack(columns)]
    points: Vec<Point>,
}

pub(crate) fn main() -> Result<(), Error> {
    let points = (0_u8..3).map(|n| Point {
        x: f32::from(n),
        y: 10.0,
        z: 20.0,
        intensity: 100 + u16::from(n),
        ring: 7,
    });
    let cloud = Cloud {
        points: points.collect(),
    };
    let start = cloud.points.as_ptr().addr();

    println!(
        "A point cloud of 16-byte records, each field a column: {:?}",
        Cloud::NAMES
    );
    assert_eq!(Cloud::NAMES, ["x", "y", "z", "intensity", "ring"]);

    let y = facts!(cloud.describe_tensor("y")?, f32);
    numbers("Column y", &y, start);
    picture(&y, start, 12, 4);
    assert_eq!((&y.shape[..], &y.strides[..]), (&[3][..], &[4][..]));
    assert_eq!(y.address, start + 4);

    let ring = facts!(cloud.describe_tensor("ring")?, u16);
    numbers("Column ring", &ring, start);
    picture(&ring, start, 24, 8);
    assert_eq!((&ring.shape[..], &ring.strides[..]), (&[3][..], &[8][..]));
    assert_eq!(ring.address, start + 14);

    let cloud = Arc::new(cloud);
    let tensor = cloud.to_dlpack_tensor("z")?;
    println!(
        "Column z, handed over: {:?}",
        tensor.view().to_vec::<f32>()?
    );
    assert_eq!(tensor.view().as_ptr().addr(), start + 8);
    assert_eq!(tensor.view().to_vec::<f32>()?, [20.0, 20.0, 20.0]);

    let error = cloud.describe_tensor("colour").unwrap_err();
    println!("Column colour: {error}");
    Ok(())
}
