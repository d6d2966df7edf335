/* Looks at the file of objects twice a second: its folder need not be there yet, and may be on a
 * file system that tells of no changes. */
#include "parent_objects.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parent.h"
#include "proc.h"

enum { LOOK_MS = 500 };

struct parent_objects {
    struct parent *parent;
    struct event *look;
    struct stat had; /* zeros: it was not there */
};

static void objects_see(const char *path, struct stat *ret)
{
    if (stat(path, ret) < 0)
        memset(ret, 0, sizeof *ret);
}

static bool objects_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void on_look(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct parent_objects *o = arg;
    const struct config_node *n = config_node(o->parent->config);
    struct err err = {0};
    struct stat now;
    if (n == NULL || n->objects == NULL)
        return;
    objects_see(n->objects, &now);
    if (objects_same(&now, &o->had))
        return;
    o->had = now;
    if (parent_reload(o->parent, &err) < 0)
        proc_log("the cluster's objects are not taken, what was before stays: %s", err.text);
}

struct parent_objects *parent_objects_new(struct parent *p)
{
    static const struct timeval every = {0, LOOK_MS * 1000};
    const struct config_node *n = config_node(p->config);
    if (n == NULL || n->objects == NULL)
        return NULL;
    struct parent_objects *o = calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    o->parent = p;
    o->look = event_new(p->base, -1, EV_PERSIST, on_look, o);
    if (o->look == NULL || event_add(o->look, &every) < 0) {
        parent_objects_free(o);
        return NULL;
    }
    return o; /* the first look reads again what the start has read: no change falls between */
}

void parent_objects_free(struct parent_objects *o)
{
    if (o == NULL)
        return;
    if (o->look)
        event_free(o->look);
    free(o);
}
