//! A point cloud as a scanner delivers it: an array of structs, of which each field is a tensor.

use dlpack_pyo3::{DLPack, Record, dlpack_pymethods};
use pyo3::prelude::*;

/// What the laser saw.
#[derive(Record)]
#[repr(C)]
struct Point {
    time: f64,
    x: f32,
    y: f32,
    z: f32,
    /// How much came back of the beam.
    intensity: u16,
    ring: u8,
    ground: bool,
}

/// Points on a hilly ground and the trees on it; `x`, `y`, `z`, `intensity`, `ring`, `ground` and `time` are tensors.
#[pyclass(frozen, module = "dlpack_showcase")]
#[derive(DLPack)]
pub struct PointCloud {
    #[dlpack(columns)]
    points: Vec<Point>,
}

#[dlpack_pymethods]
#[pymethods]
impl PointCloud {
    /// One turn of a scanner with so many lasers.
    #[new]
    fn new(rings: u8, steps: u16) -> Self {
        let beams = (0..steps).flat_map(|step| (0..rings).map(move |ring| (step, ring)));
        let points = beams.filter_map(|(step, ring)| {
            let turn = f64::from(step) / f64::from(steps);
            let slope = -0.6 + 0.62 * f32::from(ring) / f32::from(rings.max(2) - 1);
            shoot(turn, slope, ring)
        });
        Self {
            points: points.collect(),
        }
    }

    fn __len__(&self) -> usize {
        self.points.len()
    }
}

/// Follows one beam until it meets something.
fn shoot(turn: f64, slope: f32, ring: u8) -> Option<Point> {
    let (sin, cos) = (turn as f32 * core::f32::consts::TAU).sin_cos();
    let mut far = 2.0_f32;
    while far < 40.0 {
        let (x, y, z) = (far * cos, far * sin, 2.4 + far * slope);
        let (ground, tree) = (ground(x, y), tree(x, y));
        let above = z - ground.max(tree);
        if above < 0.01 {
            let strength = if tree > ground { 60_000.0 } else { 36_000.0 };
            return Some(Point {
                time: 0.1 * turn,
                x,
                y,
                z,
                intensity: (strength / (1.0 + 0.02 * far)) as u16,
                ring,
                ground: tree <= ground,
            });
        }
        // The less air, the shorter the step.
        far += (0.25 * above).clamp(0.01, 0.2);
    }
    None
}

fn ground(x: f32, y: f32) -> f32 {
    0.7 * (x / 5.0).sin() * (y / 6.0).cos() + 0.2 * (x / 1.7 + y / 2.3).sin()
}

/// How high the tree of this square reaches here.
fn tree(x: f32, y: f32) -> f32 {
    let (u, v) = ((x / 5.0).round(), (y / 5.0).round());
    // Somewhere in its square, somehow large, always the same.
    let chance = (u * 12.9898 + v * 78.233).sin() * 437.585;
    let chance = chance - chance.floor();
    let (dx, dy) = (x - 5.0 * u - chance, y - 5.0 * v + chance);
    let radius = 0.5 + 0.5 * chance;
    let near = 1.0 - (dx * dx + dy * dy) / (radius * radius);
    let grows = near > 0.0 && u.abs() + v.abs() > 1.0 && chance > 0.3;
    if grows {
        ground(x, y) + 4.0 * chance * near.sqrt()
    } else {
        f32::MIN
    }
}
