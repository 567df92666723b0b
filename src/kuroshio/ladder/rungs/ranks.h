// Where a percentile lies among n sorted values, and lists of the LARGEST largest.

#define EMPTY float_of(0xff800000u)  // minus infinity: below every value
#define NONE float_of(0x7fc00000u)

// The percentile lies between the values at places `below` and one above, from 0 upwards (type 7 of
// Hyndman and Fan). From the top the lower one is the `from_top`-th, counted from 1.
struct Rank {
    int from_top;
    double weight;
};

INLINE Rank rank_of(int n, double quantile) {
    const double position = (double)(n - 1) * quantile;
    const int below = (int)(position + 1e-9);  // of a product that is all but whole, the whole
    return {n - below, position > (double)below ? position - (double)below : 0.0};
}

INLINE float between(float low, float high, double weight) {
    return weight > 0.0 ? (float)((double)low + weight * ((double)high - (double)low)) : low;
}

// The maps of a whole pass lie as their batches came, (batch; slot, year, cell), of `batch_years` years or
// in the last one perhaps fewer. Within a batch the maps of a day's window follow each other.
struct InBatch {
    const double* values;  // of the window's first map
    int years;
};

INLINE InBatch in_batch(const double* maps, i64 cells, int slots, int years, int batch_years, int first, int day) {
    const int count = years - first < batch_years ? years - first : batch_years;
    return {maps + ((i64)slots * first + (i64)day * count) * cells, count};
}
