#include "shape.h"

#include <string.h>

#include "slice.h"

bool shape_name_ok(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > SHAPE_NAME_MAX || s[0] == '.' || s[0] == '-')
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && *s != '_' && *s != '.' && *s != '-')
            return false;
    return true;
}

int shape_of_policy(const struct config *c, const char *policy, const char *image,
                    struct shape *ret)
{
    *ret = (struct shape){.limits = *config_policy_sandbox(c, policy)};
    ret->root = ret->limits.writable ? SHAPE_MEMORY : SHAPE_READ_ONLY;
    if (image == NULL || image[0] == '\0' || strcmp(image, "host") == 0)
        return 0;
    if (!shape_name_ok(image))
        return -1;
    memcpy(ret->image, image, strlen(image) + 1);
    return 0;
}

void shape_put(const struct shape *s, struct msg *m)
{
    msg_put_str(m, s->image);
    msg_put_u8(m, (uint8_t)s->root);
    msg_put_u64(m, s->limits.memory);
    msg_put_u64(m, s->limits.disk);
    msg_put_u32(m, s->limits.pids);
    msg_put_u32(m, s->limits.cpu);
    msg_put_u32(m, s->limits.files);
}

int shape_get(struct shape *s, struct msg *m)
{
    uint8_t root;
    uint32_t pids, cpu, files;
    *s = (struct shape){.root = SHAPE_READ_ONLY};
    if (msg_get_str(m, s->image, sizeof s->image) < 0 || msg_get_u8(m, &root) < 0 ||
        msg_get_u64(m, &s->limits.memory) < 0 || msg_get_u64(m, &s->limits.disk) < 0 ||
        msg_get_u32(m, &pids) < 0 || msg_get_u32(m, &cpu) < 0 || msg_get_u32(m, &files) < 0)
        return -1;
    if (root >= SHAPE_ROOTS || (s->image[0] && !shape_name_ok(s->image)))
        return -1;
    s->root = root;
    s->limits.writable = root != SHAPE_READ_ONLY;
    s->limits.pids = pids;
    s->limits.cpu = cpu;
    s->limits.files = files;
    return 0;
}
