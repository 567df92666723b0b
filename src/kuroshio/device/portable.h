// One text for CUDA, HIP and, in the tests, plain C++: what differs between them is said here.
// A thread works alone: with its neighbours it shares no more than the vote `any_of`, which only saves
// work, and sums of integers in memory, so a wave may have any width.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#ifndef EMULATED

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define INLINE static __device__ __forceinline__
#define SHARED_WORDS(name) extern __shared__ u32 name[]

INLINE u32 popcount(u32 x) { return __popc(x); }
INLINE float rough_reciprocal(float x) { return __fdividef(1.0f, x); }
INLINE void flag(u32* where, u32 bits) { atomicOr(where, bits); }
INLINE void add_to(u32* where, u32 x) { atomicAdd(where, x); }
INLINE float float_of(u32 bits) { return __uint_as_float(bits); }
INLINE double double_of(u64 bits) { return __longlong_as_double((i64)bits); }
INLINE u32 bits_of(float x) { return __float_as_uint(x); }
INLINE u64 bits_of(double x) { return (u64)__double_as_longlong(x); }

#if defined(__HIPCC__) || defined(__HIPCC_RTC__)

typedef u16 u16x2 __attribute__((ext_vector_type(2)));
INLINE bool any_of(bool x) { return __any(x); }
INLINE u32 max2(u32 x, u32 y) {
    return __builtin_bit_cast(u32, __builtin_elementwise_max(__builtin_bit_cast(u16x2, x), __builtin_bit_cast(u16x2, y)));
}
INLINE u32 min2(u32 x, u32 y) {
    return __builtin_bit_cast(u32, __builtin_elementwise_min(__builtin_bit_cast(u16x2, x), __builtin_bit_cast(u16x2, y)));
}
INLINE u32 negate2(u32 x) { return ((0u - x) & 0xffffu) | ((0u - (x & 0xffff0000u)) & 0xffff0000u); }
INLINE u32 add_low(u32 x, u32 sum) { return sum + (x & 0xffffu); }
INLINE u32 add_high(u32 x, u32 sum) { return sum + (x >> 16); }
INLINE float within(float x, float low, float high) { return __builtin_amdgcn_fmed3f(x, low, high); }

#else

INLINE bool any_of(bool x) { return __any_sync(__activemask(), x); }
INLINE u32 max2(u32 x, u32 y) { return __vmaxu2(x, y); }
INLINE u32 min2(u32 x, u32 y) { return __vminu2(x, y); }
INLINE u32 negate2(u32 x) { return __vsub2(0u, x); }
INLINE u32 add_low(u32 x, u32 sum) { return __dp2a_lo(x, 0x1u, sum); }
INLINE u32 add_high(u32 x, u32 sum) { return __dp2a_lo(x, 0x100u, sum); }
INLINE float within(float x, float low, float high) { return fmaxf(low, fminf(high, x)); }

#endif
#endif

// The number itself: its bits are those of 2^52 + x. Devices convert integers slowly.
INLINE double exact(u32 x) { return double_of(0x4330000000000000ull | x) - 4503599627370496.0; }
INLINE u32 mask(bool x) { return x ? 0xffffffffu : 0u; }
INLINE u32 select(u32 where, u32 x, u32 y) { return (x & where) | (y & ~where); }
