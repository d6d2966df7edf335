/* `upstream.resolve` of the configuration: names that the operator has pointed at fixed addresses.
 * Such an address is exempt from the address guard; nothing else is. */
#ifndef DURWARD_UPSTREAM_MAP_H
#define DURWARD_UPSTREAM_MAP_H

#include "address.h"
#include "authority.h"

struct upstream_map;

enum { UPSTREAM_MAP_MAX = 4096 };

struct upstream_map *upstream_map_new(void);
void upstream_map_free(struct upstream_map *u);
/* host: canonical; with a leading dot every name below it, not itself. address: "127.0.0.1:8443" or
 * "[::1]:8443". */
int upstream_map_add(struct upstream_map *u, const char *host, uint16_t port, const char *address,
                     struct err *err);
/* The exact host and port first, then the longest suffix with that port. NULL when none. */
const struct address *upstream_map_find(const struct upstream_map *u, const struct authority *a);

#endif
