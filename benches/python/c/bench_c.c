/* Producers in C to measure against, and loops that a consumer in C would run.
 *
 * Floor is what a careful author writes by hand: keywords read by the fast convention, one malloc for header and
 * lists, an exception in flight kept, a deleter for any thread. Minimal does only what the ABI needs to work.
 * Nothing has a table whose functions do nothing: what the loop itself costs.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define HAS_CALLGRIND 1
#endif
#endif

/* dlpack.h 1.3, as far as it is needed here. */
typedef struct { int32_t type, id; } Device;
typedef struct { uint8_t code, bits; uint16_t lanes; } DataType;
typedef struct {
    void *data;
    Device device;
    int32_t ndim;
    DataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;
typedef struct Managed {
    struct { uint32_t major, minor; } version;
    void *context;
    void (*deleter)(struct Managed *);
    uint64_t flags;
    Tensor tensor;
} Managed;
typedef struct {
    struct { uint32_t major, minor; } version;
    void *previous;
    int (*allocate)(Tensor *, Managed **, void *, void (*)(void *, const char *, const char *));
    int (*from_object)(void *, Managed **);
    int (*to_object)(Managed *, void **);
    int (*borrow)(void *, Tensor *);
    int (*stream)(int32_t, int32_t, void **);
} Table;

static const char VERSIONED[] = "dltensor_versioned";
static PyObject *max_version_name, *stream_name, *device_name, *copy_name, *dlpack_name, *one_keyword, *version_1_1;

typedef struct {
    PyObject_HEAD
    float *pixels;
    int64_t shape[3], strides[3];
    /* As strides, in bytes. */
    Py_ssize_t steps[3];
} Image;

/* What one export allocates. */
typedef struct {
    Managed managed;
    int64_t shape[3], strides[3];
} Block;

static PyObject *image_new(PyTypeObject *class, PyObject *args, PyObject *keywords) {
    Py_ssize_t height, width, depth;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "(nnn)", &height, &width, &depth)) return NULL;
    Image *self = (Image *)class->tp_alloc(class, 0);
    if (!self) return NULL;
    Py_ssize_t count = height * width * depth;
    self->pixels = malloc(sizeof(float) * (size_t)count);
    if (!self->pixels) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) self->pixels[i] = (float)i;
    int64_t shape[3] = {height, width, depth}, strides[3] = {width * depth, depth, 1};
    memcpy(self->shape, shape, sizeof shape);
    memcpy(self->strides, strides, sizeof strides);
    for (int axis = 0; axis < 3; axis++) self->steps[axis] = (Py_ssize_t)strides[axis] * 4;
    return (PyObject *)self;
}

static void image_dealloc(PyObject *object) {
    PyTypeObject *class = Py_TYPE(object);
    free(((Image *)object)->pixels);
    class->tp_free(object);
    Py_DECREF(class);
}

/* A block for the image, which it keeps. NULL without memory. */
static inline Managed *block_of(Image *self, void (*deleter)(Managed *)) {
    Block *block = malloc(sizeof *block);
    if (!block) return NULL;
    memcpy(block->shape, self->shape, sizeof block->shape);
    memcpy(block->strides, self->strides, sizeof block->strides);
    Managed *managed = &block->managed;
    managed->version.major = 1;
    managed->version.minor = 3;
    Py_INCREF(self);
    managed->context = self;
    managed->deleter = deleter;
    managed->flags = 0;
    managed->tensor = (Tensor){
        self->pixels, {1, 0}, 3, {2, 32, 1}, block->shape, block->strides, 0,
    };
    return managed;
}

static PyObject *cpu(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return Py_BuildValue("ii", 1, 0);
}

static int lend(void *object, Tensor *out) {
    Image *self = object;
    *out = (Tensor){self->pixels, {1, 0}, 3, {2, 32, 1}, self->shape, self->strides, 0};
    return 0;
}

static int no_stream(int32_t type, int32_t id, void **out) {
    (void)type, (void)id;
    *out = NULL;
    return 0;
}

static int no_import(Managed *managed, void **out) {
    (void)managed, (void)out;
    PyErr_SetString(PyExc_BufferError, "not in this benchmark");
    return -1;
}

static int no_memory(Tensor *like, Managed **out, void *context, void (*fail)(void *, const char *, const char *)) {
    (void)like, (void)out;
    fail(context, "MemoryError", "not in this benchmark");
    return -1;
}

/* --- Minimal */

static void minimal_delete(Managed *managed) {
    Py_DECREF((PyObject *)managed->context);
    free(managed);
}

static void minimal_destroy(PyObject *capsule) {
    if (PyCapsule_GetName(capsule) == VERSIONED) minimal_delete(PyCapsule_GetPointer(capsule, VERSIONED));
}

static PyObject *minimal_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)args, (void)count, (void)names;
    Managed *managed = block_of((Image *)self, minimal_delete);
    if (!managed) return PyErr_NoMemory();
    return PyCapsule_New(managed, VERSIONED, minimal_destroy);
}

