// Exact means and percentiles of sliding windows from bit planes: one thread, one cell.
// Any percentile, any kind of key, any number of missing values. See percentile.py and bitplanes.py.
//
// A thread keeps the planes of the last WORDS words (a word: the up to 32 keys of one offset), for
// each of its cell's days of year walks down them, and forgets the oldest. Where a cell's keys differ
// in few bits the planes fit into registers (IN_REGISTERS): every index is known when this is
// compiled, and a new word moves all others up. Else they are a ring in the device's memory.

// A word's PLANES planes, then which of its values exist, and their sum.
#define VALID PLANES
#define SUM (PLANES + 1)
#if KIND == AFFINE16
#define WORD_SIZE (PLANES + 2)
#else
#define WORD_SIZE (PLANES + 3)
#endif

#if IN_REGISTERS
#define RING(place, part) ring[place][part]
#define EACH_PLANE _Pragma("unroll")
#else
#define RING(place, part) ring[(i64)((place) * WORD_SIZE + (part)) * slice]
#define EACH_PLANE _Pragma("unroll 1")
#endif
#define EACH_WORD _Pragma("unroll")

// Smallest key and number of planes of each cell's keys; 0 planes are enough where all are equal.
KERNEL(256) extremes(
    const Key* keys, i64 stride, int cells, const int* rows, int n_rows, Key* lowest, u8* tops
) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    Key below = (Key)~(Key)0, largest = 0;
    for (int i = 0; i < n_rows; i++) {
        const Key key = keys[rows[i] * stride + cell];
        const Key less = (Key)(key - 1);  // a missing key wraps to the top
        below = less < below ? less : below;
        largest = key > largest ? key : largest;
    }
    const Key smallest = (Key)(below + 1);
    lowest[cell] = smallest;
    int top = 0;
    for (Wide span = (Key)(largest - smallest); largest && span; span >>= 1) top++;
    tops[cell] = (u8)top;
}

