"""Unusual states of each library's arrays, which an export may lose: masked, sparse, deleted, traced ..

A state is a name, a function that makes the array, and the numbers that the library shows for it, as by `tolist`; `None`
if it shows none. The state `plain` must be read, so that a table with only refusals is noticed. A state
is right if we read the numbers that the library shows, or refuse it, and refuse each state that the library's own export refuses.
"""

import importlib
import os
from collections import namedtuple

State = namedtuple("State", "name make numbers")
LIBRARIES = {}


class Inside:
    """An array that exists only while a transformed function runs: `see` is called with it."""

    def __init__(self, transform, argument):
        self.transform, self.argument = transform, argument

    def ask(self, see):
        answers = []
        self.transform(lambda x: answers.append(see(x)) or x)(self.argument)
        return answers[0]


def library(*names):
    """Registers a function that returns the states of the adapters of these names."""

    def register(states):
        LIBRARIES.update(dict.fromkeys(names, states))
        return states

    return register


def states(adapter):
    """The states for an adapter of this name; `STATES[name]` of `module` for `module:name`."""
    module, colon, name = adapter.partition(":")
    if colon:
        return getattr(importlib.import_module(module), "STATES", {}).get(name, [])
    return list(LIBRARIES[adapter]()) if adapter in LIBRARIES else []


def closing(base, make):
    """An array of a subclass whose `__dlpack__` raises."""

    def refuse(self, **_):
        raise BufferError("the subclass exports nothing")

    return make(type("Closed", (base,), {"__dlpack__": refuse}))


ONES = [1.0, 1.0, 1.0]


@library("numpy", "numpy and ml_dtypes")
def of_numpy():
    import numpy as np

    masked = [1.0, None, 1.0]
    yield State("plain", lambda: np.ones(3, "f4"), ONES)
    yield State("read-only", lambda: np.broadcast_to(np.float32(1), 3), ONES)
    yield State("masked", lambda: np.ma.array(np.ones(3, "f4"), mask=[0, 1, 0]), masked)
    yield State("masked, nothing hidden", lambda: np.ma.array(np.ones(3, "f4")), None)
    yield State("the constant `masked`", lambda: np.ma.masked, [None])
    yield State("a subclass whose method raises", lambda: closing(np.ndarray, np.ones(3, "f4").view), None)
    yield State("recarray of numbers", lambda: np.ones(3, "f4").view(np.recarray), ONES)
    yield State("matrix", lambda: np.asmatrix(np.ones(3, "f4")), [ONES])
    yield State("structured", lambda: np.zeros(3, [("a", "f4")]), None)
    yield State("datetime64", lambda: np.zeros(3, "M8[s]"), None)
    yield State("object", lambda: np.array([1, None], object), None)
    yield State("string", lambda: np.array(["a"]), None)
    yield State("void", lambda: np.zeros(3, "V4"), None)
    yield State("big-endian", lambda: np.ones(3, ">f4"), ONES)
    yield State("longdouble", lambda: np.ones(3, np.longdouble), ONES)
    yield State("a field of 5-byte records", lambda: np.ones(3, [("a", "f4"), ("b", "u1")])["a"], ONES)


@library("array-api-strict")
def of_array_api_strict():
    import array_api_strict as xp

    yield State("plain", lambda: xp.ones(3), ONES)
    yield State("on a device that NumPy may not read", lambda: xp.ones(3, device=xp.Device("device1")), ONES)


@library("jax")
def of_jax():
    # Read when the first array is made.
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    def placed(*axes):
        mesh = Mesh(jax.devices(), ("a",))
        return jax.device_put(jnp.ones(4), NamedSharding(mesh, PartitionSpec(*axes)))

    def deleted():
        array = jnp.ones(3)
        array.delete()
        return array

    def donated():
        array = jnp.ones(3)
        jax.jit(lambda x: x + 1, donate_argnums=0)(array)
        return array

    def traced(transform):
        """A tracer that outlives its trace is refused like one inside of it."""

        def make():
            held = []
            transform(lambda x: held.append(x) or x.sum())(jnp.ones((2, 3)))
            return held[0]

        return make

    yield State("plain", lambda: jnp.ones(3), ONES)
    yield State("not computed yet", lambda: jax.jit(lambda x: ((x @ x) @ x)[0, :3])(jnp.eye(1000)), [1.0, 0.0, 0.0])
    yield State("on another device", lambda: jax.device_put(jnp.ones(3), jax.devices()[1]), ONES)
    yield State("deleted", deleted, None)
    yield State("donated", donated, None)
    yield State("sharded", lambda: placed("a"), None)
    yield State("replicated", lambda: placed(), None)
    yield State("traced by jit", traced(jax.jit), None)
    yield State("traced by vmap", traced(jax.vmap), None)
    yield State("traced by grad", traced(jax.grad), None)
    yield State("random key", lambda: jax.random.key(0), None)
    yield State("int4", lambda: jnp.ones(3, jnp.int4), None)