static int minimal_from_object(void *object, Managed **out) {
    *out = block_of(object, minimal_delete);
    return *out ? 0 : -1;
}

/* --- Floor */

static PyTypeObject *floor_class;

static void floor_delete(Managed *managed) {
    if (!managed) return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)managed->context);
    PyGILState_Release(state);
    free(managed);
}

static void floor_destroy(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, VERSIONED)) return;
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    Managed *managed = PyCapsule_GetPointer(capsule, VERSIONED);
    if (!managed) PyErr_WriteUnraisable(capsule);
    else if (managed->deleter) managed->deleter(managed);
    PyErr_Restore(kind, value, trace);
}

static int is_keyword(PyObject *name, PyObject *known) {
    return name == known || PyUnicode_Compare(name, known) == 0;
}

static PyObject *floor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    long major = 0;
    if (count != 0) {
        PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only");
        return NULL;
    }
    Py_ssize_t given = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < given; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *value = args[i];
        if (is_keyword(name, max_version_name)) {
            if (value == Py_None) continue;
            if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 2) {
                PyErr_SetString(PyExc_TypeError, "max_version is a tuple of two integers");
                return NULL;
            }
            major = PyLong_AsLong(PyTuple_GET_ITEM(value, 0));
            if (major == -1 && PyErr_Occurred()) return NULL;
            if (PyLong_AsLong(PyTuple_GET_ITEM(value, 1)) == -1 && PyErr_Occurred()) return NULL;
        } else if (is_keyword(name, stream_name) || is_keyword(name, device_name) || is_keyword(name, copy_name)) {
            if (value == Py_None) continue;
            PyErr_SetString(PyExc_BufferError, "not in this benchmark");
            return NULL;
        } else {
            PyErr_Format(PyExc_TypeError, "__dlpack__() got an unexpected keyword argument %R", name);
            return NULL;
        }
    }
    if (major < 1) {
        PyErr_SetString(PyExc_BufferError, "not in this benchmark");
        return NULL;
    }
    Managed *managed = block_of((Image *)self, floor_delete);
    if (!managed) return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(managed, VERSIONED, floor_destroy);
    if (!capsule) floor_delete(managed);
    return capsule;
}

static int floor_from_object(void *object, Managed **out) {
    if (!PyObject_TypeCheck((PyObject *)object, floor_class)) {
        PyErr_SetString(PyExc_TypeError, "not one of this class");
        return -1;
    }
    *out = block_of(object, floor_delete);
    if (*out) return 0;
    PyErr_NoMemory();
    return -1;
}

/* The buffer protocol, which all classes here have: shape and strides are lent, the strides in bytes. */
static int image_buffer(PyObject *object, Py_buffer *view, int flags) {
    Image *self = (Image *)object;
    (void)flags;
    Py_ssize_t items = (Py_ssize_t)(self->shape[0] * self->strides[0]);
    *view = (Py_buffer){
        .buf = self->pixels, .obj = Py_NewRef(object), .len = items * 4, .itemsize = 4, .readonly = 1,
        .ndim = 3, .format = "f", .shape = (Py_ssize_t *)self->shape, .strides = self->steps,
    };
    return 0;
}

/* --- Nothing */

static void nothing_delete(Managed *managed) { (void)managed; }
static Managed nothing = {.version = {1, 3}, .deleter = nothing_delete};

static int nothing_from_object(void *object, Managed **out) {
    (void)object;
    *out = &nothing;
    return 0;
}

static int nothing_borrow(void *object, Tensor *out) {
    (void)object, (void)out;
    return 0;
}

/* --- Their classes */

static Table minimal_table = {{1, 3}, NULL, no_memory, minimal_from_object, no_import, lend, no_stream};
static Table floor_table = {{1, 3}, NULL, no_memory, floor_from_object, no_import, lend, no_stream};
static Table nothing_table = {{1, 3}, NULL, no_memory, nothing_from_object, no_import, nothing_borrow, no_stream};

#define FAST (METH_FASTCALL | METH_KEYWORDS)
static PyMethodDef minimal_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))minimal_dlpack, FAST, NULL},
    {"__dlpack_device__", cpu, METH_NOARGS, NULL},
    {0},
};
static PyMethodDef floor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))floor_dlpack, FAST, NULL},
    {"__dlpack_device__", cpu, METH_NOARGS, NULL},
    {0},
};
static PyMethodDef no_methods[] = {{0}};

static PyObject *make_class(PyObject *module, const char *name, PyMethodDef *methods, Table *table) {
    PyType_Slot slots[] = {
        {Py_tp_new, image_new}, {Py_tp_dealloc, image_dealloc}, {Py_tp_methods, methods},
        {Py_bf_getbuffer, image_buffer}, {0, NULL},
    };
    PyType_Spec spec = {name, sizeof(Image), 0, Py_TPFLAGS_DEFAULT, slots};
    PyObject *class = PyType_FromSpec(&spec);
    if (!class) return NULL;
    PyObject *capsule = PyCapsule_New(table, "dlpack_exchange_api", NULL);
    if (!capsule || PyObject_SetAttrString(class, "__dlpack_c_exchange_api__", capsule) < 0) return NULL;
    Py_DECREF(capsule);
    if (PyModule_AddObjectRef(module, strchr(name, '.') + 1, class) < 0) return NULL;
    return class;
}

