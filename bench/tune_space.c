#include "bench/tune_space.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A channel serves at least so much, or it only costs. */
#define CHANNEL_BYTES 1024

static const uint64_t chunks[] = {16 << 10, 64 << 10, 256 << 10, 1 << 20};
enum { CHUNKS = sizeof chunks / sizeof *chunks, CHANNELS_MAX = 7 };

/* ---- candidates --------------------------------------------------------- */

static void add(struct tune_space *space, int base, unsigned channels,
                uint64_t chunk)
{
    struct tune_candidate *candidate = &space->list[space->n++];
    char more[2][32] = {"", ""};

    if (channels)
        snprintf(more[0], sizeof more[0], "+%uch", channels);
    if (chunk)
        snprintf(more[1], sizeof more[1], "+%" PRIu64 "K", chunk >> 10);
    *candidate = (struct tune_candidate){base, channels, chunk,
                                         space->bases[base].max_bytes, ""};
    snprintf(candidate->name, sizeof candidate->name, "%.15s%.8s%.8s",
             space->bases[base].algo->name, more[0], more[1]);
}

static void add_variants(struct tune_space *space, int base,
                         unsigned max_channels)
{
    for (unsigned channels = 0; channels <= max_channels;
         channels = channels ? 2 * channels : 1)
        for (int i = -1; i < CHUNKS; i++) {
            const uint64_t chunk = i < 0 ? 0 : chunks[i];

            if (channels + chunk > 0 && chunk <= space->bases[base].max_chunk)
                add(space, base, channels, chunk);
        }
}

int tune_space_init(struct tune_space *space, const struct tune_base *bases,
                    int nbases, unsigned max_channels)
{
    const size_t each = 1 + (CHANNELS_MAX + 1) * (CHUNKS + 1);

    *space = (struct tune_space){.nbases = nbases};
    if (nbases > TUNE_BASES_MAX)
        return RG_EINVAL;
    if (max_channels >> CHANNELS_MAX)
        max_channels = 1u << (CHANNELS_MAX - 1);
    space->list = calloc((size_t)nbases * each + 1, sizeof *space->list);
    if (!space->list)
        return RG_ENOMEM;
    for (int i = 0; i < nbases; i++) {
        space->bases[i] = bases[i];
        add(space, i, 0, 0);
    }
    for (int i = 0; i < nbases; i++)
        add_variants(space, i, max_channels);
    return RG_OK;
}

void tune_space_fini(struct tune_space *space)
{
    free(space->list);
    *space = (struct tune_space){.nbases = 0};
}

int tune_candidate_fits(const struct tune_candidate *candidate, uint64_t bytes)
{
    return bytes <= candidate->max_bytes && candidate->chunk < bytes + 1 &&
           (candidate->channels <= 1 ||
            bytes >= (uint64_t)candidate->channels * CHANNEL_BYTES);
}

/* ---- sizes -------------------------------------------------------------- */

int tune_grid(uint64_t min_bytes, uint64_t max_bytes, uint64_t *sizes_out)
{
    uint64_t bytes = min_bytes ? min_bytes : 1;
    int n = 0;

    while (bytes < max_bytes && n < TUNE_SIZES_MAX - 1) {
        sizes_out[n++] = bytes;
        bytes *= 2;
    }
    sizes_out[n++] = max_bytes;
    return n;
}

static int on_grid(uint64_t min_bytes, uint64_t max_bytes, uint64_t bytes)
{
    uint64_t grid[TUNE_SIZES_MAX];
    const int n = tune_grid(min_bytes, max_bytes, grid);

    for (int i = 0; i < n; i++)
        if (grid[i] == bytes)
            return 1;
    return 0;
}

int tune_held_out(uint64_t min_bytes, uint64_t max_bytes, uint64_t grain,
                  uint64_t seed, int n, uint64_t *sizes_out)
{
    const double low = log2((double)(min_bytes ? min_bytes : 1));
    const double part = (log2((double)max_bytes) - low) / n;
    uint64_t state = seed, last = 0;
    int count = 0;

    for (int i = 0; i < n; i++) {
        const double place = (double)(tune_random(&state) >> 11) * 0x1p-53;
        uint64_t bytes =
            (uint64_t)exp2(low + part * (i + place)) / grain * grain;

        while (bytes <= last || bytes < min_bytes ||
               on_grid(min_bytes, max_bytes, bytes))
            bytes += grain;
        if (bytes >= max_bytes)
            break;
        last = sizes_out[count++] = bytes;
    }
    return count;
}

/* ---- chance ------------------------------------------------------------- */

uint64_t tune_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

void tune_shuffle(int *list, int n, uint64_t seed)
{
    for (int i = n - 1; i > 0; i--) {
        const int k = (int)(tune_random(&seed) % (uint64_t)(i + 1));
        const int kept = list[i];

        list[i] = list[k];
        list[k] = kept;
    }
}
