/* Where the all-to-all-v entries of every device are found. */
#include <config.h>

#include "algos/all_to_all_v/all_to_all_v.h"
#include "algos/pattern/entries.h"

RG_MOVE_ENTRIES(all_to_all_v);