@library("tvm-ffi", "tvm-ffi call")
def of_tvm_ffi():
    import numpy as np
    import tvm_ffi

    yield State("plain", lambda: tvm_ffi.from_dlpack(np.ones(3, "f4")), ONES)
    yield State("shape", lambda: tvm_ffi.Shape((1, 2)), None)
    yield State("list", lambda: tvm_ffi.Array([1, 2]), None)


@library("pyarrow")
def of_pyarrow():
    import numpy as np
    import pyarrow as pa

    yield State("plain", lambda: pa.array([1.0, 1.0, 1.0]), ONES)
    yield State("tensor", lambda: pa.Tensor.from_numpy(np.ones(3, "f4")), ONES)
    yield State("nulls", lambda: pa.array([1.0, None, 1.0]), [1.0, None, 1.0])
    yield State("nulls among integers", lambda: pa.array([1, None, 1]), [1.0, None, 1.0])
    yield State("a part behind the nulls", lambda: pa.array([None, 1.0, 1.0, 1.0])[1:], ONES)
    yield State("only nulls", lambda: pa.nulls(2), [None, None])
    yield State("bool, a bit each", lambda: pa.array([True, False]), [True, False])
    yield State("string", lambda: pa.array(["a"]), None)
    yield State("dictionary", lambda: pa.array(["a"]).dictionary_encode(), None)
    yield State("timestamp", lambda: pa.array([1], pa.timestamp("s")), None)
    yield State("lists", lambda: pa.array([[1.0, 2.0]]), None)
    yield State("run-end encoded", lambda: pa.RunEndEncodedArray.from_arrays([3], [1.0]), ONES)
    yield State("fixed shape", lambda: pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((2, 3))), [ONES, ONES])
    yield State("chunked", lambda: pa.chunked_array([[1.0], [1.0, 1.0]]), ONES)
    yield State("table", lambda: pa.table({"a": [1.0]}), None)
    yield State("sparse", lambda: pa.SparseCOOTensor.from_dense_numpy(np.eye(2)), None)
    yield State("buffer", lambda: pa.py_buffer(b"\1\1\1"), ONES)


@library("nanobind", "nanobind ro")
def of_nanobind():
    import nanobind_consumer as nb
    import numpy as np

    # It exports nothing, because the test keeps an `nb::ndarray` in a class.
    yield State("held in a class", lambda: nb.readonly(np.ones(3, "f4")), None)


