//! An environment for reinforcement learning: one buffer, filled again at every step while Python looks at it.

use dlpack_pyo3::{DLPack, SharedBuffer, dlpack_pymethods};
use pyo3::prelude::*;

use crate::batch::Batch;

/// A pole on a cart. `numpy.from_dlpack(env)`, once, is the observation from then on.
#[pyclass(module = "dlpack_showcase")]
#[derive(DLPack)]
pub struct CartPole {
    // `owner`: an array keeps the buffer, not the environment, so that `step` may still take `&mut self`.
    #[dlpack(data, owner)]
    observation: SharedBuffer<f32>,
    state: [f32; 4],
}

#[dlpack_pymethods]
#[pymethods]
impl CartPole {
    #[new]
    fn new() -> PyResult<Self> {
        let mut env = Self {
            observation: SharedBuffer::zeroed(4)?,
            state: [0.0; 4],
        };
        env.reset();
        Ok(env)
    }

    /// Back to an almost upright pole.
    fn reset(&mut self) {
        self.state = [0.0, 0.0, 0.04, 0.0];
        self.observation.copy_from_slice(&self.state);
    }

    /// Pushes the cart to the right, or else to the left. Gives the reward, and whether the pole has fallen.
    fn step(&mut self, right: bool) -> (f32, bool) {
        let [place, speed, angle, spin] = self.state;
        let (sin, cos) = angle.sin_cos();
        let force = if right { 10.0 } else { -10.0 };
        // A cart of 1 kg, a pole of 0.1 kg with its middle half a metre up, 20 ms.
        let push = (force + 0.05 * spin * spin * sin) / 1.1;
        let turning = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1));
        let pushing = push - 0.05 * turning * cos / 1.1;
        self.state = [
            place + 0.02 * speed,
            speed + 0.02 * pushing,
            angle + 0.02 * spin,
            spin + 0.02 * turning,
        ];
        self.observation.copy_from_slice(&self.state);
        let fallen = self.state[2].abs() > 0.21 || self.state[0].abs() > 2.4;
        (if fallen { 0.0 } else { 1.0 }, fallen)
    }

    /// So many steps of a simple player, as one batch.
    fn play(&mut self, steps: usize) -> Batch {
        let mut batch = Batch::default();
        for _ in 0..steps {
            let right = self.state[2] + 0.3 * self.state[3] + 0.05 * self.state[1] > 0.0;
            let before = self.state;
            let (reward, fallen) = self.step(right);
            batch.push(before, right, reward, fallen);
            if fallen {
                self.reset();
            }
        }
        batch
    }
}
