// Strategy A: the LARGEST largest values, largest first, in an array that stays in registers: every index
// is a number in the text once loops are unrolled. A value goes in by LARGEST selections that depend on
// none but their neighbours. BRANCHY 1: only where it is larger than the smallest, by a branch.

#define EACH _Pragma("unroll") for

KERNEL(BOUNDS) largest_in_registers(
    const double* maps, int cells, int slots, int years, int batch_years, int day, int window, double quantile,
    float* means, float* thresholds
) {
    const int cell = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell >= cells) return;
    float list[LARGEST];
    EACH (int k = 0; k < LARGEST; k++) list[k] = EMPTY;
    int n = 0;
    double sum = 0.0;
    for (int first = 0; first < years; first += batch_years) {
        const InBatch batch = in_batch(maps, cells, slots, years, batch_years, first, day);
        for (int i = 0; i < window * batch.years; i++) {
            const double value = batch.values[(i64)i * cells + cell];
            const bool valid = value == value;
            const float x = valid ? (float)value : EMPTY;
            n += valid;
            sum += valid ? value : 0.0;
#if BRANCHY
            if (x > list[LARGEST - 1])
#endif
            {
                EACH (int k = LARGEST - 1; k > 0; k--) list[k] = within(x, list[k], list[k - 1]);
                list[0] = within(x, list[0], -EMPTY);
            }
        }
    }
    // An index known at run time would send the list to memory: every place is looked at instead.
    const Rank rank = rank_of(n, quantile);
    float low = NONE, high = list[0];
    EACH (int k = 0; k < LARGEST; k++) {
        low = k == rank.from_top - 1 ? list[k] : low;
        high = k == rank.from_top - 2 ? list[k] : high;
    }
    const i64 at = (i64)day * cells + cell;
    means[at] = n ? (float)(sum / (double)n) : NONE;
    thresholds[at] = n ? between(low, high, rank.weight) : NONE;
}