@library("torch")
def of_torch():
    import torch

    z = torch.tensor([1 + 2j, 3 + 4j])

    def resized(size, count):
        tensor = torch.ones(count)
        tensor.untyped_storage().resize_(size)
        return tensor

    def traced(transform):
        def make():
            held = []
            transform(lambda x: held.append(x) or x.sum())(torch.ones(2, 3))
            return held[0]

        return make

    def inference():
        with torch.inference_mode():
            return torch.ones(3)

    def fake():
        from torch._subclasses import FakeTensorMode

        with FakeTensorMode():
            return torch.ones(3)

    def wrapper():
        def make(cls, of):
            return torch.Tensor._make_wrapper_subclass(cls, of.shape, dtype=of.dtype)

        def dispatch(cls, *_):
            raise RuntimeError("nothing runs")

        parts = {"__new__": staticmethod(make), "__torch_dispatch__": classmethod(dispatch)}
        return type("Wrapper", (torch.Tensor,), parts)(torch.ones(3))

    def function():
        def refuse(cls, *_):
            raise RuntimeError("the subclass takes no function")

        return torch.ones(3).as_subclass(type("Function", (torch.Tensor,), {"__torch_function__": classmethod(refuse)}))

    def dual():
        import torch.autograd.forward_ad as forward

        forward.enter_dual_level()
        return forward.make_dual(torch.ones(3), torch.ones(3))

    def plain_subclass():
        return torch.ones(3).as_subclass(type("Plain", (torch.Tensor,), {}))

    yield State("plain", lambda: torch.ones(3), ONES)
    yield State("conjugate bit", lambda: z.conj(), [1 - 2j, 3 - 4j])
    yield State("conjugate bit, transposed", lambda: z.reshape(1, 2).mH, [[1 - 2j], [3 - 4j]])
    yield State("negative bit", lambda: z.conj().imag, [-2.0, -4.0])
    yield State("negative bit, contiguous", lambda: torch._neg_view(torch.ones(3)), [-1.0, -1.0, -1.0])
    yield State("negative bit, integers", lambda: torch._neg_view(torch.ones(3, dtype=torch.int32)), [-1, -1, -1])
    yield State("resolved", lambda: z.conj().imag.resolve_neg(), [-2.0, -4.0])
    yield State("requires grad", lambda: torch.ones(3, requires_grad=True), ONES)
    yield State("requires grad, not a leaf", lambda: torch.ones(3, requires_grad=True) * 1, ONES)
    yield State("parameter", lambda: torch.nn.Parameter(torch.ones(3)), ONES)
    yield State("parameter, frozen", lambda: torch.nn.Parameter(torch.ones(3), requires_grad=False), ONES)
    yield State("detached", lambda: torch.ones(3, requires_grad=True).detach(), ONES)
    yield State("of inference mode", inference, ONES)
    yield State("dual, of forward mode", dual, ONES)
    yield State("subclass", plain_subclass, ONES)
    yield State("a subclass whose method raises", lambda: closing(torch.Tensor, torch.ones(3).as_subclass), None)
    yield State("subclass with `__torch_function__`", function, None)
    yield State("subclass with `__torch_dispatch__`", wrapper, None)
    yield State("fake", fake, None)
    yield State("functional", lambda: torch._to_functional_tensor(torch.ones(3)), ONES)
    yield State("traced by vmap", traced(torch.vmap), None)
    yield State("traced by grad", traced(torch.func.grad), None)
    yield State("sparse", lambda: torch.eye(3).to_sparse(), None)
    yield State("sparse, csr", lambda: torch.eye(3).to_sparse_csr(), None)
    yield State("mkldnn", lambda: torch.ones(3).to_mkldnn(), None)
    yield State("nested", lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), None)
    yield State("masked", lambda: torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False])), [1.0, None])
    yield State("quantized", lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8), None)
    yield State("meta", lambda: torch.ones(3, device="meta"), None)
    yield State("zero without memory", lambda: torch._efficientzerotensor((3,)), [0.0, 0.0, 0.0])
    yield State("storage freed", lambda: resized(0, 3), None)
    yield State("expanded", lambda: torch.ones(1).expand(3), ONES)


@library("tensorflow")
def of_tensorflow():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    def symbolic():
        held = []
        tf.function(lambda x: held.append(x) or x)(tf.ones(3))
        return held[0]

    yield State("plain", lambda: tf.ones(3), ONES)
    yield State("variable", lambda: tf.Variable([1.0, 1.0, 1.0]), ONES)
    yield State("conjugate", lambda: tf.math.conj(tf.constant([1 + 2j])), [1 - 2j])
    yield State("symbolic", symbolic, None)
    yield State("ragged", lambda: tf.ragged.constant([[1.0], [2.0, 3.0]]), None)
    yield State("sparse", lambda: tf.sparse.from_dense(tf.eye(2)), None)
    yield State("slices", lambda: tf.IndexedSlices(tf.ones(2), tf.constant([0, 1])), None)
    yield State("quantized", lambda: tf.quantization.quantize(tf.ones(3), 0.0, 1.0, tf.quint8)[0], None)
    yield State("string", lambda: tf.constant(["a"]), None)
    yield State("variant", lambda: tf.data.experimental.to_variant(tf.data.Dataset.range(2)), None)
    yield State("resource", lambda: tf.Variable([1.0]).handle, None)


