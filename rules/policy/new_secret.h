/* Where origins are known to mint secrets: what a reply may bring that nobody here knows yet
 * (attack C24). For `durward explain` alone; nothing is decided by it. */
#ifndef DURWARD_NEW_SECRET_H
#define DURWARD_NEW_SECRET_H

#include "slice.h"

/* What a reply to this request usually holds, as words ("an OAuth token"), or NULL. */
const char *new_secret_in(struct slice method, struct slice host, struct slice path);

#endif
