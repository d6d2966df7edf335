/* `not_credentials`: fields that look like a credential of the client's own and are none. */
#include "header_name.h"
#include "rule.h"

#include <string.h>

enum { NOT_CREDENTIALS_MAX = 64 };

static int read_name(struct arena *a, const struct node *n, const char *name, struct rule *ret,
                     const char **to, struct err *err)
{
    struct slice s = slice_str(name);
    if (!header_name_ok(s))
        return node_fail(n, err, "'%.60s' is not a header's name", name);
    if (header_name_is_reserved(s))
        return node_fail(n, err, "'%s' frames or routes the message; it is judged by itself", name);
    if (header_name_is_key(s))
        return node_fail(n, err,
                         "origins take '%s' for a credential, whatever it is here; a client's own "
                         "may pass with 'client_credential: pass'",
                         name);
    char *own = arena_str(a, name);
    for (char *p = own; *p; p++)
        *p = ascii_lower(*p);
    for (const struct credential *c = ret->credential; c; c = c->other)
        if (strcmp(c->header, own) == 0)
            return node_fail(n, err, "'%s' is where this rule puts its credential", own);
    *to = own;
    return 0;
}

int rule_not_credentials_read(struct arena *a, const struct node *rule, struct rule *ret,
                              struct err *err)
{
    struct node n;
    size_t count;
    if (!node_get(rule, "not_credentials", &n))
        return 0;
    if (ret->credential == NULL)
        return node_fail(&n, err,
                         "'not_credentials' goes with 'with': without a credential of ours the "
                         "client's fields pass as they are");
    if (node_strings(&n, &count, err) < 0)
        return -1;
    if (count > NOT_CREDENTIALS_MAX)
        return node_fail(&n, err, "more than %d names", NOT_CREDENTIALS_MAX);
    const char **list = arena_zalloc(a, count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        struct node item;
        const char *name;
        if (node_strings_at(&n, i, &item, &name, err) < 0 ||
            read_name(a, &item, name, ret, &list[i], err) < 0)
            return -1;
    }
    ret->not_credentials = list;
    ret->n_not_credentials = count;
    return 0;
}
