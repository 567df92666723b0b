// What a GPU's ceilings are measured with; portable.h goes before it. `threads` is the number of all
// threads of a launch, a multiple of the block.

struct alignas(16) Four {
    u32 x, y, z, w;
};
#define UNROLL 4
#define CHAINS 8
#define REPEAT _Pragma("unroll")

#ifndef EMULATED
// Two halves side by side: x * y + z. An instruction, for headers of halves are not at hand everywhere.
INLINE u32 fma_halves(u32 x, u32 y, u32 z) {
    u32 to;
#if defined(__HIPCC__) || defined(__HIPCC_RTC__)
    asm volatile("v_pk_fma_f16 %0, %1, %2, %3" : "=v"(to) : "v"(x), "v"(y), "v"(z));
#else
    asm volatile("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(to) : "r"(x), "r"(y), "r"(z));
#endif
    return to;
}
#endif
INLINE double fused(double x, double y, double z) { return fma(x, y, z); }
INLINE float fused(float x, float y, float z) { return fmaf(x, y, z); }

// Each thread the sum of UNROLL items; how many sums are `wanted` (in zeros none is 1). Each block its
// own stretch: there are no others.
KERNEL(256) read_once(const Four* from, u32 wanted, u32* found) {
    const i64 first = (i64)blockIdx.x * blockDim.x * UNROLL + threadIdx.x;
    Four here[UNROLL];
    u32 sum = 0;
    REPEAT
    for (int k = 0; k < UNROLL; k++) here[k] = from[first + (i64)k * blockDim.x];
    REPEAT
    for (int k = 0; k < UNROLL; k++) sum += here[k].x + here[k].y + here[k].z + here[k].w;
    if (sum == wanted) add_to(found, 1);
}

// The sum of all words, `passes` times over, into 64 words. `items` is a power of two and a multiple of
// UNROLL threads; every pass begins `skew` further on, so that a multiprocessor's own cache is no help.
KERNEL(256) read_again(const Four* from, i64 items, i64 threads, int passes, i64 skew, u32* sums) {
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 sum = 0;
    for (int p = 0; p < passes; p++)
        for (i64 i = thread; i < items; i += UNROLL * threads) {
            Four here[UNROLL];
            REPEAT
            for (int k = 0; k < UNROLL; k++)
                here[k] = from[(i + k * threads + p * skew) & (items - 1)];
            REPEAT
            for (int k = 0; k < UNROLL; k++) sum += here[k].x + here[k].y + here[k].z + here[k].w;
        }
    add_to(&sums[threadIdx.x & 63], sum);
}

// An item a thread: with several the H200 copies 5 % less.
KERNEL(256) copy_all(const Four* from, Four* to) {
    const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i];
}

struct alignas(16) Two {
    double x, y;
};
KERNEL(256) triad_all(const Two* first, const Two* second, Two* to, double factor) {
    const i64 start = (i64)blockIdx.x * blockDim.x * UNROLL + threadIdx.x;
    Two a[UNROLL], b[UNROLL];
    REPEAT
    for (int k = 0; k < UNROLL; k++) {
        a[k] = first[start + (i64)k * blockDim.x];
        b[k] = second[start + (i64)k * blockDim.x];
    }
    REPEAT
    for (int k = 0; k < UNROLL; k++) {
        const Two sum = {fused(factor, b[k].x, a[k].x), fused(factor, b[k].y, a[k].y)};
        to[start + (i64)k * blockDim.x] = sum;
    }
}

// CHAINS values a thread, each 16 `rounds` times y = y factor + addend; the sum of them is left.
#define FMA(name, Number)                                                          \
    KERNEL(256) name(Number* out, Number factor, Number addend, int rounds) {      \
        const int thread = blockIdx.x * blockDim.x + threadIdx.x;                  \
        Number y[CHAINS];                                                          \
        REPEAT                                                                     \
        for (int k = 0; k < CHAINS; k++) y[k] = (Number)((thread & 63) + k);       \
        for (int r = 0; r < rounds; r++) {                                         \
            REPEAT                                                                 \
            for (int s = 0; s < 16; s++) {                                         \
                REPEAT                                                             \
                for (int k = 0; k < CHAINS; k++) y[k] = fused(y[k], factor, addend); \
            }                                                                      \
        }                                                                          \
        Number sum = 0;                                                            \
        REPEAT                                                                     \
        for (int k = 0; k < CHAINS; k++) sum += y[k];                              \
        out[thread] = sum;                                                         \
    }
FMA(fma_float64, double)
FMA(fma_float32, float)

// The same with two halves in a word; all results, joined by exclusive or.
KERNEL(256) fma_float16(u32* out, u32 factor, u32 addend, int rounds) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    u32 y[CHAINS];
    REPEAT
    for (int k = 0; k < CHAINS; k++) y[k] = 0x3c003c00u + 0x00400040u * k;  // 1 and a little
    for (int r = 0; r < rounds; r++) {
        REPEAT
        for (int s = 0; s < 16; s++) {
            REPEAT
            for (int k = 0; k < CHAINS; k++) y[k] = fma_halves(y[k], factor, addend);
        }
    }
    u32 all = 0;
    REPEAT
    for (int k = 0; k < CHAINS; k++) all ^= y[k];
    out[thread] = all;
}

// 16 minima and maxima a round and chain, against bounds that no compiler knows.
#define MIN_MAX(name, Number, lower, upper)                                        \
    KERNEL(256) name(u32* out, const Number* bounds, int rounds) {                 \
        const int thread = blockIdx.x * blockDim.x + threadIdx.x;                  \
        Number y[CHAINS], bound[16];                                               \
        REPEAT                                                                     \
        for (int s = 0; s < 16; s++) bound[s] = bounds[s];                         \
        REPEAT                                                                     \
        for (int k = 0; k < CHAINS; k++) y[k] = (Number)(thread * 2654435761u) ^ bound[k]; \
        for (int r = 0; r < rounds; r++) {                                         \
            REPEAT                                                                 \
            for (int s = 0; s < 16; s += 2) {                                      \
                REPEAT                                                             \
                for (int k = 0; k < CHAINS; k++) y[k] = upper(lower(y[k], bound[s]), bound[s + 1]); \
            }                                                                      \
        }                                                                          \
        Number all = 0;                                                            \
        REPEAT                                                                     \
        for (int k = 0; k < CHAINS; k++) all ^= y[k];                              \
        out[thread] = (u32)all;                                                    \
    }
INLINE int lower_of(int x, int y) { return x < y ? x : y; }
INLINE int upper_of(int x, int y) { return x > y ? x : y; }
MIN_MAX(min_max_int32, int, lower_of, upper_of)
MIN_MAX(min_max_uint16, u32, min2, max2)

// y += popcount(y), 16 times a round and chain: a count and an addition.
KERNEL(256) popcount_words(u32* out, int rounds) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    u32 y[CHAINS];
    REPEAT
    for (int k = 0; k < CHAINS; k++) y[k] = thread * 2654435761u + k;
    for (int r = 0; r < rounds; r++) {
        REPEAT
        for (int s = 0; s < 16; s++) {
            REPEAT
            for (int k = 0; k < CHAINS; k++) y[k] += popcount(y[k]);
        }
    }
    u32 all = 0;
    REPEAT
    for (int k = 0; k < CHAINS; k++) all ^= y[k];
    out[thread] = all;
}

// Nothing: what a launch costs.
KERNEL(64) nothing(u32* out) {
    if (out == nullptr) return;
    out[threadIdx.x] = threadIdx.x;
}
