"""Exports one library's arrays in unusual states by the library itself and by our imports: ask_states.py ADAPTER [--from N]

Prints a line of JSON when it starts a state and a question, and one for each answer. A question may crash the process:
the last line tells which one.
"""

import argparse
import json
import os
import warnings

from states import Inside, states


def own_dlpack(array, **keywords):
    try:
        return array.__dlpack__(max_version=(1, 3), **keywords)
    except TypeError:
        # A version without the keyword.
        return array.__dlpack__()


def own_copy(array):
    return own_dlpack(array, copy=True)


def own_array(array):
    import numpy as np

    return np.asarray(array)


def our_import(array):
    from dlpack_probe import Tensor

    return Tensor.from_dlpack(array).tolist()


def our_copy(array):
    from dlpack_probe import Tensor

    return Tensor.from_dlpack(array, copy=True).tolist()


def our_argument(array):
    from dlpack_probe import first

    return first(array).tolist()


def our_writable(array):
    from dlpack_probe import states

    return states.writable(array)


def our_conversion(array):
    from dlpack_probe import states

    return states.converted(array)


# In this order: a question that crashes the library itself is not asked through us.
QUESTIONS = {
    "__dlpack__": own_dlpack,
    "copy=True": own_copy,
    "__array__": own_array,
    "import": our_import,
    "copy": our_copy,
    "argument": our_argument,
    "ViewMut": our_writable,
    "Convert": our_conversion,
}


def plain(value):
    """Numbers that JSON can represent."""
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, complex):
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return None


def answer(question, array):
    """The answer to a question: (kind, text or numbers)."""
    if isinstance(array, Inside):
        return array.ask(lambda inside: answer(question, inside))
    ask = QUESTIONS[question]
    if ask in (own_dlpack, own_copy) and not hasattr(array, "__dlpack__"):
        return "none", "no such method"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = ask(array)
    except Exception as error:
        lines = str(error).strip().splitlines()
        return "refuses", f"{type(error).__name__}: {lines[0] if lines else ''}"
    if question == "__array__" and given.dtype == object:
        return "none", "an array of objects"
    return "gives", plain(given) if question in ("import", "copy", "argument", "Convert") else None


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("adapter")
    arguments.add_argument("--from", dest="start", type=int, default=0)
    # Questions that are omitted for the first state.
    arguments.add_argument("--without", action="append", default=[])
    options = arguments.parse_args()
    # Libraries print to stdout, so the lines for the reader use a duplicate of its descriptor.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(**fields):
        print(json.dumps(fields), file=lines, flush=True)

    for index, (name, make, numbers) in enumerate(states(options.adapter)):
        if index < options.start:
            continue
        tell(state=name, index=index, numbers=plain(numbers))
        try:
            array = make()
        except Exception as error:
            tell(missing=f"{type(error).__name__}: {error}".splitlines()[0])
            continue
        for question in QUESTIONS:
            if index > options.start or question not in options.without:
                tell(question=question)
                kind, words = answer(question, array)
                tell(kind=kind, words=words)


main()
