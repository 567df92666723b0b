// Exact means and percentiles of sliding windows from sorted lists: one thread, two cells of 16-bit
// keys, side by side in one register. For percentiles near an end of the pool. See list_windows.py.
//
// Words are joined to lists in blocks as long as a window. A window is the end of a block (its
// suffix, joined backwards once a block) and the start of the next (its prefix, which grows word by
// word). All lists of a block lie in shared memory, the prefix and the word that enters in registers.
// The window that is a whole block is never joined: it is the block's first word and the rest.
// Missing keys are 0 and sort last, so a pool with gaps needs another rank of the same lists: the
// prefix is moved down until its rank is the one that the text was made for.
//
// Few pools have so many gaps that their rank is another, and a text that minds them is slower for
// all: with MOVES 0 a block that meets one leaves it to a second launch, with MOVES 1, by `again`.
//
// A wave has a scheduler nearly to itself, so what would make it wait is put beside what it can do
// meanwhile: the loads of the next word and the arithmetic of the last window beside the sorting.

#define LIST(place, i) shared[((place) * LONGEST + (i)) * BLOCK + threadIdx.x]
#define SUM_LOW(place) shared[(WORDS * LONGEST + (place)) * BLOCK + threadIdx.x]
#define SUM_HIGH(place) shared[(WORDS * LONGEST + WORDS + (place)) * BLOCK + threadIdx.x]
#define GAPS(place) shared[(WORDS * LONGEST + 2 * WORDS + (place)) * BLOCK + threadIdx.x]
#define EACH _Pragma("unroll") for
#define FULL (WORDS * YEARS)
#define ONES 0x00010001u

// Values that a result needs: mostly the same number for all days.
#if FEWEST
#define LEAST(day) FEWEST
#else
#define LEAST(day) least[day]
#endif

// Rows are numbered in 16 bits, two in a register, and read a word before the keys that lie in them.
#define ROW_WORDS ((YEARS + 7) / 8 * 4)
#define KEYS_OF(y) *(const u32*)(here + (u64)(rows[(y) / 2] >> 16 * ((y) % 2) & 0xffffu) * stride_bytes)

struct Target {
    float* results;
    Scaling scaling;
    i64 statistic;
    int pair, pairs;
    float reference[2];
};

// Two cells of a window as they leave the lists.
struct Window {
    u32 kth[PERCENTILES], before[PERCENTILES];
    double weight[PERCENTILES][2];
    u32 sum[2];
    int n[2], fewest;
};

struct alignas(8) Both {
    float cell[2];
};

struct alignas(16) Four {
    u32 word[4];
};

// How far the wanted rank of a pool of n lies before that of a full pool.
INLINE int beyond(int n, double quantile, int full, double& weight) {
    const double position = (exact(n) - 1.0) * quantile;
    const int rank = (int)position;
    weight = position - exact(rank);
    return full - (LARGEST ? n - rank : rank + 2);
}

// x / n, correctly rounded, without the detours of a division: Newton's steps make the reciprocal
// the nearest there is, and then the remainder makes the quotient so (Markstein 1990).
INLINE double quotient(u32 x, int n) {
    const double whole = exact(n);
    double r = (double)rough_reciprocal((float)n);
    r = fma(fma(-r, whole, 1.0), r, r);
    r = fma(fma(-r, whole, 1.0), r, r);
    const double near = exact(x) * r;
    return fma(fma(-near, whole, exact(x)), r, near);
}

INLINE double value_at(u32 key, Scaling scaling) {
    return value_of(LARGEST ? key : (0x10000u - key) & 0xffffu, scaling);
}

INLINE void finish(const Window& w, int day, const Target& to) {
    const i64 at = 2 * ((i64)day * to.pairs + to.pair);
    const int numbers[] = {NUMBERS};
    Both result;
    EACH(int q = 0; q < PERCENTILES; q++) {
        EACH(int i = 0; i < 2; i++) {
            const double kth = value_at(w.kth[q] >> 16 * i & 0xffffu, to.scaling);
            const double before = value_at(w.before[q] >> 16 * i & 0xffffu, to.scaling);
            result.cell[i] = departure(
                w.n[i] >= w.fewest,
                between(LARGEST ? kth : before, LARGEST ? before : kth, w.weight[q][i]),
                to.reference[i]);
        }
        *(Both*)(to.results + numbers[q] * to.statistic + at) = result;
    }
#if WITH_MEAN
    EACH(int i = 0; i < 2; i++)
        result.cell[i] = departure(
            w.n[i] >= w.fewest, value_between(quotient(w.sum[i], w.n[i]), to.scaling),
            to.reference[i]);
    *(Both*)(to.results + STATISTICS_BEFORE_MEAN * to.statistic + at) = result;
#endif
#if COUNT_AT
    EACH(int i = 0; i < 2; i++) result.cell[i] = (float)w.n[i];
    *(Both*)(to.results + COUNT_AT * to.statistic + at) = result;
#endif
}

INLINE void load_rows(u32* rows, const u32* table) {
    EACH(int i = 0; i < ROW_WORDS; i += 4) {
        const Four four = *(const Four*)(table + i);
        EACH(int k = 0; k < 4; k++) rows[i + k] = four.word[k];
    }
}

