/* Where the gather entries of every device are found. */
#include "algos/gather/gather.h"
#include "algos/pattern/entries.h"

RG_MOVE_ENTRIES(gather);
