/* Where the entries of send and receive are found, of every device. */
#include <config.h>

#include "algos/pattern/entries.h"
#include "algos/sendrecv/sendrecv.h"

RG_MOVE_ENTRIES(sendrecv);
