/* The part of W_BUILD that says what makes a sandbox, what its file system begins with and what it
 * may use.
 *
 * Fields, in order:
 *   image:str      name of an imported image; "" is the host's /usr
 *   root:u8        enum sandbox_spec_root
 *   memory:u64 disk:u64 (bytes) pids:u32 cpu:u32 (percent of one processor) files:u32
 *                  0: not limited
 *   nested:u8      containers inside; then the root is not kept, and there are no volumes
 *   backend:u8     enum config_backend, if nested BACKEND_BWRAP; of BACKEND_DOCKER:
 *   socket:str image:str  of the engine; then the first image is "" and the root not kept
 *                  of BACKEND_KUBERNETES: namespace:str image:str, else as the engine's
 *                  of BACKEND_POD: pod.h; then there is neither image nor root nor volume
 *   n × volume: name:str target:str writable:u8    where config_backend_lays_out, without nested
 *   n × device: host:str path:str node:u8          of BACKEND_BWRAP without nested alone; node 0:
 *                  a file or directory, mounted read-only */
#ifndef DURWARD_SANDBOX_SPEC_H
#define DURWARD_SANDBOX_SPEC_H

#include "config.h"
#include "device.h"
#include "ipc_msg.h"
#include "pod.h"

/* The mode of a bind, as messages have it: a sum. */
enum sandbox_spec_bind {
    SANDBOX_SPEC_BIND_WRITABLE = 1,
    SANDBOX_SPEC_BIND_VIEW = 2,
    SANDBOX_SPEC_BIND_HOME = 4, /* a home that Durward keeps: what lies in it came from sandboxes,
                            and its credentials are placeholders, so that nothing in it is hidden */
    SANDBOX_SPEC_BIND_ALL = 7
};

enum { SANDBOX_SPEC_NAME_MAX = 64 };

enum sandbox_spec_root {
    SANDBOX_SPEC_READ_ONLY = 0, /* all but temporary directories, $HOME and binds */
    SANDBOX_SPEC_MEMORY,        /* written to a layer in memory, gone with the sandbox */
    SANDBOX_SPEC_KEPT, /* written to the sandbox's layer in the state directory (layer.h) */
    SANDBOX_SPEC_ROOTS
};

enum { SANDBOX_SPEC_VOLUMES_MAX = CONFIG_VOLUMES_MAX };

struct sandbox_spec_volume {
    char name[SANDBOX_SPEC_NAME_MAX + 1];
    char target[CONFIG_VOLUME_PATH_MAX + 1]; /* inside: absolute, canonical */
    bool writable;
};

struct sandbox_spec_device {
    char host[DEVICE_PATH_MAX + 1], path[DEVICE_PATH_MAX + 1]; /* inside */
    bool node;                                                 /* else a file or directory */
};

struct sandbox_spec {
    char image[SANDBOX_SPEC_NAME_MAX + 1];
    enum sandbox_spec_root root;
    struct config_sandbox limits;
    struct sandbox_spec_volume volumes[SANDBOX_SPEC_VOLUMES_MAX]; /* outer targets first */
    unsigned n_volumes;
    struct sandbox_spec_device devices[DEVICE_PARTS_MAX];
    unsigned n_devices;
    struct pod_spec pod; /* of BACKEND_POD */
};

/* A name of an image or a snapshot: [A-Za-z0-9_][A-Za-z0-9_.-]{0,63}. It becomes a directory's. */
bool sandbox_spec_name_ok(const char *s);
/* What a policy asks for, with this backend and image where they are not "" (or NULL). bwrap's
 * gVisor's and a microVM's image is an imported one, or "host"; docker's one of the engine's,
 * kubernetes' the cluster's. -1 with err: not a name. */
int sandbox_spec_of_policy(const struct config *c, const char *policy, const char *backend,
                           const char *image, struct sandbox_spec *ret, struct err *err) WUNUSED;
/* NAME:/path or NAME:/path:ro. -1 with err: it is neither. */
int sandbox_spec_volume_read(const char *text, struct sandbox_spec_volume *ret,
                             struct err *err) WUNUSED;
/* One more, or another place for what is mounted where an earlier one is. -1 with err. */
int sandbox_spec_volume_add(struct sandbox_spec *s, const char *text, struct err *err) WUNUSED;
void sandbox_spec_put(const struct sandbox_spec *s, struct msg *m);
int sandbox_spec_get(struct sandbox_spec *s, struct msg *m) WUNUSED;

#endif
