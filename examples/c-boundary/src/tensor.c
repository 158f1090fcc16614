/* A C library that knows DLPack and nothing of Rust: it consumes tensors and produces one. */

#include <stdint.h>
#include <stdlib.h>

#include "dlpack_core.h"

/* Sums a matrix of doubles and releases the tensor; returns -1 for any other tensor. */
double tensor_sum(DLManagedTensorVersioned *managed)
{
    const DLTensor *t = &managed->dl_tensor;
    double sum = -1.0;
    if (managed->version.major == 1 && t->device.device_type == kDLCPU && t->ndim == 2
        && t->dtype.code == kDLFloat && t->dtype.bits == 64 && t->dtype.lanes == 1) {
        const double *first = (const double *)((const char *)t->data + t->byte_offset);
        sum = 0.0;
        for (int64_t i = 0; i < t->shape[0]; i++)
            for (int64_t j = 0; j < t->shape[1]; j++)
                sum += first[i * t->strides[0] + j * t->strides[1]];
    }
    if (managed->deleter)
        managed->deleter(managed);
    return sum;
}

/* Doubles every value in place; 0 where the tensor may not be written. The caller keeps the tensor. */
int tensor_double(DLManagedTensorVersioned *managed)
{
    DLTensor *t = &managed->dl_tensor;
    if (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY)
        return 0;
    double *first = (double *)((char *)t->data + t->byte_offset);
    for (int64_t i = 0; i < t->shape[0]; i++)
        for (int64_t j = 0; j < t->shape[1]; j++)
            first[i * t->strides[0] + j * t->strides[1]] *= 2.0;
    return 1;
}

static int alive = 0;

/* The number of our tensors that are not released yet. */
int tensor_alive(void)
{
    return alive;
}

typedef struct {
    DLManagedTensorVersioned managed;
    int64_t shape[1], strides[1];
    int32_t values[];
} Ramp;

static void ramp_free(DLManagedTensorVersioned *self)
{
    alive--;
    free(self->manager_ctx);
}

/* 0, 1, 2, ..: memory of C that the caller owns from now on. */
DLManagedTensorVersioned *tensor_ramp(int64_t count)
{
    Ramp *ramp = malloc(sizeof *ramp + (size_t)count * sizeof ramp->values[0]);
    if (!ramp)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        ramp->values[i] = (int32_t)i;
    ramp->shape[0] = count;
    ramp->strides[0] = 1;
    ramp->managed = (DLManagedTensorVersioned){
        .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
        .manager_ctx = ramp,
        .deleter = ramp_free,
        .flags = 0,
        .dl_tensor = {
            .data = ramp->values,
            .device = {kDLCPU, 0},
            .ndim = 1,
            .dtype = {.code = kDLInt, .bits = 32, .lanes = 1},
            .shape = ramp->shape,
            .strides = ramp->strides,
            .byte_offset = 0,
        },
    };
    alive++;
    return &ramp->managed;
}
