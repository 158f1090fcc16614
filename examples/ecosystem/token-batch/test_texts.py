"""The numbers are those of the words, and the arrays are the batch's memory."""

import gc

import numpy as np
import pytest
import texts
from token_batch import Words


def test_ids_mask_and_offsets():
    batch = Words(["one", "two", "three"]).batch(["two one", "Three FOUR two", ""])
    assert batch.ids.tolist() == [[3, 2, 0], [4, 1, 3], [0, 0, 0]] and batch.ids.dtype == np.int64
    assert batch.mask.tolist() == [[True, True, False], [True] * 3, [False] * 3]
    assert batch.offsets.tolist() == [[[0, 3], [4, 7], [0, 0]], [[0, 5], [6, 10], [11, 14]], [[0, 0]] * 3]


def test_they_are_the_memory_of_the_batch():
    batch = Words(["one"]).batch(["one one"] * 5)
    ids = batch.ids
    assert np.shares_memory(ids, batch.ids) and not ids.flags.writeable and ids.strides == (16, 8)
    assert batch.offsets.strides == (16, 8, 4)
    del batch
    gc.collect()
    assert (ids == 2).all()


def test_no_texts():
    batch = Words([]).batch([])
    assert batch.ids.shape == (0, 0) and batch.offsets.shape == (0, 0, 2)


def test_a_model_takes_them():
    torch = pytest.importorskip("torch")
    batch = Words(["one"]).batch(["one two", "one"])
    found = torch.nn.Embedding(3, 4)(torch.tensor(batch.ids))
    assert found.shape == (2, 2, 4)


def test_the_program(capsys):
    batch = texts.main()
    assert batch.mask.sum(axis=1).tolist() == [6, 9, 4]
    text = capsys.readouterr().out
    assert "not known in 'Ünknown wörds: zero': ['Ünknown', 'wörds']" in text
    assert "the same memory at each look: True" in text
