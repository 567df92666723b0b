// Sums of the first four powers of values less a reference of the cell, and from sums the mean and the
// percentile that Cornish and Fisher's expansion estimates. SUM is the type that they have.
// As published the references are 0, SUM is float and the factor `fourth` is 1, which is wrong: it is 3.

#define NONE float_of(0x7fc00000u)
#define POWER(row, power) sums[((i64)(row) * 4 + (power) - 1) * cells + cell]

INLINE float fused(float x, float y, float z) { return fmaf(x, y, z); }
INLINE double fused(double x, double y, double z) { return fma(x, y, z); }
INLINE float root(float x) { return sqrtf(x); }
INLINE double root(double x) { return sqrt(x); }

struct Sums {
    SUM x1, x2, x3, x4;
    int n;
};

#define SUMS_AT(row) \
    { POWER(row, 1), POWER(row, 2), POWER(row, 3), POWER(row, 4), counts[(i64)(row) * cells + cell] }

// The cell's first valid value, NaN until there is one. It is looked for in every batch, for `first` is
// the batch that forgets the pass before.
KERNEL(BOUNDS) find_references(const double* maps, int cells, int count, int first, double* references) {
    const int cell = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell >= cells) return;
    double found = first ? (double)NONE : references[cell];
    for (int i = 0; i < count && found != found; i++) found = maps[(i64)i * cells + cell];
    references[cell] = found;
}

// The values of a batch to the sums of each row: row r has `window` slots from slot r on. There is no
// branch: a missing value adds zeros.
INLINE void add_values(
    const double* maps, int cells, int years, int rows, int window, const double* references, SUM* sums,
    int* counts, int cell
) {
    const double about = references[cell];
    for (int row = 0; row < rows; row++) {
        Sums all = SUMS_AT(row);
        const double* values = maps + (i64)row * years * cells + cell;
        for (int i = 0; i < window * years; i++) {
            const double value = values[(i64)i * cells];
            const bool valid = value == value;
            const SUM x = valid ? (SUM)(value - about) : (SUM)0, square = x * x;
            all.n += valid;
            all.x1 += x;
            all.x2 = fused(x, x, all.x2);
            all.x3 = fused(square, x, all.x3);
            all.x4 = fused(square, square, all.x4);
        }
        POWER(row, 1) = all.x1;
        POWER(row, 2) = all.x2;
        POWER(row, 3) = all.x3;
        POWER(row, 4) = all.x4;
        counts[(i64)row * cells + cell] = all.n;
    }
}

// Mean and percentile of a pool. A variance of no more than `flat` times `most`, the largest mean square
// that went through these sums, is what rounding left of none: then the percentile is the mean. `normal`
// to `by_skewness_squared` as in cornish_fisher.py.
INLINE void estimate(
    Sums all, SUM most, double about, double fourth, double flat, double normal, double by_skewness,
    double by_kurtosis, double by_skewness_squared, float* mean, float* threshold
) {
    const SUM n = (SUM)all.n, mu = all.x1 / n, e3 = all.x3 / n;
    const SUM variance = all.x2 / n - mu * mu;
    const SUM third = e3 - (SUM)3 * mu * variance - mu * mu * mu;
    const SUM square = mu * mu;
    const SUM around = all.x4 / n - (SUM)4 * mu * e3 + (SUM)6 * square * variance + (SUM)fourth * (square * square);
    const SUM sigma = root(variance);
    const SUM skewness = third / (variance * sigma);
    const SUM kurtosis = around / (variance * variance) - (SUM)3;
    const SUM in_sigmas = (SUM)normal + (SUM)by_skewness * skewness + (SUM)by_kurtosis * kurtosis
        + (SUM)by_skewness_squared * (skewness * skewness);
    const bool spread = variance > (SUM)flat * most;
    *mean = all.n ? (float)(about + (double)mu) : NONE;
    *threshold = all.n ? (float)(about + (double)(spread ? mu + sigma * in_sigmas : mu)) : NONE;
}
