"""Says why nothing can be checked on a GPU here, or nothing. That the module cannot even be imported is an error."""

import dlpack_gpu

try:
    dlpack_gpu.describe()
except RuntimeError as error:
    print(error)
