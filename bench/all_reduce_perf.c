/* Measures and checks all-reduce. */
#include "bench/perf.h"

static int run(void *arg, const void *send, void *recv, size_t count,
               enum rg_dtype dtype, enum rg_op op)
{
    const struct rg_session *session = arg;

    return rg_all_reduce(send, recv, count, dtype, op, session->comm,
                         session->stream);
}

int main(int argc, char **argv)
{
    static const struct perf_collective all_reduce = {
        .program = "all_reduce_perf",
        .summary = "Measures and checks all-reduce over the ranks of an MPI "
                   "job or over threads.",
        .collective = RG_COLL_all_reduce,
        .run = run,
    };

    return perf_main(&all_reduce, argc, argv);
}
