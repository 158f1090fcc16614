"""Libraries that each do one thing wrong, to check that the matrix notices."""

import os
from dataclasses import replace

import numpy as np

import adapters
from states import State

HONEST = adapters.numpy()
KEPT = []


def honest():
    return HONEST


def crashes():
    def take(producer, **keywords):
        array = np.from_dlpack(producer, **keywords)
        return os.abort() if array.ndim == 3 else array

    return replace(HONEST, take=take)


def leaks():
    def take(producer, **keywords):
        array = np.from_dlpack(producer, **keywords)
        KEPT.append(array if array.ndim == 3 else None)
        return array

    return replace(HONEST, take=take)


def copies():
    return replace(HONEST, take=lambda producer, **keywords: np.from_dlpack(producer, **keywords).copy("K"))


def misreads():
    def look(array):
        seen = HONEST.look(array)
        return seen._replace(data=seen.data[::-1]) if array.ndim == 3 else seen

    return replace(HONEST, look=look)


def misshapes():
    def look(array):
        seen = HONEST.look(array)
        return seen._replace(shape=seen.shape[::-1])

    return replace(HONEST, look=look)


def refuses():
    def take(producer, **keywords):
        array = np.from_dlpack(producer, **keywords)
        if array.ndim == 3:
            raise TypeError("not today")
        return array

    return replace(HONEST, take=take)


def overwrites():
    """Ignores READ_ONLY."""

    def poke(array):
        import ctypes

        ctypes.memset(array.ctypes.data, 1, array.nbytes)

    return replace(HONEST, poke=poke)


def dies_at_exit():
    import atexit

    atexit.register(os.abort)
    return HONEST


def unloadable():
    raise ImportError("no such library")


class Fickle:
    """An array that refuses the first of two questions."""

    refused = False

    def __init__(self):
        self.array = np.ones(3, "f4")

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **keywords):
        self.refused = not self.refused
        if self.refused:
            raise BufferError("not now")
        return self.array.__dlpack__(**keywords)

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")


class Fatal:
    """An array that crashes the process."""

    def __init__(self, questions):
        self.questions = questions

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        self.questions -= 1
        if self.questions < 0:
            os.abort()
        return np.ones(3, "f4").__dlpack__(**keywords)

    def __array__(self, dtype=None, copy=None):
        return np.ones(3, "f4")


ONES = [1.0, 1.0, 1.0]
# The faults that the judge of states must notice or accept, by the name of an adapter.
STATES = {
    "honest": [State("plain", lambda: np.ones(3, "f4"), ONES), State("refused", lambda: np.zeros(3, "M8[s]"), None)],
    "refuses": [State("plain", lambda: np.zeros(3, "M8[s]"), None)],
    "misreads": [State("plain", lambda: np.ones(3, "f4"), [1.0, 1.0, 2.0])],
    "fickle": [State("fickle", Fickle, ONES)],
    "fatal": [
        State("by itself", lambda: Fatal(0), ONES),
        State("through us", lambda: Fatal(2), ONES),
        State("cannot be made", lambda: 1 // 0, None),
        State("plain", lambda: np.ones(3, "f4"), ONES),
    ],
}