// Runs of windows, each moved on by one word from the one before: `run` (run, 3) has the first day
// of year of each, one more than the last, and its first word.
KERNEL(BLOCK) windows_by_lists(
    const u32* keys, u32 stride_bytes, int pairs, const u32* word_rows, const int* run, int runs,
    int days, const int* least, const double* quantiles, double scale, double offset,
    const float* references, float* results, u8* again
) {
#if MOVES
    if (!again[blockIdx.x]) return;
#endif
    SHARED_WORDS(shared);
    const int pair = blockIdx.x * BLOCK + threadIdx.x;
    if (pair >= pairs) return;
    const Target target = {
        results, {scale, offset}, 2 * (i64)days * pairs, pair, pairs,
        {references[2 * pair], references[2 * pair + 1]}
    };
    double quantile[PERCENTILES];
    EACH(int q = 0; q < PERCENTILES; q++) quantile[q] = quantiles[q];
    const u8* here = (const u8*)(keys + pair);
    u32 v[YEARS], next[YEARS], rows[ROW_WORDS], prefix[LONGEST], suffix[LONGEST];

    for (int r = 0; r < runs; r++) {
        const int begin = run[3 * r], windows = run[3 * r + 1] - begin;
        const u32* table = word_rows + run[3 * r + 2] * ROW_WORDS;
        const int words = windows + WORDS - 1;
        load_rows(rows, table);
        EACH(int y = 0; y < YEARS; y++) next[y] = KEYS_OF(y);
        load_rows(rows, table + (words > 1 ? ROW_WORDS : 0));
        for (int j = 0; j < WORDS; j++) {
            SUM_LOW(j) = 0;
            SUM_HIGH(j) = 0;
            GAPS(j) = YEARS * ONES;
            for (int i = 0; i < LONGEST; i++) LIST(j, i) = 0;
        }
        Window done = {};
        u32 low_sum = 0, high_sum = 0;
        u32 gaps = FULL * ONES;  // of both cells
        EACH(int i = 0; i < LONGEST; i++) prefix[i] = 0;
        for (int start = 0; start <= words; start += WORDS) {
#pragma unroll 1
            for (int j = 0; j < WORDS; j++) {
                const int word = start + j;       // enters now
                const int window = word - WORDS;  // complete with the word before
                if (window >= windows) break;
                EACH(int i = 0; i < LONGEST; i++) suffix[i] = LIST(j, i);
                EACH(int y = 0; y < YEARS; y++) v[y] = next[y];
                EACH(int y = 0; y < YEARS; y++) next[y] = KEYS_OF(y);
                load_rows(rows, table + (word + 2 < words ? word + 2 : words - 1) * ROW_WORDS);
                u32 low_new = 0, high_new = 0;
                EACH(int y = 0; y < YEARS; y++) {
                    low_new = add_low(v[y], low_new);
                    high_new = add_high(v[y], high_new);
#if !LARGEST
                    v[y] = negate2(v[y]);
#endif
                }
                finish(done, begin + (window > 0 ? window - 1 : 0), target);
                SORT
                done.n[0] = FULL - (int)(gaps & 0xffffu);
                done.n[1] = FULL - (int)(gaps >> 16);
                done.sum[0] = low_sum;
                done.sum[1] = high_sum;
                done.fewest = LEAST(begin + (window > 0 ? window : 0));
                QUERIES
                u32 gaps_new = 0;
                if (any_of(min2(v[YEARS - 1], ONES) != ONES)) {
                    gaps_new = YEARS * ONES;
                    EACH(int y = 0; y < YEARS; y++) gaps_new -= min2(v[y], ONES);
                }
                gaps += gaps_new - GAPS(j);
                GAPS(j) = gaps_new;
                low_sum += low_new - SUM_LOW(j);
                high_sum += high_new - SUM_HIGH(j);
                SUM_LOW(j) = low_new;
                SUM_HIGH(j) = high_new;
                EACH(int y = 0; y < YEARS; y++) LIST(j, y) = v[y];
                if (j == 0) {
                    EACH(int i = 0; i < LONGEST; i++) prefix[i] = i < YEARS ? v[i % YEARS] : 0;
                } else if (j < WORDS - 1) JOIN
            }
            if (start + WORDS > words) break;
#if WORDS == 1
            EACH(int i = 0; i < LONGEST; i++) prefix[i] = 0;
#else
            EACH(int i = 0; i < LONGEST; i++) prefix[i] = LIST(WORDS - 1, i);
            EACH(int y = 0; y < YEARS; y++) v[y] = LIST(WORDS - 2, y);
#pragma unroll 3
            for (int j = WORDS - 2; j >= 1; j--) {
                EACH(int y = 0; y < YEARS; y++) suffix[y] = LIST(j - 1, y);
                JOIN
                EACH(int i = 0; i < LONGEST; i++) LIST(j, i) = prefix[i];
                EACH(int y = 0; y < YEARS; y++) v[y] = suffix[y];
            }
#endif
        }
        finish(done, begin + windows - 1, target);
    }
}
