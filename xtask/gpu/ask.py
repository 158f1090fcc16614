"""Prints why no GPU can be checked here, or nothing. A module that cannot be imported, or a driver that fails, is an error."""

import dlpack_gpu

try:
    dlpack_gpu.describe()
except LookupError as error:
    print(error)
