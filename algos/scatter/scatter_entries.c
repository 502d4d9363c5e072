/* Where the scatter entries of every device are found. */
#include <config.h>

#include "algos/scatter/scatter.h"
#include "algos/pattern/entries.h"

RG_MOVE_ENTRIES(scatter);
