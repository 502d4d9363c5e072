/* Where the barrier entries of every device are found. */
#include <config.h>

#include "algos/barrier/barrier.h"
#include "algos/pattern/entries.h"

RG_MOVE_ENTRIES(barrier);
