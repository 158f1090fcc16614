"""Texts become arrays for a model. `python texts.py`"""

import numpy as np
from token_batch import Words

TEXTS = ["Zero copy, zero fuss.", "A tensor in Rust is an array in Python", "Ünknown wörds: zero"]


def main():
    words = "a an array copy fuss in is python rust tensor zero , . :".split()
    batch = Words(words).batch(TEXTS)
    print(f"ids, {batch.ids.dtype} {batch.ids.shape}:\n{batch.ids}")
    print(f"mask, {batch.mask.dtype} {batch.mask.shape}: {batch.mask.sum(axis=1)} words")
    for text, ids, offsets in zip(TEXTS, batch.ids, batch.offsets):
        print(f"not known in {text!r}: {[text[begin:end] for begin, end in offsets[ids == 1]]}")
    print(f"the same memory at each look: {np.shares_memory(batch.ids, batch.ids)}")
    return batch


if __name__ == "__main__":
    main()
