"""A vector environment of gymnasium's whose arrays are Rust's memory. `python poles.py` says how many frames a second."""

import time

import numpy as np
from gym_vector import CartPoles
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


class CartPoleVector(VectorEnv):
    """`step` returns the same arrays every time: copy one to keep it, as with `SyncVectorEnv(copy=False)`."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, num_envs):
        self.num_envs = num_envs
        self.single_action_space = Discrete(2)
        self.single_observation_space = Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.poles = CartPoles(num_envs)
        # Once: from then on these are what the last step left.
        self.observations = self.poles.observations
        self.outcome = self.poles.rewards, self.poles.terminated, self.poles.truncated

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.poles.reset(int(self.np_random.integers(1 << 63)))
        return self.observations, {}

    def step(self, actions):
        self.poles.step(actions)
        return self.observations, *self.outcome, {}


def play(env, steps):
    """Pushes each cart to where its pole leans. Gives the frames a second, and the mean length of an episode."""
    seen, _ = env.reset(seed=7)
    ended = 0
    began = time.perf_counter()
    for _ in range(steps):
        # The observation of every pole, without a copy.
        actions = (seen[:, 2] + 0.3 * seen[:, 3] + 0.05 * seen[:, 1] > 0).astype(np.int64)
        seen, _, terminated, truncated, _ = env.step(actions)
        ended += np.count_nonzero(terminated | truncated)
    frames = steps * env.num_envs
    return frames / (time.perf_counter() - began), frames / max(ended, 1)


def main(steps=2000):
    for count in [1, 64, 4096]:
        rate, length = play(CartPoleVector(count), max(steps // count, 600))
        print(f"{count:5} poles: {rate / 1e6:7.3f} million frames a second, {length:.0f} frames an episode")


if __name__ == "__main__":
    main(100_000)
