/*
 * Text that stays on its line: names of files may hold any byte but 0.
 */
#ifndef RG_CORE_ESCAPE_H
#define RG_CORE_ESCAPE_H

#include <stddef.h>

/*
 * Copies text with each control character as \n, \t, \r or \xNN; other bytes
 * stay. Terminated, cut where the room ends. Returns the length in `out`.
 */
size_t rg_escape(const char *text, char *out, size_t room);

#endif
