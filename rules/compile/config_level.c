/* Reads `log_level`: which roles say the steps of their requests in the daemon's log. */
#include "config.h"

#include <string.h>

#include "config_tree.h"

static const struct key keys[] = {
    {"gate", NULL}, {"injector", NULL}, {"dialer", NULL}, {"vault", NULL}};

_Static_assert(ARRAY_LEN(keys) == CONFIG_LEVELS, "a place for each");

int config_read_levels(struct config *c, const struct node *n, struct err *err)
{
    static const char *const words[] = {"info", "debug"};
    if (node_keys(n, keys, ARRAY_LEN(keys), err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct node at;
        size_t word = 0;
        if (node_get(n, keys[i].name, &at) &&
            node_word(&at, words, ARRAY_LEN(words), &word, err) < 0)
            return -1;
        c->debugs[i] = word == 1;
    }
    return 0;
}

bool config_debugs(const struct config *c, const char *role)
{
    for (size_t i = 0; c && i < ARRAY_LEN(keys); i++)
        if (strcmp(keys[i].name, role) == 0)
            return c->debugs[i];
    return false;
}
