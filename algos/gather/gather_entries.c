/* Where the gather entries of every device are found. */
#include <config.h>

#include "algos/gather/gather.h"
#include "algos/pattern/entries.h"

RG_MOVE_ENTRIES(gather);
