/* Where the all-to-all entries of every device are found. */
#include <config.h>

#include "algos/all_to_all/all_to_all.h"
#include "algos/pattern/entries.h"

RG_MOVE_ENTRIES(all_to_all);
