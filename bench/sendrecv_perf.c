/* Measures and checks grouped send and receive, in a ring. */
#include "bench/perf.h"

int main(int argc, char **argv)
{
    return perf_main("sendrecv_perf", RG_COLL_sendrecv, argc, argv);
}
