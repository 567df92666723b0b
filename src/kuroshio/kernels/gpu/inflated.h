// Maps that a library has inflated on the device: are they what was compressed? A zlib stream ends with
// the Adler-32 checksum of its data (RFC 1950): of n bytes d[i], counted from 0, the sums 1 + d[i] and
// n + (n - i) d[i], both modulo 65521.
#if KIND == AFFINE16
const u64 PRIME = 65521;
const int SUMMERS = 1024;  // threads that share a map

// Both sums of each map without 1 and n, added to sums (map, 2). A map begins at a multiple of 8.
KERNEL(256) sum_bytes(const u64* maps, i64 map_stride, int n_maps, i64 map_bytes, u32* sums) {
    const i64 thread = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    const i64 m = thread / SUMMERS;
    if (m >= n_maps) return;
    const u64* map = maps + m * (map_stride / 8);
    u64 plain = 0, weighted = 0;
    for (i64 i = thread % SUMMERS; 8 * i < map_bytes; i += SUMMERS) {
        const i64 left = map_bytes - 8 * i;
        const u64 bytes = left < 8 ? map[i] & ((1ull << 8 * left) - 1) : map[i];
        u32 sum = 0, ahead = 0;
        for (int j = 0; j < 8; j++) {
            const u32 byte = (u32)(bytes >> 8 * j) & 0xff;
            sum += byte;
            ahead += j * byte;
        }
        plain += sum;
        weighted += (u64)left * sum - ahead;
    }
    add_to(sums + 2 * m, (u32)(plain % PRIME));
    add_to(sums + 2 * m + 1, (u32)(weighted % PRIME));
}

// One thread, one map: `damaged` (map,) is 0 if all is well; 2 if the library or its length says that it
// is not; 1 if its checksum alone does. Its row in `table` is taken away then.
// checksums   as the streams end with them
// inflated    bytes that came out
// statuses    of the library, 0 if it is content
KERNEL(256) judge_maps(
    int n_maps, i64 map_bytes, const u32* sums, const u32* checksums, const u64* inflated,
    const int* statuses, Map* table, u8* damaged
) {
    const int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= n_maps) return;
    const u64 plain = (1 + sums[2 * m]) % PRIME;
    const u64 weighted = ((u64)map_bytes + sums[2 * m + 1]) % PRIME;
    const bool broken = statuses[m] != 0 || inflated[m] != (u64)map_bytes;
    const bool other = checksums[m] != (u32)(weighted << 16 | plain);
    damaged[m] = broken ? 2 : other ? 1 : 0;
    if (broken || other) table[m].row = -1;
}
#endif