/* --- What a consumer in C does */

static Table *table_of(PyObject *object) {
    PyObject *capsule = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack_c_exchange_api__");
    if (!capsule) return NULL;
    Table *table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_DECREF(capsule);
    return table;
}

/* Of this thread alone: others that want the processor only cost us caches. */
static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Nanoseconds that `turns` exports and releases through the table take. */
static PyObject *run_table(PyObject *module, PyObject *args) {
    PyObject *object;
    Py_ssize_t turns;
    (void)module;
    if (!PyArg_ParseTuple(args, "On", &object, &turns)) return NULL;
    Table *table = table_of(object);
    if (!table) return NULL;
    long long start = now();
    for (Py_ssize_t i = 0; i < turns; i++) {
        Managed *managed;
        if (table->from_object(object, &managed) != 0) return NULL;
        managed->deleter(managed);
    }
    return PyLong_FromLongLong(now() - start);
}

/* The same for the function that lends without ownership. */
static PyObject *run_borrow(PyObject *module, PyObject *args) {
    PyObject *object;
    Py_ssize_t turns;
    (void)module;
    if (!PyArg_ParseTuple(args, "On", &object, &turns)) return NULL;
    Table *table = table_of(object);
    if (!table) return NULL;
    if (!table->borrow) Py_RETURN_NONE;
    long long start = now();
    for (Py_ssize_t i = 0; i < turns; i++) {
        Tensor tensor;
        if (table->borrow(object, &tensor) != 0) return NULL;
    }
    return PyLong_FromLongLong(now() - start);
}

/* The same for `__dlpack__(max_version=(1, 1))`, without an interpreter around it. */
static PyObject *run_call(PyObject *module, PyObject *args) {
    PyObject *object;
    Py_ssize_t turns;
    (void)module;
    if (!PyArg_ParseTuple(args, "On", &object, &turns)) return NULL;
    PyObject *words[2] = {object, version_1_1};
    long long start = now();
    for (Py_ssize_t i = 0; i < turns; i++) {
        PyObject *capsule = PyObject_VectorcallMethod(dlpack_name, words, 1, one_keyword);
        if (!capsule) return NULL;
        Py_DECREF(capsule);
    }
    return PyLong_FromLongLong(now() - start);
}

/* What the table exports, to be compared: data, flags, shape, strides. */
static PyObject *look(PyObject *module, PyObject *object) {
    (void)module;
    Table *table = table_of(object);
    Managed *managed;
    if (!table || table->from_object(object, &managed) != 0) return NULL;
    Tensor *tensor = &managed->tensor;
    PyObject *found = tensor->ndim != 3 ? PyErr_Format(PyExc_ValueError, "%d axes", tensor->ndim)
        : Py_BuildValue("KK(LLL)(LLL)(iii)",
            (unsigned long long)(uintptr_t)tensor->data + tensor->byte_offset, (unsigned long long)managed->flags,
            (long long)tensor->shape[0], (long long)tensor->shape[1], (long long)tensor->shape[2],
            (long long)tensor->strides[0], (long long)tensor->strides[1], (long long)tensor->strides[2],
            tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
    managed->deleter(managed);
    return found;
}

/* Ends a part of what callgrind counts, and names it. */
static PyObject *dump(PyObject *module, PyObject *name) {
    (void)module;
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
#ifdef HAS_CALLGRIND
    CALLGRIND_DUMP_STATS_AT(text);
    Py_RETURN_TRUE;
#else
    Py_RETURN_FALSE;
#endif
}

static PyMethodDef functions[] = {
    {"run_table", run_table, METH_VARARGS, NULL},
    {"run_borrow", run_borrow, METH_VARARGS, NULL},
    {"run_call", run_call, METH_VARARGS, NULL},
    {"look", look, METH_O, NULL},
    {"dump", dump, METH_O, NULL},
    {0},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "bench_c", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_bench_c(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    max_version_name = PyUnicode_InternFromString("max_version");
    stream_name = PyUnicode_InternFromString("stream");
    device_name = PyUnicode_InternFromString("dl_device");
    copy_name = PyUnicode_InternFromString("copy");
    dlpack_name = PyUnicode_InternFromString("__dlpack__");
    one_keyword = Py_BuildValue("(O)", max_version_name);
    version_1_1 = Py_BuildValue("(ii)", 1, 1);
    if (!make_class(module, "bench_c.Minimal", minimal_methods, &minimal_table)) return NULL;
    if (!make_class(module, "bench_c.Nothing", no_methods, &nothing_table)) return NULL;
    floor_class = (PyTypeObject *)make_class(module, "bench_c.Floor", floor_methods, &floor_table);
    return floor_class ? module : NULL;
}
