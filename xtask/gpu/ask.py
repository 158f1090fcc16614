"""Says why nothing can be checked on a GPU here, or nothing. That the module cannot be imported, or that a driver which is here
fails, is an error."""

import dlpack_gpu

try:
    dlpack_gpu.describe()
except LookupError as error:
    print(error)
