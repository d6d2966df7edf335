/* Watches the files of secrets (inotify on their directories), so that a change is known at once
 * and not only when a file is read again. What cannot be watched is just not watched. */
#ifndef DURWARD_STORE_WATCH_H
#define DURWARD_STORE_WATCH_H

#include "compiler.h"

struct event_base;
struct store_watch;

/* The file of this secret may have another content, or be gone, or be there again. From the event
 * loop. */
typedef void (*store_watch_fn)(void *arg, const char *secret);

/* NULL when there is no inotify or no memory. */
struct store_watch *store_watch_new(struct event_base *base, store_watch_fn fn, void *arg);
void store_watch_free(struct store_watch *w); /* NULL is fine */
/* Watch the directory of the path and, when it is a symbolic link, that of the file behind it; a
 * secret's second path takes the place of its first. Call it before the file is opened. */
void store_watch_add(struct store_watch *w, const char *secret, const char *path);

#endif
