/* Where the all-gather entries of every device are found. */
#include <config.h>

#include "algos/all_gather/all_gather.h"
#include "algos/pattern/entries.h"

RG_MOVE_ENTRIES(all_gather);
