/*
 * Which compiler runs, and how it spells a device function.
 *
 * Device and algorithm sources are compiled twice: by the C compiler for the
 * emulated device and by `nvcc -x cu` for CUDA. This is the only file that
 * asks which; the rest of device/ tests RG_ON_CUDA where the two must differ.
 */
#ifndef RG_DEVICE_DEV_H
#define RG_DEVICE_DEV_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define RG_ON_CUDA 1
#define RG_FN      static __device__ __forceinline__
#define RG_FN_COLD static __device__ __noinline__
#else
#define RG_ON_CUDA 0
#define RG_FN      static inline __attribute__((always_inline, unused))
#define RG_FN_COLD static __attribute__((noinline, unused))
#include <assert.h>
#endif

/*
 * What may take the operation as a variable: on the emulated device one copy
 * serves all operations, which spares the compiler most of its work, and the
 * calls cost little beside what a thread pays to be heard by another one.
 */
#if RG_ON_CUDA
#define RG_FN_SHARED RG_FN
#elif defined(__clang__)
#define RG_FN_SHARED RG_FN_COLD
#else
#define RG_FN_SHARED static __attribute__((noinline, noclone, unused))
#endif

/*
 * A loop that is to have all registers: inlined into a kernel with every
 * algorithm in it, its addresses would lie in memory.
 */
#if RG_ON_CUDA
#define RG_FN_APART RG_FN_COLD
#else
#define RG_FN_APART RG_FN
#endif

/* Before a loop whose iterations do not depend on each other. */
#if RG_ON_CUDA
#define RG_INDEPENDENT
#elif defined(__clang__)
#define RG_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RG_INDEPENDENT _Pragma("GCC ivdep")
#endif

/*
 * Before a loop that must stay short: instructions are fetched as they are
 * needed, and a small invocation feels every line of them. And of a condition
 * that belongs out of the way.
 */
#if RG_ON_CUDA
#define RG_ROLLED   _Pragma("unroll 1")
#define RG_UNROLLED _Pragma("unroll")
#else
#define RG_ROLLED
#define RG_UNROLLED
#endif
#define RG_RARE(condition) __builtin_expect((condition) != 0, 0)

/* Where no run gets. */
#if RG_ON_CUDA
#define RG_TRAP() __trap()
#else
#define RG_TRAP() __builtin_trap()
#endif

#define RG_CAT_(a, b) a##b
#define RG_CAT(a, b)  RG_CAT_(a, b)

#endif
