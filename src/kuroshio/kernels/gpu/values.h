// Keys to values and results (see keys.py). The text is specialised by KIND: AFFINE16, AFFINE32,
// FLOAT32 or FLOAT64. Multiplications and additions are never fused, as on the processor.

#if KIND == AFFINE16
typedef u16 Key;
#define KEY_BITS 16
#elif KIND == FLOAT64
typedef u64 Key;
#define KEY_BITS 64
#else
typedef u32 Key;
#define KEY_BITS 32
#endif

#if KEY_BITS == 64
typedef u64 Wide;
#else
typedef u32 Wide;
#endif

#define AFFINE (KIND == AFFINE16 || KIND == AFFINE32)

struct Scaling {
    double scale, offset;
};

// A real number counted in keys to the value there.
INLINE double value_between(double key, Scaling how) {
    return (key - (double)(1ull << (KEY_BITS - 1))) * how.scale + how.offset;
}

// CuPy has compilers take float32 below 1.2e-38 for zero. What is made of keys with a scale is never
// so small; other float32 become float64, and those become float32, by their bits.
INLINE double widened(float x) {
#if AFFINE
    return (double)x;
#else
    const u32 bits = bits_of(x), digits = bits & 0x7fffffu, exponent = bits >> 23 & 0xffu;
    const u64 sign = (u64)(bits >> 31) << 63;
    if (exponent == 0) return double_of(bits_of(exact(digits) * 0x1p-149) | sign);
    return double_of(sign | (u64)(exponent == 255 ? 2047 : exponent + 896) << 52 | (u64)digits << 29);
#endif
}

INLINE float narrowed(double x) {
#if !AFFINE
    const u64 bits = bits_of(x), size = bits & ~(1ull << 63);
    if (size < 0x3810000000000000ull)  // 2^-126: a count of 2^-149, a half to the even one
        return float_of(((u32)(bits >> 32) & 0x80000000u) | (u32)bits_of(double_of(size) * 0x1p149 + 0x1p52));
#endif
    return (float)x;
}

INLINE double value_of(Wide key, Scaling how) {
#if KEY_BITS != 64 && AFFINE
    return value_between(exact(key), how);
#elif KIND == FLOAT32
    return widened(float_of(key >> 31 ? key ^ 0x80000000u : ~key));
#else
    return double_of(key >> 63 ? key ^ (1ull << 63) : ~key);
#endif
}

// A result as it is kept: less the cell's reference, NaN where there is none.
INLINE float departure(bool there, double result, float reference) {
    return there ? narrowed(result - widened(reference)) : float_of(0x7fc00000u);
}

// Between two neighbouring order statistics; with weight 0 the upper one need not exist.
INLINE double between(double low, double high, double weight) {
    return weight == 0.0 ? low : low + weight * (high - low);
}
