// Strategy D: moments of disjoint sets add. Each value is added once, to the sums of its slot; then the
// window slides: the slot that enters is added, the one that leaves is subtracted.

KERNEL(BOUNDS) slot_sums(
    const double* maps, int cells, int years, int slots, const double* references, SUM* sums, int* counts
) {
    const int cell = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell < cells) add_values(maps, cells, years, slots, 1, references, sums, counts, cell);
}

KERNEL(BOUNDS) slide(
    int cells, int days, int window, double fourth, double flat, double normal, double by_skewness,
    double by_kurtosis, double by_skewness_squared, const SUM* sums, const int* counts, const double* references,
    float* means, float* thresholds
) {
    const int cell = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell >= cells) return;
    const double about = references[cell];
    Sums all = {0, 0, 0, 0, 0};
    SUM most = 0;
    for (int slot = 0; slot < window + days - 1; slot++) {
        const Sums entering = SUMS_AT(slot);
        all.x1 += entering.x1;
        all.x2 += entering.x2;
        all.x3 += entering.x3;
        all.x4 += entering.x4;
        all.n += entering.n;
        most = all.x2 > most ? all.x2 : most;
        const int day = slot - window + 1;
        if (day > 0) {
            const Sums leaving = SUMS_AT(day - 1);
            all.x1 -= leaving.x1;
            all.x2 -= leaving.x2;
            all.x3 -= leaving.x3;
            all.x4 -= leaving.x4;
            all.n -= leaving.n;
        }
        if (day < 0) continue;
        const i64 at = (i64)day * cells + cell;
        estimate(all, most / (SUM)all.n, about, fourth, flat, normal, by_skewness, by_kurtosis, by_skewness_squared,
                 means + at, thresholds + at);
    }
}
