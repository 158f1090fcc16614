"""How far zero copy reaches with Dask: what is copied on the way to a task and back, and what is not. `python cluster.py`"""

import os

import numpy as np
from dask_task import Wave
from distributed import Client, LocalCluster
from distributed.protocol import deserialize, serialize


def address(array):
    return np.asarray(array).ctypes.data


def look(wave):
    """A task: which process it is in, and where the samples are there."""
    return os.getpid(), address(wave)


def write(wave):
    """A task that changes its argument, where it is."""
    np.asarray(wave)[0] = 9


def say(what, copied):
    print(f"{what:76} {'copied' if copied else 'not copied'}")
    return copied


def in_one_process(wave):
    first, second = np.asarray(wave), np.asarray(wave)
    yield say("NumPy looks at the wave", not np.shares_memory(first, second))
    header, frames = serialize(wave, serializers=["pickle"])
    (samples,) = (frame for frame in frames if memoryview(frame).nbytes == 8 * len(np.asarray(wave)))
    yield say("Dask serializes it: a frame of its own, for the socket", address(samples) != address(wave))
    back = deserialize(header, frames)
    yield say("Dask makes a wave of a frame that it has received", address(back) != address(samples))


def with_threads(client, wave):
    yield say("to a worker that is a thread, and back", client.submit(look, wave).result() != look(wave))


def with_processes(client, wave):
    there = client.scatter(wave)
    pid, first = client.submit(look, there, pure=False).result()
    assert pid != os.getpid()
    client.submit(write, there).result()
    # The worker has written to its own wave: ours is as it was.
    yield say("to a worker that is a process: once, by the socket", np.asarray(wave)[0] != 9)
    same = client.submit(look, there, workers=client.who_has(there)[there.key], pure=False).result()
    yield say("from task to task on one worker", same != (pid, first))
    half = client.submit(Wave.halved, there)
    back = np.asarray(half.result())
    assert np.array_equal(back[1:], np.asarray(wave)[1:] / 2)
    client.submit(write, half).result()
    yield say("a result comes back from a process: once, by the socket", back[0] != 9)


def main():
    wave = Wave(1_000_000, 100.0)
    copied = list(in_one_process(wave))
    for processes, ways in [(False, with_threads), (True, with_processes)]:
        with LocalCluster(2, processes=processes, threads_per_worker=1, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                copied += ways(client, wave)
    return copied


if __name__ == "__main__":
    main()
