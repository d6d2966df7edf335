/* Which containers are in which networks. Networks begin with their first container, and end with
 * their last. */
#ifndef DURWARD_NETWORK_TABLES_H
#define DURWARD_NETWORK_TABLES_H

#include "network_request.h"

/* Puts a container into networks, or one that is known into more of them. On failure it is in none
 * of these. */
int network_tables_setup(const struct network_request *r, int netns, struct err *err);
/* Takes it out of those that are named. None is fine. */
void network_tables_teardown(const struct network_request *r);
bool network_tables_empty(void);
/* Look for what changed in the sandbox's own network. */
void network_tables_refresh(void);

#endif
