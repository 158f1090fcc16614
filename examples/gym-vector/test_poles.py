"""The environment is one of gymnasium's, falls as gymnasium's own does, and shows every step in the same memory."""

import gymnasium
import numpy as np
import poles
import pytest


@pytest.fixture
def env():
    return poles.CartPoleVector(6)


def test_it_is_one_of_gymnasiums(env):
    assert isinstance(env, gymnasium.vector.VectorEnv)
    seen, info = env.reset(seed=3)
    assert seen in env.observation_space and info == {}
    seen, rewards, terminated, truncated, info = env.step(env.action_space.sample())
    assert seen in env.observation_space
    assert (rewards.dtype, terminated.dtype, truncated.dtype) == (float, bool, bool)
    assert rewards.shape == terminated.shape == truncated.shape == (6,)
    recorded = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    recorded.reset(seed=3)
    for _ in range(100):
        *_, info = recorded.step(np.ones(6, int))
        if info:
            break
    assert 5 < info["episode"]["l"].max() < 20


def test_a_step_is_seen_where_it_was_looked_for(env):
    seen, _ = env.reset(seed=3)
    before, address = seen.copy(), seen.ctypes.data
    again, *_ = env.step(np.zeros(6, int))
    assert again is seen and seen.ctypes.data == address == env.poles.observations.ctypes.data
    assert not np.array_equal(seen, before)
    del env.poles, env.observations
    assert np.isfinite(seen).all()


def test_it_moves_as_gymnasiums_own(env):
    own = gymnasium.make("CartPole-v1").unwrapped
    seen, _ = env.reset(seed=5)
    own.reset()
    own.state = tuple(float(number) for number in seen[2])
    for action in [1, 0, 0, 1, 1, 1, 0]:
        wanted, *_ = own.step(action)
        env.step(np.full(6, action))
        assert np.allclose(seen[2], wanted, atol=1e-4)


def test_an_episode_begins_after_it_ended(env):
    seen, _ = env.reset(seed=5)
    for _ in range(50):
        _, rewards, terminated, truncated, _ = env.step(np.ones(6, int))
        if terminated[0]:
            break
    assert terminated[0] and not truncated.any() and rewards[0] == 1
    env.step(np.ones(6, int))
    assert not terminated[0] and rewards[0] == 0 and (abs(seen[0]) <= 0.05).all()


def test_episodes_end_by_the_clock(env):
    # The player holds them all, and a step more begins anew.
    _, length = poles.play(env, 4 * 501)
    assert length == 501


def test_seeds(env):
    first = env.reset(seed=1)[0].copy()
    assert not np.array_equal(env.reset(seed=2)[0], first)
    assert np.array_equal(env.reset(seed=1)[0], first)
    assert len(np.unique(first)) == first.size


def test_actions_that_do_not_fit(env):
    with pytest.raises(ValueError, match="5 actions for 6 poles"):
        env.step(np.ones(5, int))
    with pytest.raises(TypeError, match="actions"):
        env.step(np.ones(6))


def test_the_program(capsys):
    poles.main()
    assert capsys.readouterr().out.count("million frames a second") == 3
