/* Where the broadcast entries of every device are found. */
#include <config.h>

#include "algos/broadcast/broadcast.h"
#include "algos/pattern/entries.h"

RG_MOVE_ENTRIES(broadcast);
