// Strategies B and C: moments instead of lists. Each value is added for every day whose window has it.

KERNEL(BOUNDS) window_sums(
    const double* maps, int cells, int years, int days, int window, const double* references, SUM* sums, int* counts
) {
    const int cell = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell < cells) add_values(maps, cells, years, days, window, references, sums, counts, cell);
}

KERNEL(BOUNDS) from_sums(
    int cells, int days, double fourth, double flat, double normal, double by_skewness, double by_kurtosis,
    double by_skewness_squared, const SUM* sums, const int* counts, const double* references, float* means,
    float* thresholds
) {
    const int cell = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell >= cells) return;
    const double about = references[cell];
    for (int day = 0; day < days; day++) {
        const Sums all = SUMS_AT(day);
        const i64 at = (i64)day * cells + cell;
        estimate(all, all.x2 / (SUM)all.n, about, fourth, flat, normal, by_skewness, by_kurtosis,
                 by_skewness_squared, means + at, thresholds + at);
    }
}
