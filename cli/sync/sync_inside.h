/* The sandbox's side, by the daemon's API. All of what is answered is a sandbox's word: names are
 * looked at, sizes bounded. */
#ifndef DURWARD_SYNC_INSIDE_H
#define DURWARD_SYNC_INSIDE_H

#include "sync_side.h"

struct sync_inside {
    const char *socket, *id; /* the daemon's, as in api_client.h; the sandbox's */
    const char *path;        /* of the directory inside, absolute */
    unsigned odd;            /* names that cannot be carried, met in walks */
};

enum sync_end sync_inside_look(const struct sync_inside *s, const char *path, struct sync_side *ret,
                               struct err *err);
enum sync_end sync_inside_load(const struct sync_inside *s, const char *path, size_t max,
                               struct sync_side *side, struct err *err);
/* Over what `there` says, and nothing else. */
enum sync_end sync_inside_write(const struct sync_inside *s, const char *path,
                                const struct sync_side *there, struct slice data, bool exec,
                                struct err *err);
enum sync_end sync_inside_remove(const struct sync_inside *s, const char *path,
                                 const struct sync_side *there, struct err *err);
/* As sync_here_prune. */
void sync_inside_prune(const struct sync_inside *s, const char *path,
                       bool (*gone)(void *arg, const char *folder), void *arg);
/* SYNC_GONE: the side is not there. */
enum sync_end sync_inside_walk(struct sync_inside *s, const char *path, const struct sync_walk *w,
                               struct err *err);
/* "running", "stopped", ...; "" where there is no such sandbox, NULL where no daemon answers. */
const char *sync_inside_state(const struct sync_inside *s, char to[32]);

#endif
