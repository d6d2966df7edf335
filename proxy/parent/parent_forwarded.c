/* Listeners to which a provider sends its sandboxes' requests: their settings and key sets go to
 * their gates, which cannot open a file. The file is read again at each reload, so that a provider
 * may change its keys without a restart. */
#include "parent.h"

#include "bind.h"
#include "oidc.h"
#include "proc.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *read_set(const char *path, struct err *err)
{
    char *text = malloc(OIDC_SETTINGS_MAX);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 && text ? read(fd, text, OIDC_SETTINGS_MAX) : -1;
    json_error_t why;
    json_t *set = NULL;
    if (n < 0)
        err_sys(err, "listen: forwarded: keys: %s", path);
    else if ((set = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &why)) == NULL)
        err_set(err, ERR_PARSE, "listen: forwarded: keys: %s is not JSON of at most %d bytes", path,
                OIDC_SETTINGS_MAX);
    free(text);
    if (fd >= 0)
        close(fd);
    return set;
}

/* What oidc_new reads, malloc'd. */
static char *settings(const struct config_forwarded *f, struct err *err)
{
    json_t *set = read_set(f->keys, err);
    json_t *v = set ? json_pack("{s:s, s:s, s:s, s:s*, s:o}", "url", f->url, "issuer", f->issuer,
                                "team", f->team, "project", f->project, "keys", set)
                    : NULL;
    char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
    json_decref(v);
    if (set && text == NULL)
        err_set(err, ERR_INTERNAL, "out of memory");
    return text;
}

int parent_check_forwarded(const struct config *c, struct err *err)
{
    size_t n;
    const struct config_listen *l = config_listens(c, &n);
    for (size_t i = 0; i < n; i++) {
        if (l[i].forwarded == NULL)
            continue;
        char *text = settings(l[i].forwarded, err);
        struct oidc *o = text ? oidc_new(slice_str(text), err) : NULL;
        free(text);
        if (o == NULL)
            return err_wrap(err, "%s", l[i].forwarded->keys);
        oidc_free(o);
    }
    return 0;
}

void parent_tell_forwarded(struct child *gate)
{
    const struct sandbox *s = gate->sandbox;
    struct err err = {0};
    struct msg m;
    size_t n;
    const struct config_listen *l = config_listens(gate->parent->config, &n);
    if (s->n_listeners != 1 || s->listeners[0].kind != LISTENER_FORWARDED || s->forwarded >= n ||
        l[s->forwarded].forwarded == NULL || gate->ch == NULL)
        return;
    char *text = settings(l[s->forwarded].forwarded, &err);
    if (text == NULL) {
        proc_log("%s", err.text);
        return;
    }
    msg_init(&m, W_FORWARDED);
    msg_put_str(&m, text);
    parent_tell(gate, &m);
    free(text);
}
