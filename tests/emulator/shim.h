// What portable.h leaves to a device, for a processor: the threads of a launch one after the other.
// The program's text follows, and then launch.h.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#define EMULATED
#define KERNEL(threads) static void
#define INLINE static inline
#define SHARED_WORDS(name) unsigned* name = emulated_shared

struct Place {
    unsigned x;
};
static Place blockIdx, threadIdx, blockDim;
static unsigned* emulated_shared;

INLINE unsigned popcount(unsigned x) { return __builtin_popcount(x); }
INLINE float rough_reciprocal(float x) { return 1.0f / x * 1.000001f; }
INLINE void flag(unsigned* where, unsigned bits) { *where |= bits; }
INLINE void add_to(unsigned* where, unsigned x) { *where += x; }
INLINE bool any_of(bool x) { return x; }

template <class To, class From>
INLINE To same_bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &x, sizeof(To));
    return to;
}
INLINE float float_of(unsigned bits) { return same_bits<float>(bits); }
INLINE double double_of(unsigned long long bits) { return same_bits<double>(bits); }
INLINE unsigned bits_of(float x) { return same_bits<unsigned>(x); }
INLINE unsigned long long bits_of(double x) { return same_bits<unsigned long long>(x); }

INLINE unsigned halves(unsigned low, unsigned high) { return (low & 0xffffu) | high << 16; }
INLINE unsigned larger(unsigned x, unsigned y) { return x > y ? x : y; }
INLINE unsigned smaller(unsigned x, unsigned y) { return x < y ? x : y; }
INLINE unsigned max2(unsigned x, unsigned y) {
    return halves(larger(x & 0xffffu, y & 0xffffu), larger(x >> 16, y >> 16));
}
INLINE unsigned min2(unsigned x, unsigned y) {
    return halves(smaller(x & 0xffffu, y & 0xffffu), smaller(x >> 16, y >> 16));
}
INLINE unsigned negate2(unsigned x) { return halves(0u - x, 0u - (x >> 16)); }
INLINE unsigned add_low(unsigned x, unsigned sum) { return sum + (x & 0xffffu); }
INLINE unsigned add_high(unsigned x, unsigned sum) { return sum + (x >> 16); }
INLINE float within(float x, float low, float high) { return fmaxf(low, fminf(high, x)); }

INLINE unsigned fma_halves(unsigned x, unsigned y, unsigned z) {
    unsigned both = 0;
    for (int shift = 0; shift < 32; shift += 16) {
        const auto half = [shift](unsigned two) { return (double)same_bits<_Float16>((uint16_t)(two >> shift)); };
        both |= (unsigned)same_bits<uint16_t>((_Float16)fma(half(x), half(y), half(z))) << shift;
    }
    return both;
}
