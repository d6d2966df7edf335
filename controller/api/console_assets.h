/* The files of console/, made into bytes by console/embed. */
#ifndef DURWARD_CONSOLE_ASSETS_H
#define DURWARD_CONSOLE_ASSETS_H

#include <stddef.h>

struct console_asset {
    const char *path, *type; /* "/app.js"; NULL: the end of the list */
    const unsigned char *bytes;
    size_t n;
};

extern const struct console_asset console_assets[];

#endif
