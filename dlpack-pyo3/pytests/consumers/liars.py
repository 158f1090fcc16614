"""Libraries that do one thing wrong each, so that we see the matrix notice."""

import os
from dataclasses import replace

import numpy as np

import adapters

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
    """As if it had never heard of READ_ONLY."""

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
