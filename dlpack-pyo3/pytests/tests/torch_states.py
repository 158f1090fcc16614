"""PyTorch tensors in states that DLPack cannot describe are refused.

`PYTHONPATH=FOLDER_OF_THE_MODULE python torch_states.py`: `cargo xtask consumers` runs it where PyTorch is, without pytest.
"""

import re

import dlpack_probe as p
import torch


def refuses(call, array, error, words):
    try:
        result = call(array)
    except error as raised:
        # PyO3 names the argument in a note, on Pythons with notes.
        assert re.search(words, " ".join([str(raised), *getattr(raised, "__notes__", [])])), raised
    else:
        raise AssertionError(f"{call} gave {result} instead of {words}")


def refused(array, fix):
    for call in (p.take, p.Tensor.from_dlpack, lambda x: p.Tensor.from_dlpack(x, copy=True)):
        refuses(call, array, BufferError, f"^expected an array that DLPack can describe, found a torch tensor .*pass x.{fix}")
    for call in (p.first, p.states.real, p.states.complex, p.states.clear, p.states.converted, p.states.writable):
        refuses(call, array, TypeError, f"expected an array .*found a torch tensor .*pass x.{fix}")


def main():
    z = torch.tensor([[1 + 2j, 3 + 4j]])
    assert p.states.complex(z) == [(1, 2), (3, 4)]
    refused(z.mH, r"resolve_conj\(\)")
    refused(z.conj(), r"resolve_conj\(\)")
    assert p.states.complex(z.mH.resolve_conj()) == [(1, -2), (3, -4)]
    refused(z.conj().imag, r"resolve_neg\(\)")
    refused(torch._neg_view(torch.ones(3)), r"resolve_neg\(\)")
    assert p.states.real(z.conj().imag.resolve_neg()) == [-2, -4]

    parameter = torch.nn.Parameter(torch.ones(3))
    for array in (parameter, parameter * 2, torch.ones(3, requires_grad=True)):
        refused(array, r"detach\(\)")
    assert p.states.real(parameter.detach()) == [1, 1, 1]
    assert p.states.real(torch.nn.Parameter(torch.ones(2), requires_grad=False)) == [1, 1]
    with torch.no_grad():
        refused(parameter, r"detach\(\)")
    with torch.inference_mode():
        assert p.states.real(torch.ones(2)) == [1, 1]
    kept = torch.ones(2)
    p.states.clear(kept)
    assert kept.tolist() == [0, 0]

    # The lists of an export are those of the tensor itself.
    for take in (p.take, p.Tensor.from_dlpack, lambda x: p.take(x.__dlpack__()), lambda x: p.take(x.__dlpack__(max_version=(1, 0))), p.give_view):
        x = torch.arange(6.0)
        tensor = take(x)
        x.unsqueeze_(0)
        assert tensor.shape == (6,) and tensor.tolist() == [0, 1, 2, 3, 4, 5]
        x.resize_(3)
        assert tensor.numpy().tolist() == memoryview(tensor).tolist() == [0, 1, 2, 3, 4, 5]

    class Closed(torch.Tensor):
        def __dlpack__(self, **_):
            raise BufferError("closed")

    for call in (p.take, p.first, p.states.real, p.states.clear):
        refuses(call, torch.ones(2).as_subclass(Closed), BufferError, "closed")

    class Plain(torch.Tensor):
        pass

    assert p.states.real(torch.ones(2).as_subclass(Plain)) == [1, 1]
    refused(z.conj().as_subclass(Plain), r"resolve_conj\(\)")

    class Tenfold(torch.Tensor):
        """Overrides `__dlpack__` by PyTorch's protocol."""

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if function is torch.Tensor.__dlpack__:
                return (args[0].as_subclass(torch.Tensor) * 10).__dlpack__(**kwargs or {})
            return super().__torch_function__(function, types, args, kwargs)

    class Derived(Tenfold):
        pass

    class Disabled(Tenfold):
        __torch_function__ = torch._C._disabled_torch_function_impl

    class Detached(torch.Tensor):
        """Its override exports what the method of PyTorch refuses."""

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if function is torch.Tensor.__dlpack__:
                return args[0].as_subclass(torch.Tensor).detach().resolve_conj().__dlpack__(**kwargs or {})
            return super().__torch_function__(function, types, args, kwargs)

    assert p.states.real(torch.ones(2, requires_grad=True).as_subclass(Detached)) == [1, 1]
    assert p.states.complex(z.conj().as_subclass(Detached)) == [(1, -2), (3, -4)]
    refuses(p.take, torch._neg_view(torch.ones(3)).as_subclass(Detached), BufferError, r"resolve_neg\(\)")
    for made, number in ((Tenfold, 10), (Derived, 10), (Disabled, 1), (Plain, 1)):
        x = torch.ones(2).as_subclass(made)
        assert p.states.real(x) == [number] * 2, made
        assert p.take(x).tolist() == p.Tensor.from_dlpack(x, copy=True).tolist() == [number] * 2, made

    # The method's error is one line, the exchange table's is a C++ stack trace.
    refuses(p.states.real, torch.eye(2).to_sparse(), BufferError, "layout other than torch.strided")
    print("torch_states: all as expected")


if __name__ == "__main__":
    main()
