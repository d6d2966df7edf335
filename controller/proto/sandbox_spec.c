/* Makes a shape of a policy and of what was asked for instead, writes it and reads it; the reader
 * checks the names again. */
#include "sandbox_spec.h"

#include <stdlib.h>
#include <string.h>

#include "slice.h"

bool sandbox_spec_name_ok(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > SANDBOX_SPEC_NAME_MAX || s[0] == '.' || s[0] == '-')
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && *s != '_' && *s != '.' && *s != '-')
            return false;
    return true;
}

static int take_engine_image(struct sandbox_spec *s, const char *image, struct err *err)
{
    char *to = s->limits.docker.image;
    if (image[0] && !config_engine_image_ok(image))
        return err_set(err, ERR_PARSE, "'%.80s' is not the name of an engine's image", image);
    if (image[0])
        memcpy(to, image, strlen(image) + 1);
    return to[0] ? 0
                 : err_set(err, ERR_PARSE,
                           "the docker backend needs an image: name one of the engine's with "
                           "--image, or in the policy: sandbox: { docker: { image: NAME } }");
}

static int take_cluster_image(struct sandbox_spec *s, const char *image, struct err *err)
{
    char *to = s->limits.kubernetes.image;
    if (s->limits.kubernetes.ns[0] == '\0')
        return err_set(err, ERR_PARSE,
                       "the policy names no namespace of a cluster: sandbox: { kubernetes: { "
                       "namespace: NAME } }");
    if (image[0] && !config_engine_image_ok(image))
        return err_set(err, ERR_PARSE, "'%.80s' is not the name of a cluster's image", image);
    if (image[0])
        memcpy(to, image, strlen(image) + 1);
    return to[0] ? 0
                 : err_set(err, ERR_PARSE,
                           "the kubernetes backend needs an image: name one with --image, or in "
                           "the policy: sandbox: { kubernetes: { image: NAME } }");
}

/* ---- volumes ---- */

static int order_volumes(const void *a, const void *b)
{
    const struct sandbox_spec_volume *x = a, *y = b;
    return strcmp(x->target, y->target); /* a prefix sorts first */
}

int sandbox_spec_volume_read(const char *text, struct sandbox_spec_volume *ret, struct err *err)
{
    size_t n = strcspn(text, ":");
    const char *path = text[n] ? text + n + 1 : text + n;
    size_t len = strlen(path);
    bool ro = len > 3 && strcmp(path + len - 3, ":ro") == 0;
    *ret = (struct sandbox_spec_volume){.writable = !ro};
    len -= ro ? 3 : 0;
    if (n >= sizeof ret->name || len >= sizeof ret->target)
        return err_set(err, ERR_PARSE, "'%.80s' is not NAME:/path or NAME:/path:ro", text);
    memcpy(ret->name, text, n);
    memcpy(ret->target, path, len);
    return sandbox_spec_name_ok(ret->name) && config_volume_path_ok(ret->target)
               ? 0
               : err_set(err, ERR_PARSE, "'%.80s' is not NAME:/path or NAME:/path:ro", text);
}

int sandbox_spec_volume_add(struct sandbox_spec *s, const char *text, struct err *err)
{
    struct sandbox_spec_volume v;
    if (sandbox_spec_volume_read(text, &v, err) < 0)
        return -1;
    if (s->limits.backend == BACKEND_DOCKER)
        return err_set(err, ERR_UNREADY,
                       "unsupported: a container of an engine has no volumes of Durward's");
    if (s->limits.backend == BACKEND_KUBERNETES)
        return err_set(err, ERR_UNREADY,
                       "unsupported: a pod of a cluster has no volumes of Durward's");
    if (s->limits.nested)
        return err_set(err, ERR_UNREADY,
                       "unsupported: a sandbox with nested: true has no volumes; its files are in "
                       "memory");
    for (unsigned i = 0; i < s->n_volumes; i++)
        if (strcmp(s->volumes[i].target, v.target) == 0 || strcmp(s->volumes[i].name, v.name) == 0)
            return err_set(err, ERR_PARSE, "two volumes have the name %s or the path %s", v.name,
                           v.target);
    if (s->n_volumes == SANDBOX_SPEC_VOLUMES_MAX)
        return err_set(err, ERR_LIMIT, "a sandbox has at most %d volumes",
                       SANDBOX_SPEC_VOLUMES_MAX);
    s->volumes[s->n_volumes++] = v;
    qsort(s->volumes, s->n_volumes, sizeof s->volumes[0], order_volumes);
    return 0;
}

static int volumes_of_policy(struct sandbox_spec *s, struct err *err)
{
    for (unsigned i = 0; i < s->limits.n_volumes; i++)
        if (sandbox_spec_volume_add(s, s->limits.volumes[i], err) < 0)
            return -1;
    return 0;
}

