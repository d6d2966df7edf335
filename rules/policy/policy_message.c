/* Reads policies and limits out of the parent's messages, and compiles the policies. */
#include "policy_message.h"

#include "ipc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POLICY_JSON_MAX = 16 << 20 };

int policy_message_get(struct msg *m, struct policy_message *ret)
{
    if (msg_get_str(m, ret->name, sizeof ret->name) < 0 || msg_get_u32(m, &ret->generation) < 0)
        return -1;
    return msg_get_fd(m, &ret->fd);
}

struct policy *policy_message_load(const struct policy_message *p, struct err *err)
{
    char *json;
    size_t n;
    int got = ipc_memfd_read(p->fd, POLICY_JSON_MAX, &json, &n, err);
    close(p->fd);
    if (got < 0)
        return NULL;
    struct policy *ret = policy_parse(json, n, err);
    free(json);
    return ret;
}

int limits_get(struct msg *m, struct limits *ret)
{
    struct slice raw;
    if (msg_get_slice(m, sizeof *ret, &raw) < 0 || raw.n != sizeof *ret)
        return -1;
    memcpy(ret, raw.p, sizeof *ret);
    return 0;
}