// Cells `from` to `from + slice` whose keys need FEWEST_PLANES to PLANES planes.
KERNEL(BLOCK) windows_by_planes(
    const Key* keys, i64 stride, int cells, int from, int slice, const int* word_rows,
    const int* first_word, int days, const int* least, const Key* lowest, const u8* tops,
    const double* quantiles, double scale, double offset, const float* references, float* results,
    u32* memory
) {
    const int cell = from + (int)(blockIdx.x * BLOCK + threadIdx.x);
    if (cell >= cells || cell >= from + slice) return;
    const int top = tops[cell];
    if (top < FEWEST_PLANES || top > PLANES) return;
    const Scaling scaling = {scale, offset};
#if IN_REGISTERS
    u32 ring[WORDS][WORD_SIZE];
#else
    u32* ring = memory + (cell - from);
    int oldest = 0;
#endif
    EACH_WORD for (int w = 0; w < WORDS; w++) RING(w, VALID) = 0;
    const Key base = lowest[cell];
    const float reference = references[cell];
    u32 n = 0;
#if KIND == AFFINE16
    u32 total = 0;
    EACH_WORD for (int w = 0; w < WORDS; w++) RING(w, SUM) = 0;
#endif

    int entered = -WORDS;
    for (int day = 0; day < days; day++) {
        const int first = first_word[day];
        const int last = first + WORDS;
        entered = entered < first ? first : entered;
        for (; entered < last; entered++) {
            const int* rows = word_rows + entered * YEARS;
#if IN_REGISTERS
            const int place = WORDS - 1;
            n -= popcount(RING(0, VALID));
#if KIND == AFFINE16
            total -= RING(0, SUM);
#endif
            EACH_WORD for (int w = 0; w < WORDS - 1; w++)
                EACH_WORD for (int i = 0; i < WORD_SIZE; i++) ring[w][i] = ring[w + 1][i];
#else
            const int place = oldest;
            oldest = oldest + 1 == WORDS ? 0 : oldest + 1;
            n -= popcount(RING(place, VALID));
#if KIND == AFFINE16
            total -= RING(place, SUM);
#endif
#endif
            u32 valid = 0;
#if KIND == AFFINE16
            u32 sum = 0;
#else
            double sum = 0.0;
#endif
            Key v[YEARS];
            EACH_WORD for (int y = 0; y < YEARS; y++) v[y] = keys[rows[y] * stride + cell];
            EACH_WORD for (int y = 0; y < YEARS; y++) {
                valid |= v[y] ? 1u << y : 0u;
#if KIND == AFFINE16
                sum += v[y];
#else
                sum += v[y] ? value_of(v[y], scaling) : 0.0;
#endif
                v[y] = v[y] ? (Key)(v[y] - base) : (Key)0;
            }
            TO_PLANES
            RING(place, VALID) = valid;
            n += popcount(valid);
#if KIND == AFFINE16
            RING(place, SUM) = sum;
            total += sum;
#else
            const u64 raw = bits_of(sum);
            RING(place, SUM) = (u32)raw;
            RING(place, SUM + 1) = (u32)(raw >> 32);
#endif
        }

        const bool enough = (int)n >= least[day];
        const i64 statistic = (i64)days * cells, at = (i64)day * cells + cell;
#if KIND == AFFINE16
        const double mean = value_between((double)total / (double)n, scaling);
#else
        double total = 0.0;  // always in the order of the days: sums of floats depend on it
        EACH_WORD for (int w = 0; w < WORDS; w++) {
#if IN_REGISTERS
            const int place = w;
#else
            const int place = oldest + w < WORDS ? oldest + w : oldest + w - WORDS;
#endif
            total += double_of(RING(place, SUM) | (u64)RING(place, SUM + 1) << 32);
        }
        const double mean = total / (double)n;
#endif
#if WITH_MEAN
        results[STATISTICS_BEFORE_MEAN * statistic + at] = departure(enough, mean, reference);
#endif
#if COUNT_AT
        results[COUNT_AT * statistic + at] = (float)n;
#endif

        const int numbers[] = {NUMBERS};
        for (int q = 0; q < PERCENTILES; q++) {
            const double position = (double)((int)n - 1) * quantiles[q];
            u32 rank = (u32)(int)position;
            const double weight = position - (double)(int)position;
            // The candidates for the lower order statistic, and once the upper one parts from it
            // (`parted`), those above for that.
            u32 m[WORDS], above[WORDS];
            EACH_WORD for (int w = 0; w < WORDS; w++) {
                m[w] = RING(w, VALID);
                above[w] = 0;
            }
            Wide lower = 0, upper = 0;
            u32 parted = 0;
            EACH_PLANE for (int p = PLANES - 1; p >= 0; p--) {
                if (!any_of(p < top)) continue;  // planes that no cell of the wave has
                u32 plane[WORDS];
                EACH_WORD for (int w = 0; w < WORDS; w++) plane[w] = RING(w, p);
                if (any_of(parted)) {
                    u32 bit;
                    LEAST
                    upper = upper << 1 | (bit & 1);
                }
                u32 ones, zeros, parting;
                SPLIT
                const u32 fresh = parting & ~parted;
                if (any_of(fresh)) {
                    EACH_WORD for (int w = 0; w < WORDS; w++) above[w] |= m[w] & plane[w] & fresh;
                    upper = fresh ? lower << 1 | 1 : upper;
                    parted |= fresh;
                }
                rank -= zeros & ones;
                lower = lower << 1 | (ones & 1);
                KEEP
            }
            upper = parted ? upper : lower;
            const double low = value_of((Wide)(lower + base), scaling);
            const double high = value_of((Wide)(upper + base), scaling);
            results[numbers[q] * statistic + at] =
                departure(enough, between(low, high, weight), reference);
        }
    }
}