/* ---- devices ---- */

static bool device_ok(const struct sandbox_spec_device *d)
{
    return d->node ? device_host_ok(d->host) && device_path_ok(d->path)
                   : device_mount_host_ok(d->host) && device_mount_path_ok(d->path);
}

static int add_parts(struct sandbox_spec *s, const char *list, bool node, struct err *err)
{
    size_t i;
    json_t *part;
    json_array_foreach(json_object_get(s->limits.devices, list), i, part)
    {
        const char *host = json_string_value(json_object_get(part, "host"));
        const char *path = json_string_value(json_object_get(part, "path"));
        struct sandbox_spec_device d = {.node = node};
        if (s->n_devices == DEVICE_PARTS_MAX || host == NULL || path == NULL ||
            strlen(host) >= sizeof d.host || strlen(path) >= sizeof d.path)
            return err_set(err, ERR_PARSE, "a device's part is malformed");
        memcpy(d.host, host, strlen(host) + 1);
        memcpy(d.path, path, strlen(path) + 1);
        if (!device_ok(&d))
            return err_set(err, ERR_DENIED, "%s may not be a sandbox's %s", host, path);
        s->devices[s->n_devices++] = d;
    }
    return 0;
}

static int devices_of_policy(struct sandbox_spec *s, struct err *err)
{
    if (s->limits.devices == NULL)
        return 0;
    if (s->limits.backend != BACKEND_BWRAP)
        return err_set(err, ERR_UNREADY,
                       "unsupported: a sandbox of the %s backend gets no devices; leave devices "
                       "out of the policy, or take backend: bwrap",
                       config_backend_name(s->limits.backend));
    return add_parts(s, "nodes", true, err) < 0 ? -1 : add_parts(s, "mounts", false, err);
}

int sandbox_spec_of_policy(const struct config *c, const char *policy, const char *backend,
                           const char *image, struct sandbox_spec *ret, struct err *err)
{
    *ret = (struct sandbox_spec){.limits = *config_policy_sandbox(c, policy)};
    ret->root = ret->limits.writable ? SANDBOX_SPEC_MEMORY : SANDBOX_SPEC_READ_ONLY;
    if (backend && backend[0])
        ret->limits.backend = config_backend_named(backend);
    if (ret->limits.backend == BACKENDS)
        return err_set(err, ERR_PARSE,
                       "there is no backend '%.80s': bwrap, docker, gvisor, kubernetes or microvm",
                       backend);
    if (ret->limits.nested && ret->limits.backend != BACKEND_BWRAP)
        return err_set(err, ERR_UNREADY,
                       "unsupported: a sandbox of the %s backend has no containers inside; leave "
                       "nested out of the policy, or take backend: bwrap",
                       config_backend_name(ret->limits.backend));
    if (volumes_of_policy(ret, err) < 0 || devices_of_policy(ret, err) < 0)
        return -1;
    if (ret->limits.backend == BACKEND_DOCKER)
        return take_engine_image(ret, image ? image : "", err);
    if (ret->limits.backend == BACKEND_KUBERNETES)
        return take_cluster_image(ret, image ? image : "", err);
    if (image == NULL || image[0] == '\0' || strcmp(image, "host") == 0)
        return 0;
    if (!sandbox_spec_name_ok(image))
        return err_set(err, ERR_PARSE, "'%.80s' is not the name of an image", image);
    memcpy(ret->image, image, strlen(image) + 1);
    return 0;
}

void sandbox_spec_put(const struct sandbox_spec *s, struct msg *m)
{
    msg_put_str(m, s->image);
    msg_put_u8(m, (uint8_t)s->root);
    msg_put_u64(m, s->limits.memory);
    msg_put_u64(m, s->limits.disk);
    msg_put_u32(m, s->limits.pids);
    msg_put_u32(m, s->limits.cpu);
    msg_put_u32(m, s->limits.files);
    msg_put_u8(m, s->limits.nested);
    msg_put_u8(m, (uint8_t)s->limits.backend);
    if (s->limits.backend == BACKEND_DOCKER) {
        msg_put_str(m, s->limits.docker.socket);
        msg_put_str(m, s->limits.docker.image);
    } else if (s->limits.backend == BACKEND_KUBERNETES) {
        msg_put_str(m, s->limits.kubernetes.ns);
        msg_put_str(m, s->limits.kubernetes.image);
    } else if (s->limits.backend == BACKEND_POD) {
        pod_spec_put(&s->pod, m);
    }
    msg_put_u32(m, s->n_volumes);
    for (unsigned i = 0; i < s->n_volumes; i++) {
        msg_put_str(m, s->volumes[i].name);
        msg_put_str(m, s->volumes[i].target);
        msg_put_u8(m, s->volumes[i].writable);
    }
    msg_put_u32(m, s->n_devices);
    for (unsigned i = 0; i < s->n_devices; i++) {
        msg_put_str(m, s->devices[i].host);
        msg_put_str(m, s->devices[i].path);
        msg_put_u8(m, s->devices[i].node);
    }
}

