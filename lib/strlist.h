/* A bounded list of strings: argv, environments, host names. */
#ifndef DURWARD_STRLIST_H
#define DURWARD_STRLIST_H

#include "ipc_msg.h"

enum { STRLIST_MAX = 4096, STRLIST_BYTES = 80 * 1024 };

struct strlist {
    char **v; /* owned; v[n] is NULL once anything was added */
    size_t n;
    size_t bytes; /* with terminators */
};

void strlist_done(struct strlist *l); /* wipes: an environment may hold what its owner cares for */
/* 0, or -1 when a bound is reached or memory is out. */
int strlist_add(struct strlist *l, const char *s) WUNUSED;
/* "NAME=VALUE", replacing an earlier one of the same name. */
int strlist_set_env(struct strlist *l, const char *name, const char *value) WUNUSED;
/* The same for a text that is "NAME=VALUE" already; -1 also when it is not. */
int strlist_put_env(struct strlist *l, const char *pair) WUNUSED;
/* The value of NAME, or NULL. */
const char *strlist_get_env(const struct strlist *l, const char *name);
/* u32 count, then each as str. */
void strlist_put(const struct strlist *l, struct msg *m);
int strlist_get(struct strlist *l, struct msg *m) WUNUSED;

#endif
