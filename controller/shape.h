/* The part of W_BUILD that says what makes a sandbox, what its file system begins with and what it
 * may use.
 *
 * Fields, in order:
 *   image:str      name of an imported image; "" is the host's /usr
 *   root:u8        enum shape_root
 *   memory:u64 disk:u64 (bytes) pids:u32 cpu:u32 (percent of one processor) files:u32
 *                  0: not limited
 *   backend:u8     enum config_backend; of BACKEND_DOCKER:
 *   socket:str image:str  of the engine; then the first image is "" and the root not kept */
#ifndef DURWARD_SHAPE_H
#define DURWARD_SHAPE_H

#include "config.h"
#include "ipc_msg.h"

enum { SHAPE_NAME_MAX = 64 };

enum shape_root {
    SHAPE_READ_ONLY = 0, /* all but temporary directories, $HOME and binds */
    SHAPE_MEMORY,        /* written to a layer in memory, gone with the sandbox */
    SHAPE_KEPT,          /* written to the sandbox's layer in the state directory (layer.h) */
    SHAPE_ROOTS
};

struct shape {
    char image[SHAPE_NAME_MAX + 1];
    enum shape_root root;
    struct config_sandbox limits;
};

/* A name of an image or a snapshot: [A-Za-z0-9_][A-Za-z0-9_.-]{0,63}. It becomes a directory's. */
bool shape_name_ok(const char *s);
/* What a policy asks for, with this backend and image where they are not "" (or NULL). bwrap's
 * image is an imported one, or "host"; docker's one of the engine's. -1 with err: not a name. */
int shape_of_policy(const struct config *c, const char *policy, const char *backend,
                    const char *image, struct shape *ret, struct err *err) WUNUSED;
void shape_put(const struct shape *s, struct msg *m);
int shape_get(struct shape *s, struct msg *m) WUNUSED;

#endif
