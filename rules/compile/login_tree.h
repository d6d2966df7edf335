/* A format of login files as it was read. Internal to rules/compile. */
#ifndef DURWARD_LOGIN_TREE_H
#define DURWARD_LOGIN_TREE_H

#include "login.h"

struct login_format {
    const char *name; /* of the table */
    json_t *root;
};

/* A text member; NULL when there is none. */
const char *login_word(const json_t *object, const char *key);

#endif
