/*
 * What there is to choose from: candidates, sizes, and the order in which they
 * are measured. Everything follows from the arguments and a seed.
 */
#ifndef RG_BENCH_TUNE_SPACE_H
#define RG_BENCH_TUNE_SPACE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/algo.h"
#include "runtime/status.h"

enum { TUNE_NAME_BYTES = 32, TUNE_SIZES_MAX = 128, TUNE_BASES_MAX = 16 };

/* An algorithm that can run here, and as far as it can. */
struct tune_base {
    const struct rg_algo *algo;
    uint64_t max_bytes; /* UINT64_MAX: any size */
    uint64_t max_chunk; /* 0: it has no chunks */
};

/*
 * An algorithm with a number of channels and a chunk, 0 where the device's own
 * is used. The protocol is part of the algorithm's name.
 */
struct tune_candidate {
    int base;
    unsigned channels;
    uint64_t chunk;             /* bytes, a multiple of 16 */
    uint64_t max_bytes;         /* its base's */
    char name[TUNE_NAME_BYTES]; /* "ring", "ring+4ch", "ring+4ch+64K" */
};

struct tune_space {
    struct tune_base bases[TUNE_BASES_MAX];
    int nbases;
    struct tune_candidate *list; /* owned; the bases come first, in order */
    int n;
};

/*
 * Each base with the device's own choices, then with each power of two of
 * channels up to max_channels and each chunk of 16K, 64K, 256K and 1M that its
 * workspace allows. RG_OK, RG_EINVAL (too many bases), RG_ENOMEM.
 */
int tune_space_init(struct tune_space *space, const struct tune_base *bases,
                    int nbases, unsigned max_channels);
void tune_space_fini(struct tune_space *space);
/* 0 where the candidate cannot run this size, or would run it as a simpler one
 * does: less than a grain for each channel, or a chunk that holds it all. */
int tune_candidate_fits(const struct tune_candidate *candidate, uint64_t bytes);

/* ---- sizes -------------------------------------------------------------- */

/* Powers of two times min_bytes up to max_bytes, and max_bytes. At most
 * TUNE_SIZES_MAX; returns how many. */
int tune_grid(uint64_t min_bytes, uint64_t max_bytes, uint64_t *sizes_out);
/*
 * n sizes between the two, evenly spread on a logarithmic scale and moved at
 * random within their part, multiples of `grain`, ascending, none twice and
 * none on the grid. Returns how many there are, fewer in a narrow range.
 */
int tune_held_out(uint64_t min_bytes, uint64_t max_bytes, uint64_t grain,
                  uint64_t seed, int n, uint64_t *sizes_out);

/* ---- chance ------------------------------------------------------------- */

/* The next of a sequence: SplitMix64 (Steele, Lea, Flood, 2014). */
uint64_t tune_random(uint64_t *state);
/* Shuffles n indices (Fisher, Yates). */
void tune_shuffle(int *list, int n, uint64_t seed);

#endif