@library("paddle")
def of_paddle():
    import numpy as np
    import paddle

    def grad():
        tensor = paddle.ones([3])
        tensor.stop_gradient = False
        return tensor

    def cleared(method):
        tensor = paddle.ones([3])
        getattr(tensor, method)()
        return tensor

    def static():
        paddle.enable_static()
        try:
            return paddle.static.data("x", [3])
        finally:
            paddle.disable_static()

    yield State("plain", lambda: paddle.ones([3]), ONES)
    yield State("every other", lambda: paddle.ones([6])[::2], ONES)
    yield State("conjugate", lambda: paddle.to_tensor([1 + 2j]).conj(), [1 - 2j])
    yield State("requires grad", grad, ONES)
    yield State("requires grad, not a leaf", lambda: grad() * 1, ONES)
    yield State("parameter", lambda: paddle.create_parameter([3], "float32"), None)
    yield State("detached", lambda: grad().detach(), ONES)
    yield State("a subclass whose method raises", lambda: closing(paddle.Tensor, lambda cls: cls(np.ones(3, "f4"))), None)
    yield State("sparse", lambda: paddle.eye(2).to_sparse_coo(2), None)
    yield State("sparse, csr", lambda: paddle.eye(2).to_sparse_csr(), None)
    yield State("without memory", lambda: paddle.Tensor(), None)
    yield State("cleared", lambda: cleared("_clear"), None)
    yield State("data cleared", lambda: cleared("_clear_data"), None)
    yield State("of a static program", static, None)


@library("mlx")
def of_mlx():
    import mlx.core as mx

    def traced(transform):
        return lambda: Inside(transform, mx.ones((2, 3)))

    yield State("plain", lambda: mx.ones(3), ONES)
    yield State("not computed yet", lambda: mx.ones(3) * mx.ones(3), ONES)
    yield State("every other", lambda: mx.ones(6)[::2], ONES)
    yield State("broadcast", lambda: mx.broadcast_to(mx.array(1.0), (3,)), ONES)
    yield State("conjugate", lambda: mx.conjugate(mx.array([1 + 2j])), [1 - 2j])
    yield State("traced by compile", traced(mx.compile), None)
    yield State("traced by vmap", traced(mx.vmap), None)


@library("onnxruntime")
def of_onnxruntime():
    import numpy as np
    import onnxruntime as ort

    def sparse():
        cpu = ort.OrtDevice.make("cpu", 0)
        return ort.SparseTensor.sparse_coo_from_numpy(np.array([3, 3]), np.ones(2, "f4"), np.array([0, 1]), cpu)

    yield State("plain", lambda: ort.OrtValue.ortvalue_from_numpy(np.ones(3, "f4")), ONES)
    yield State("bool", lambda: ort.OrtValue.ortvalue_from_numpy(np.array([True, False])), [True, False])
    yield State("sparse", lambda: ort.OrtValue.ort_value_from_sparse_tensor(sparse()), None)
    yield State("sparse tensor", sparse, None)


@library("warp")
def of_warp():
    import warp as wp

    wp.config.quiet = True
    wp.init()

    @wp.struct
    class Pair:
        first: wp.float32
        second: wp.float32

    def ones(count, **options):
        return wp.ones(count, dtype=wp.float32, device="cpu", **options)

    def indexed():
        return wp.indexedarray(ones(4), [wp.array([0, 2], dtype=wp.int32, device="cpu")])

    yield State("plain", lambda: ones(3), ONES)
    yield State("every other", lambda: ones(6)[::2], ONES)
    yield State("requires grad", lambda: ones(3, requires_grad=True), ONES)
    yield State("vectors", lambda: wp.ones(2, dtype=wp.vec3, device="cpu"), [ONES, ONES])
    yield State("structures", lambda: wp.zeros(2, dtype=Pair, device="cpu"), None)
    yield State("indexed", indexed, None)
    yield State("without memory", lambda: wp.array(dtype=wp.float32), None)


@library("dpnp")
def of_dpnp():
    import dpnp

    yield State("plain", lambda: dpnp.ones(3), ONES)
    yield State("every other", lambda: dpnp.ones(6)[::2], ONES)


@library("mpi4py")
def of_mpi4py():
    from mpi4py import MPI

    buffer = getattr(MPI, "buffer", None) or MPI.memory

    def released():
        one = buffer.allocate(3)
        one.release()
        return one

    yield State("plain", lambda: buffer.frombuffer(bytearray(b"\1\1\1")), ONES)
    yield State("read-only", lambda: buffer.frombuffer(b"\1\1\1", readonly=True), ONES)
    yield State("released", released, [])


@library("cuda.core")
def of_cuda_core():
    import numpy as np
    from cuda.core.utils import StridedMemoryView

    yield State("plain", lambda: StridedMemoryView.from_dlpack(np.ones(3, "f4"), stream_ptr=-1), ONES)
    frozen = np.broadcast_to(np.float32(1), 3)
    yield State("read-only", lambda: StridedMemoryView.from_dlpack(frozen, stream_ptr=-1), ONES)
