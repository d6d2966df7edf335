/* Where the logins of MCP servers lie: NAME.json in the user's state, mode 0600, of the format
 * `mcp` (rules/logins/mcp.yaml), which the vault refreshes. */
#ifndef DURWARD_LOGIN_KEEP_H
#define DURWARD_LOGIN_KEEP_H

#include "login_flow.h"

enum { LOGIN_KEPT_NAME_MAX = 32 };

bool login_name_ok(const char *name); /* a-z, 0-9, - and _ */
/* The folder; malloc'd. make: it is made where it is not there. */
char *login_folder(bool make, struct err *err);
/* What a login consists of, tokens among it; a new reference. */
json_t *login_object(const struct login_server *s, const struct login_client *c,
                     const json_t *tokens);
/* Takes the place of a former one. *path: the file, malloc'd. */
int login_keep(const char *name, const json_t *login, char **path, struct err *err);

#endif