static int get_devices(struct sandbox_spec *s, struct msg *m)
{
    uint32_t n;
    uint8_t node;
    if (msg_get_u32(m, &n) < 0 || n > DEVICE_PARTS_MAX ||
        (n > 0 && (s->limits.backend != BACKEND_BWRAP || s->limits.nested)))
        return -1;
    for (; s->n_devices < n; s->n_devices++) {
        struct sandbox_spec_device *d = &s->devices[s->n_devices];
        if (msg_get_str(m, d->host, sizeof d->host) < 0 ||
            msg_get_str(m, d->path, sizeof d->path) < 0 || msg_get_u8(m, &node) < 0 || node > 1)
            return -1;
        d->node = node;
        if (!device_ok(d))
            return -1;
    }
    return 0;
}

static int get_volumes(struct sandbox_spec *s, struct msg *m)
{
    uint32_t n;
    uint8_t writable;
    if (msg_get_u32(m, &n) < 0 || n > SANDBOX_SPEC_VOLUMES_MAX ||
        (n > 0 && (!config_backend_lays_out(s->limits.backend) || s->limits.nested)))
        return -1;
    for (; s->n_volumes < n; s->n_volumes++) {
        struct sandbox_spec_volume *v = &s->volumes[s->n_volumes];
        if (msg_get_str(m, v->name, sizeof v->name) < 0 || !sandbox_spec_name_ok(v->name) ||
            msg_get_str(m, v->target, sizeof v->target) < 0 || !config_volume_path_ok(v->target) ||
            msg_get_u8(m, &writable) < 0 || writable > 1)
            return -1;
        v->writable = writable;
        if (s->n_volumes > 0 && strcmp(v[-1].target, v->target) >= 0)
            return -1;
    }
    return 0;
}

static int get_backend(struct sandbox_spec *s, struct msg *m)
{
    struct config_docker *d = &s->limits.docker;
    struct config_kubernetes *k = &s->limits.kubernetes;
    bool bare = s->image[0] == '\0' && s->root != SANDBOX_SPEC_KEPT;
    uint8_t backend, nested;
    if (msg_get_u8(m, &nested) < 0 || nested > 1 || msg_get_u8(m, &backend) < 0 ||
        backend == BACKENDS || backend >= BACKENDS_ALL)
        return -1;
    s->limits.nested = nested;
    if (nested && (backend != BACKEND_BWRAP || s->root == SANDBOX_SPEC_KEPT))
        return -1;
    s->limits.backend = (enum config_backend)backend;
    if (backend == BACKEND_POD)
        return s->image[0] || s->root != SANDBOX_SPEC_READ_ONLY ? -1 : pod_spec_get(&s->pod, m);
    if (config_backend_lays_out(s->limits.backend))
        return 0;
    if (backend == BACKEND_KUBERNETES)
        return msg_get_str(m, k->ns, sizeof k->ns) < 0 ||
                       msg_get_str(m, k->image, sizeof k->image) < 0 ||
                       !config_namespace_ok(k->ns) || !config_engine_image_ok(k->image) || !bare
                   ? -1
                   : 0;
    if (msg_get_str(m, d->socket, sizeof d->socket) < 0 ||
        msg_get_str(m, d->image, sizeof d->image) < 0)
        return -1;
    return config_socket_ok(d->socket) && config_engine_image_ok(d->image) && bare ? 0 : -1;
}

int sandbox_spec_get(struct sandbox_spec *s, struct msg *m)
{
    uint8_t root;
    uint32_t pids, cpu, files;
    *s = (struct sandbox_spec){.root = SANDBOX_SPEC_READ_ONLY};
    if (msg_get_str(m, s->image, sizeof s->image) < 0 || msg_get_u8(m, &root) < 0 ||
        msg_get_u64(m, &s->limits.memory) < 0 || msg_get_u64(m, &s->limits.disk) < 0 ||
        msg_get_u32(m, &pids) < 0 || msg_get_u32(m, &cpu) < 0 || msg_get_u32(m, &files) < 0)
        return -1;
    if (root >= SANDBOX_SPEC_ROOTS || (s->image[0] && !sandbox_spec_name_ok(s->image)))
        return -1;
    s->root = root;
    s->limits.writable = root != SANDBOX_SPEC_READ_ONLY;
    s->limits.pids = pids;
    s->limits.cpu = cpu;
    s->limits.files = files;
    return get_backend(s, m) < 0 || get_volumes(s, m) < 0 ? -1 : get_devices(s, m);
}
