//! Many environments at once for gymnasium: each step fills the same arrays again, and Python sees it where it looks.
//!
//! ```text
//! cd examples/gym-vector && maturin develop --release && python poles.py
//! ```
//!
//! `poles.py` puts gymnasium's class around this one.
#![forbid(unsafe_code)]

use dlpack_pyo3::{DLPack, SharedBuffer, View, dlpack_pymethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Poles on carts. The attributes are arrays, which are made once and written by every step.
#[pyclass(module = "gym_vector")]
#[derive(DLPack)]
struct CartPoles {
    /// Where each cart is and how fast, and the same of its pole.
    // `owner`: an array keeps the buffer, not the poles, so that `step` may still take `&mut self`.
    #[dlpack(tensor(owner))]
    observations: SharedBuffer<[f32; 4]>,
    #[dlpack(tensor(owner))]
    rewards: SharedBuffer<f64>,
    /// The pole has fallen, or the cart has left.
    #[dlpack(tensor(owner))]
    terminated: SharedBuffer<bool>,
    /// The time is over.
    #[dlpack(tensor(owner))]
    truncated: SharedBuffer<bool>,
    poles: Vec<Pole>,
    chance: u64,
}

#[dlpack_pymethods(arrays = "numpy")]
#[pymethods]
impl CartPoles {
    #[new]
    fn new(count: usize) -> PyResult<Self> {
        let mut poles = Self {
            observations: SharedBuffer::zeroed(count)?,
            rewards: SharedBuffer::zeroed(count)?,
            terminated: SharedBuffer::zeroed(count)?,
            truncated: SharedBuffer::zeroed(count)?,
            poles: vec![Pole::default(); count],
            chance: 0,
        };
        poles.reset(1);
        Ok(poles)
    }

    /// Begins all episodes anew.
    fn reset(&mut self, seed: u64) {
        self.chance = seed;
        for pole in &mut self.poles {
            *pole = Pole::new(&mut self.chance);
        }
        self.rewards.fill(0.0);
        self.terminated.fill(false);
        self.truncated.fill(false);
        self.show();
    }

    /// Pushes each cart to the left (0) or to the right (1). An episode that was over begins anew instead.
    fn step(&mut self, actions: View<i64, 1>) -> PyResult<()> {
        let [count] = actions.shape();
        if count != self.poles.len() {
            let text = format!("{count} actions for {} poles", self.poles.len());
            return Err(PyValueError::new_err(text));
        }
        for (index, (pole, action)) in self.poles.iter_mut().zip(&*actions).enumerate() {
            let begins = pole.fallen() || pole.late();
            if begins {
                *pole = Pole::new(&mut self.chance);
            } else {
                pole.push(action == 1);
            }
            self.rewards.set(index, if begins { 0.0 } else { 1.0 });
            self.terminated.set(index, pole.fallen());
            self.truncated.set(index, pole.late());
        }
        self.show();
        Ok(())
    }
}

impl CartPoles {
    fn show(&self) {
        for (index, pole) in self.poles.iter().enumerate() {
            self.observations.set(index, pole.state);
        }
    }
}

#[derive(Clone, Default)]
struct Pole {
    state: [f32; 4],
    steps: u16,
}

impl Pole {
    /// Somewhere near the middle.
    fn new(chance: &mut u64) -> Self {
        let state = core::array::from_fn(|_| {
            // A linear congruential generator will do for play.
            *chance = chance.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (*chance >> 40) as f32 / (1_u64 << 24) as f32 * 0.1 - 0.05
        });
        Self { state, steps: 0 }
    }

    /// A cart of 1 kg, a pole of 0.1 kg with its middle half a metre up, 20 ms.
    fn push(&mut self, right: bool) {
        let [place, speed, angle, spin] = self.state;
        let (sin, cos) = angle.sin_cos();
        let force = if right { 10.0 } else { -10.0 };
        let push = (force + 0.05 * spin * spin * sin) / 1.1;
        let turning = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1));
        let pushing = push - 0.05 * turning * cos / 1.1;
        self.state = [
            place + 0.02 * speed,
            speed + 0.02 * pushing,
            angle + 0.02 * spin,
            spin + 0.02 * turning,
        ];
        self.steps += 1;
    }

    fn fallen(&self) -> bool {
        self.state[0].abs() > 2.4 || self.state[2].abs() > 0.2095
    }

    fn late(&self) -> bool {
        self.steps >= 500
    }
}

/// What `import gym_vector` gets from Rust.
#[pymodule(name = "gym_vector")]
mod module {
    #[pymodule_export]
    use super::CartPoles;
}
