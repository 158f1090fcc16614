/* Preloaded into a process, counts what it allocates. glibc only: its allocator has second names to call. */
#include <errno.h>
#include <stddef.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static long long calls;

long long counted_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

static void count(void) { __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED); }

void *malloc(size_t bytes) {
    count();
    return __libc_malloc(bytes);
}

void *calloc(size_t items, size_t bytes) {
    count();
    return __libc_calloc(items, bytes);
}

void *realloc(void *old, size_t bytes) {
    count();
    return __libc_realloc(old, bytes);
}

void *memalign(size_t alignment, size_t bytes) {
    count();
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    void *memory = memalign(alignment, bytes);
    if (!memory) return ENOMEM;
    *out = memory;
    return 0;
}
