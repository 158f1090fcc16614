"""The errors for arrays of JAX that were deleted are those of JAX.

`PYTHONPATH=FOLDER_OF_THE_MODULE python jax_states.py`: `cargo xtask consumers` and CI run it where JAX is, without pytest.
"""

import dlpack_probe as p
import jax
import jax.numpy as jnp


def main():
    deleted, donated = jnp.ones(3), jnp.ones(4)
    deleted.delete()
    jax.jit(lambda x: x + 1, donate_argnums=0)(donated)
    for array in deleted, donated:
        for call in (p.take, p.first, lambda x: p.Tensor.from_dlpack(x, copy=True), lambda x: p.Tensor.from_dlpack(x, device=(1, 0))):
            try:
                result = call(array)
            except RuntimeError as raised:
                assert "Array has been deleted" in str(raised), raised
            else:
                raise AssertionError(f"{call} gave {result}")
    assert p.take(jnp.ones(3)).tolist() == [1, 1, 1]
    # A buffer has no such data type.
    assert p.take(jnp.ones(3, jnp.bfloat16)).tolist() == [1, 1, 1]
    print("jax_states: all as expected")


if __name__ == "__main__":
    main()
