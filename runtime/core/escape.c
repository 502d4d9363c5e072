#include "runtime/core/escape.h"

#include <stdio.h>
#include <string.h>

/* How a byte is shown; returns the length. */
static size_t show(unsigned char byte, char shown[5])
{
    static const char plain[] = "\n\t\r", letters[] = "ntr";
    const char *at = byte ? strchr(plain, byte) : NULL;

    if (at)
        return (size_t)sprintf(shown, "\\%c", letters[at - plain]);
    if (byte < ' ' || byte == 0x7f)
        return (size_t)sprintf(shown, "\\x%02x", byte);
    shown[0] = (char)byte;
    return 1;
}

size_t rg_escape(const char *text, char *out, size_t room)
{
    size_t used = 0;

    for (; *text; text++) {
        char shown[5];
        const size_t length = show((unsigned char)*text, shown);

        if (used + length >= room)
            break;
        memcpy(out + used, shown, length);
        used += length;
    }
    if (room)
        out[used] = '\0';
    return used;
}
