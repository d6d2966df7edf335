/* The host's side: files below one directory, reached from descriptor to descriptor. No link is
 * ever followed, whoever made it. */
#ifndef DURWARD_SYNC_HERE_H
#define DURWARD_SYNC_HERE_H

#include "sync_side.h"

struct sync_here {
    int root;
    const char *path; /* as it is known to who else looks for credentials in it */
};

enum sync_end sync_here_look(const struct sync_here *h, const char *path, struct sync_side *ret,
                             struct err *err);
/* Its bytes, of one version: of the one that was looked at. */
enum sync_end sync_here_load(const struct sync_here *h, const char *path, size_t max,
                             struct sync_side *s, struct err *err);
/* Whole or not at all, and only over what `there` says. *ret: the new one. */
enum sync_end sync_here_write(const struct sync_here *h, const char *path,
                              const struct sync_side *there, struct slice data, bool exec,
                              struct sync_side *ret, struct err *err);
enum sync_end sync_here_remove(const struct sync_here *h, const char *path,
                               const struct sync_side *there, struct err *err);
/* Folders above that hold nothing any more; `gone` says of each whether it may go. */
void sync_here_prune(const struct sync_here *h, const char *path,
                     bool (*gone)(void *arg, const char *folder), void *arg);
/* Everything below `path`, "" of all. */
void sync_here_walk(const struct sync_here *h, const char *path, const struct sync_walk *w);
/* Does a name, or a link beside it with such a name, say that this file holds a credential? 0 no, 1
 * yes, 2: if its bytes are a key (mask.h). */
int sync_here_secret(const struct sync_here *h, const char *path);
/* The same of a folder on the way. */
bool sync_here_secret_folder(const struct sync_here *h, const char *path);

#endif
