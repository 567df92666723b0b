// What is done to rows of keys before the windows: a map of codes to keys, gaps filled, a reference
// for each cell. One thread, one cell. The same steps as archive/decode.py, fill.py and smooth.py.

// What is to be known of a map on its way to a row: which row (-1: none), and whether and which code is
// missing; of floats, which bits.
struct Map {
    int row, filled;
    u64 fill;
};

// Maps of keys, cell by cell as they are kept, to their rows.
KERNEL(256) place_maps(
    const Key* maps, i64 map_stride, int n_maps, int cells, const Map* table, Key* keys, i64 stride
) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    for (int m = 0; m < n_maps; m++)
        if (table[m].row >= 0) keys[table[m].row * stride + cell] = maps[m * map_stride + cell];
}

// Whole maps as they come out of a file to keys. Of shuffled 16-bit codes: all low bytes of a map
// and then all high bytes, in planes `plane_stride` bytes apart, of maps `map_stride` apart. `places`
// says where in a row a cell of the grid is kept, -1: nowhere.
// Bit 0 of `seen`: a valid code had no key; bit 1: a value on what was taken for land.
#if KIND == AFFINE16
KERNEL(256) unpack_maps(
    const u8* maps, i64 map_stride, i64 plane_stride, int n_maps, int cells, const int* places,
    const Map* table, Key* keys, i64 stride, u32* seen
) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    const int place = places[cell];
    u32 odd = 0;
    for (int m = 0; m < n_maps; m++) {
        const Map how = table[m];
        if (how.row < 0) continue;
        const u8* map = maps + m * map_stride;
        const u32 code = map[cell] | (u32)map[plane_stride + cell] << 8;
        const bool valid = !(how.filled && code == (u32)how.fill);
        const u32 key = valid ? code ^ 0x8000u : 0u;
        if (place >= 0) {
            odd |= valid && key == 0 ? 1u : 0u;
            keys[how.row * stride + place] = (Key)key;
        } else {
            odd |= valid ? 2u : 0u;
        }
    }
    if (odd) flag(seen, odd);
}
#elif !AFFINE
// The same of floats, cell by cell. By their bits, for compilers may take subnormal numbers for zero.
KERNEL(256) unpack_maps(
    const u8* maps, i64 map_stride, i64 plane_stride, int n_maps, int cells, const int* places,
    const Map* table, Key* keys, i64 stride, u32* seen
) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    const int place = places[cell];
    const Key sign = (Key)1 << (KEY_BITS - 1), infinity = KEY_BITS == 64 ? (Key)(2047ull << 52) : (Key)0x7f800000u;
    bool stray = false;
    for (int m = 0; m < n_maps; m++) {
        const Map how = table[m];
        if (how.row < 0) continue;
        const Key bits = ((const Key*)(maps + m * map_stride))[cell], fill = (Key)how.fill;
        const bool equal = bits == fill || (Key)((bits | fill) << 1) == 0;  // both zeros are one number
        const bool valid = (bits & ~sign) <= infinity && !(how.filled && equal);
        if (place >= 0)
            keys[how.row * stride + place] = valid ? (bits & sign ? (Key)~bits : (Key)(bits ^ sign)) : (Key)0;
        else
            stray |= valid;
    }
    if (stray) flag(seen, 2u);
}
#endif

// A finite value near each cell's results: the first valid one of these rows, or of floats, which may
// differ by many powers of ten, the smallest; 0 where there is none.
KERNEL(256) find_references(
    const Key* keys, i64 stride, int cells, const int* rows, int n_rows, double scale, double offset,
    float* references
) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    const Scaling scaling = {scale, offset};
    double near = 0.0;
    bool found = false;
    for (int i = 0; i < n_rows; i++) {
        const Key key = keys[rows[i] * stride + cell];
        if (!key) continue;
        const double value = value_of(key, scaling);
#if AFFINE
        near = value;
        found = true;
        break;
#else
        if (!found || fabs(value) < fabs(near)) near = value;
        found = true;
#endif
    }
    const double largest = 3.4028234663852886e+38;
    if (!(fabs(near) <= 1.7976931348623157e+308)) near = 0.0;
    near = near > largest ? largest : near < -largest ? -largest : near;
    references[cell] = narrowed(near);
}

// Gaps no longer than `longest` days filled on a straight line, rows in the order of time. `before`
// and `after` (row, longest) are the rows of the days around each, nearest first.
#if KIND == FLOAT64
INLINE double number_of(Key key) { return double_of(key >> 63 ? key ^ (1ull << 63) : ~key); }

KERNEL(256) fill_gaps(
    Key* keys, i64 stride, int cells, const int* rows, int n_rows, const int* before,
    const int* after, int longest
) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    for (int r = 0; r < n_rows; r++) {
        if (keys[rows[r] * stride + cell]) continue;
        int back = 0, ahead = 0;
        while (back < longest && !keys[before[r * longest + back] * stride + cell]) back++;
        while (ahead + back < longest && !keys[after[r * longest + ahead] * stride + cell]) ahead++;
        if (back + ahead + 1 > longest) continue;
        const Key there = keys[after[r * longest + ahead] * stride + cell];
        if (!there) continue;
        const double start = number_of(keys[before[r * longest + back] * stride + cell]);
        const double share = (double)(back + 1) / (double)(back + ahead + 2);
        const u64 bits = bits_of(start + (number_of(there) - start) * share);
        keys[rows[r] * stride + cell] = bits >> 63 ? ~bits : bits ^ (1ull << 63);
    }
}
#endif
