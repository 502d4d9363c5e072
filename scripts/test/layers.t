#!/bin/sh
# scripts/check-layers passes the tree and catches what is planted.
. "$(dirname "$0")/tap.sh"

tap_run "$RG_SOURCE_DIR/scripts/check-layers" --build "$RG_BUILD_DIR"
tap_ended 0 "the tree keeps its layers"

# catches NAME TEXT: the spoilt copy fails and the report holds TEXT.
catches()
{
    tap_run "$copy/scripts/check-layers" --build "$copy/objects"
    tap_ended 1 "$1" tap_holds "$2"
}

copy=$(tap_copy_sources)
echo '#include "runtime/control/view.h"' >>"$copy/runtime/core/log.c"
catches "core including control" \
    'runtime/core/log.c must not include "runtime/control/view.h"'

copy=$(tap_copy_sources)
echo '#include <sys/socket.h>' >>"$copy/runtime/control/view.h"
catches "control including sockets outside the driver" \
    'runtime/control/view.h must not include <sys/socket.h> (socket)'

copy=$(tap_copy_sources)
echo '#include "runtime/core/log.h"' >>"$copy/algos/algos.h"
catches "an algorithm including the runtime's insides" \
    'algos/algos.h must not include "runtime/core/log.h"'

copy=$(tap_copy_sources)
mkdir -p "$copy/objects/runtime/control"
cat >"$copy/planted.c" <<'EOC'
int socket(int domain, int type, int protocol);
int planted(void);
int planted(void) { return socket(1, 1, 0); }
EOC
${CC:-cc} -c -o "$copy/objects/runtime/control/view.o" "$copy/planted.c"
catches "control calling socket() outside the driver" \
    'runtime/control/view.o must not call socket (socket)'

copy=$(tap_copy_sources)
mkdir -p "$copy/objects/runtime/core"
cat >"$copy/planted.c" <<'EOC'
struct rg_view *rg_view_create(unsigned group, int capacity);
void *planted(void);
void *planted(void) { return rg_view_create(0, 1); }
EOC
${CC:-cc} -c -o "$copy/objects/runtime/core/log.o" "$copy/planted.c"
catches "core calling control without an include" \
    'runtime/core/log.o must not call rg_view_create'

tap_end
