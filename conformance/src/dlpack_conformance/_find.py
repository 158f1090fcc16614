"""Objects by name."""

from __future__ import annotations

import importlib


def producer(name: str) -> object:
    """Evaluates `module:expression`; a class or a function is called."""
    module, colon, expression = name.partition(":")
    if not (module and colon and expression):
        raise ValueError(f"`{name}` is not MODULE:EXPRESSION, such as numpy:arange(3)")
    # The user's own words, on her own command line.
    found: object = eval(expression, dict(vars(importlib.import_module(module))))  # noqa: S307
    if callable(found) and (isinstance(found, type) or not hasattr(found, "__dlpack__")):
        return found()
    return found
