/* Reads `log_level`: which roles say the steps of their requests in the daemon's log. */
#include "config.h"

#include <string.h>

#include "config_tree.h"

static const struct key level_keys[] = {
    KEY("gate", WORDS("info", "debug"), "", ""),
    KEY("injector", WORDS("info", "debug"), "", ""),
    KEY("dialer", WORDS("info", "debug"), "", ""),
    KEY("vault", WORDS("info", "debug"), "", ""),
};

_Static_assert(ARRAY_LEN(level_keys) == CONFIG_LEVELS, "a place for each");

int config_read_levels(struct config *c, const struct node *n, struct err *err)
{
    if (node_keys(n, level_keys, ARRAY_LEN(level_keys), err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(level_keys); i++) {
        size_t word = 0;
        if (node_key_word(n, &level_keys[i], level_keys[i].name, &word, err) < 0)
            return -1;
        c->debugs[i] = word == 1;
    }
    return 0;
}

bool config_debugs(const struct config *c, const char *role)
{
    for (size_t i = 0; c && i < ARRAY_LEN(level_keys); i++)
        if (strcmp(level_keys[i].name, role) == 0)
            return c->debugs[i];
    return false;
}
