// Count, mean, standard deviation, skewness and excess kurtosis of sliding windows, and ESTIMATES
// percentiles made of them: one thread, one cell. Each word's count, mean and central moments, taken
// about a value of its own, are kept in `memory` as long as a window needs them and merged. The
// formulas and their source are in moments.py. A place of 0 among the statistics says that one is
// not wanted; percentiles are the first.

struct Moments {
    double n, mean, m2, m3, m4;
};

#define PART(place, i) memory[((i64)(place) * 5 + (i)) * slice + (cell - from)]

KERNEL(256) moments_of_windows(
    const Key* keys, i64 stride, int cells, int from, int slice, const int* word_rows,
    const int* first_word, int days, const int* least, double scale, double offset,
    const float* references, const double* estimate, float* results, int mean_at, int count_at,
    int deviation_at, int skewness_at, int kurtosis_at, double* memory
) {
    const int cell = from + (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (cell >= cells || cell >= from + slice) return;
    const Scaling scaling = {scale, offset};
    int entered = 0;
    for (int day = 0; day < days; day++) {
        const int first = first_word[day];
        entered = entered < first ? first : entered;
        for (; entered < first + WORDS; entered++) {
            const int* rows = word_rows + entered * YEARS;
            double about = 0.0, total = 0.0;
            int n = 0;
            for (int y = 0; y < YEARS; y++) {
                const Key key = keys[rows[y] * stride + cell];
                if (!key) continue;
                const double x = value_of(key, scaling);
                if (n == 0) about = x;
                n++;
                total += x - about;
            }
            const double shift = total / (double)(n > 1 ? n : 1);
            double m2 = 0.0, m3 = 0.0, m4 = 0.0;
            for (int y = 0; y < YEARS; y++) {
                const Key key = keys[rows[y] * stride + cell];
                if (!key) continue;
                const double d = (value_of(key, scaling) - about) - shift;
                m2 += d * d;
                m3 += d * d * d;
                m4 += d * d * d * d;
            }
            const int place = entered % WORDS;
            PART(place, 0) = (double)n;
            PART(place, 1) = about + shift;
            PART(place, 2) = m2;
            PART(place, 3) = m3;
            PART(place, 4) = m4;
        }

        Moments all = {0.0, 0.0, 0.0, 0.0, 0.0};
        for (int w = first; w < first + WORDS; w++) {
            const int place = w % WORDS;
            const double k = PART(place, 0);
            if (k == 0.0) continue;
            const double mean = PART(place, 1), p2 = PART(place, 2), p3 = PART(place, 3);
            const double n = all.n, both = n + k;
            const double delta = n != 0.0 ? mean - all.mean : 0.0;
            const double share = delta / both;
            all.m4 += PART(place, 4) + delta * (share * (share * share)) * n * k * (n * n - n * k + k * k)
                + 6.0 * (share * share) * (n * n * p2 + k * k * all.m2)
                + 4.0 * share * (n * p3 - k * all.m3);
            all.m3 += p3 + delta * (share * share) * n * k * (n - k) + 3.0 * share * (n * p2 - k * all.m2);
            all.m2 += p2 + delta * share * n * k;
            all.mean = n != 0.0 ? all.mean + share * k : mean;
            all.n = both;
        }
        const bool enough = all.n >= (double)least[day], spread = all.m2 > 0.0;
        const float none = float_of(0x7fc00000u);
        const i64 statistic = (i64)days * cells, at = (i64)day * cells + cell;
        const double deviation = sqrt(all.m2 / all.n);
        const double skewness = spread ? sqrt(all.n) * all.m3 / pow(all.m2, 1.5) : 0.0;
        const double kurtosis = spread ? all.n * all.m4 / (all.m2 * all.m2) - 3.0 : 0.0;
        if (deviation_at) results[deviation_at * statistic + at] = enough ? narrowed(deviation) : none;
        if (skewness_at)
            results[skewness_at * statistic + at] = enough && spread ? narrowed(skewness) : none;
        if (kurtosis_at)
            results[kurtosis_at * statistic + at] = enough && spread ? narrowed(kurtosis) : none;
        if (mean_at)
            results[mean_at * statistic + at] = departure(enough, all.mean, references[cell]);
        if (count_at) results[count_at * statistic + at] = (float)all.n;
        for (int p = 0; p < ESTIMATES; p++) {
            const double* term = estimate + 4 * p;
            const double in_deviations = term[0] + term[1] * skewness + term[2] * kurtosis
                + term[3] * (skewness * skewness);
            const double from_mean = spread ? deviation * in_deviations : 0.0;
            const double whole = all.mean - widened(references[cell]) + from_mean;
            results[p * statistic + at] = enough ? narrowed(whole) : none;
        }
    }
}
