/* What the builder is told of a cluster. */
#include "cluster.h"

#include <string.h>

#include "config.h"

void cluster_place_put(const struct cluster_place *p, struct msg *m)
{
    msg_put_str(m, p->api);
    msg_put_str(m, p->ca);
    msg_put_str(m, p->token);
    msg_put_str(m, p->image);
}

int cluster_place_get(struct cluster_place *p, struct msg *m)
{
    memset(p, 0, sizeof *p);
    if (msg_get_str(m, p->api, sizeof p->api) < 0 || msg_get_str(m, p->ca, sizeof p->ca) < 0 ||
        msg_get_str(m, p->token, sizeof p->token) < 0 ||
        msg_get_str(m, p->image, sizeof p->image) < 0)
        return -1;
    bool none = p->api[0] == '\0';
    bool paths = p->ca[0] == '/' && p->token[0] == '/' && config_engine_image_ok(p->image);
    return none || paths ? 0 : -1;
}
