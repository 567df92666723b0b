// The baseline: a heap of the LARGEST largest values, smallest on top, in an array that is indexed by
// numbers known only at run time. Whatever it is called, such an array lies in memory: compilers put it
// into a thread's scratch (AMD) or stack frame (NVIDIA).

INLINE void empty(float* heap) {
    for (int k = 0; k < LARGEST; k++) heap[k] = EMPTY;
}

// In place of the smallest, where it is larger.
INLINE void push(float* heap, float x) {
    if (!(x > heap[0])) return;
    int at = 0;
    for (int child = 1; child < LARGEST; child = 2 * at + 1) {
        if (child + 1 < LARGEST && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= x) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = x;
}

INLINE float percentile_of(float* heap, int n, double quantile) {
    if (!n) return NONE;
    for (int i = 1; i < LARGEST; i++) {
        const float x = heap[i];
        int at = i;
        for (; at > 0 && heap[at - 1] < x; at--) heap[at] = heap[at - 1];
        heap[at] = x;
    }
    const Rank rank = rank_of(n, quantile);
    if (rank.from_top > LARGEST) return NONE;
    return between(heap[rank.from_top - 1], heap[rank.from_top > 1 ? rank.from_top - 2 : 0], rank.weight);
}

#define HEAP(k) heaps[((i64)day * LARGEST + (k)) * cells + cell]

// The values of a batch into the heap of each day.
KERNEL(BOUNDS) push_heaps(
    const double* maps, int cells, int years, int days, int window, float* heaps, int* counts, double* sums
) {
    const int cell = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell >= cells) return;
    float heap[LARGEST];
    for (int day = 0; day < days; day++) {
        const i64 at = (i64)day * cells + cell;
        int n = counts[at];
        double sum = sums[at];
        if (n)
            for (int k = 0; k < LARGEST; k++) heap[k] = HEAP(k);
        else
            empty(heap);
        const double* values = maps + (i64)day * years * cells + cell;
        for (int i = 0; i < window * years; i++) {
            const double value = values[(i64)i * cells];
            if (value != value) continue;
            n++;
            sum += value;
            push(heap, (float)value);
        }
        for (int k = 0; k < LARGEST; k++) HEAP(k) = heap[k];
        counts[at] = n;
        sums[at] = sum;
    }
}

KERNEL(BOUNDS) from_heaps(
    int cells, int days, double quantile, const float* heaps, const int* counts, const double* sums,
    float* means, float* thresholds
) {
    const int cell = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell >= cells) return;
    float heap[LARGEST];
    for (int day = 0; day < days; day++) {
        const i64 at = (i64)day * cells + cell;
        const int n = counts[at];
        for (int k = 0; k < LARGEST; k++) heap[k] = HEAP(k);
        means[at] = n ? (float)(sums[at] / (double)n) : NONE;
        thresholds[at] = percentile_of(heap, n, quantile);
    }
}

// For comparison what `largest_in_registers` (registers.h) does, with a heap.
KERNEL(BOUNDS) largest_by_heap(
    const double* maps, int cells, int slots, int years, int batch_years, int day, int window, double quantile,
    float* means, float* thresholds
) {
    const int cell = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell >= cells) return;
    float heap[LARGEST];
    empty(heap);
    int n = 0;
    double sum = 0.0;
    for (int first = 0; first < years; first += batch_years) {
        const InBatch batch = in_batch(maps, cells, slots, years, batch_years, first, day);
        for (int i = 0; i < window * batch.years; i++) {
            const double value = batch.values[(i64)i * cells + cell];
            if (value != value) continue;
            n++;
            sum += value;
            push(heap, (float)value);
        }
    }
    const i64 at = (i64)day * cells + cell;
    means[at] = n ? (float)(sum / (double)n) : NONE;
    thresholds[at] = percentile_of(heap, n, quantile);
}
