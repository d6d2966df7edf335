/* Makes a shape of a policy and of what was asked for instead, writes it and reads it; the reader
 * checks the names again. */
#include "sandbox_spec.h"

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

int sandbox_spec_of_policy(const struct config *c, const char *policy, const char *backend,
                           const char *image, struct sandbox_spec *ret, struct err *err)
{
    *ret = (struct sandbox_spec){.limits = *config_policy_sandbox(c, policy)};
    ret->root = ret->limits.writable ? SANDBOX_SPEC_MEMORY : SANDBOX_SPEC_READ_ONLY;
    if (backend && backend[0])
        ret->limits.backend = config_backend_named(backend);
    if (ret->limits.backend == BACKENDS)
        return err_set(err, ERR_PARSE, "there is no backend '%.80s': bwrap or docker", backend);
    if (ret->limits.backend == BACKEND_DOCKER)
        return take_engine_image(ret, image ? image : "", err);
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
    msg_put_u8(m, (uint8_t)s->limits.backend);
    if (s->limits.backend != BACKEND_DOCKER)
        return;
    msg_put_str(m, s->limits.docker.socket);
    msg_put_str(m, s->limits.docker.image);
}

static int get_backend(struct sandbox_spec *s, struct msg *m)
{
    struct config_docker *d = &s->limits.docker;
    uint8_t backend;
    if (msg_get_u8(m, &backend) < 0 || backend >= BACKENDS)
        return -1;
    s->limits.backend = (enum config_backend)backend;
    if (backend != BACKEND_DOCKER)
        return 0;
    if (msg_get_str(m, d->socket, sizeof d->socket) < 0 ||
        msg_get_str(m, d->image, sizeof d->image) < 0)
        return -1;
    bool ok = config_socket_ok(d->socket) && config_engine_image_ok(d->image) &&
              s->image[0] == '\0' && s->root != SANDBOX_SPEC_KEPT;
    return ok ? 0 : -1;
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
    return get_backend(s, m);
}
