/* The images of policies that roles decide by: one sealed file a policy, made when it is first
 * asked for, given to every role that decides, and made anew after a reload. */
#include "parent.h"

#include "peer.h"
#include "policy_message.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* At most one for each policy of the configuration, and one for each of the names of peer.h. */
struct policy_file {
    char name[POLICY_NAME_MAX + 1];
    int fd;
    LIST_ENTRY(policy_file) link;
};

size_t parent_policies_open(const struct parent *p)
{
    const struct policy_file *f;
    size_t n = 0;
    LIST_FOREACH(f, &p->policy_files, link)
    n++;
    return n;
}

void parent_policies_forget(struct parent *p)
{
    struct policy_file *f;
    while ((f = LIST_FIRST(&p->policy_files)) != NULL) {
        LIST_REMOVE(f, link);
        close(f->fd);
        free(f);
    }
}

static int image_fd(const struct policy *p, struct err *err)
{
    struct slice image = policy_image_bytes(p);
    return ipc_memfd("policy", image.p, image.n, err);
}

/* json: malloc'd. */
static int json_fd(char *json, struct err *err)
{
    struct policy *p = json ? policy_parse(json, strlen(json), err) : NULL;
    int fd = p ? image_fd(p, err) : -1;
    policy_free(p);
    free(json);
    return fd;
}

static int make_fd(const struct parent *p, const char *name, struct err *err)
{
    if (strcmp(name, PEER_TOKENS) == 0)
        return json_fd(config_endpoints_json(p->config), err);
    if (strcmp(name, PEER_EXPORTER) == 0)
        return json_fd(config_exporter_json(p->config), err);
    if (strcmp(name, PEER_FLEET) == 0)
        return json_fd(config_fleet_json(p->config), err);
    const struct policy *compiled = config_policy(p->config, name);
    return compiled ? image_fd(compiled, err) : -1;
}

int parent_policy_fd(struct parent *p, const char *name)
{
    struct policy_file *f;
    struct err err = {0};
    LIST_FOREACH(f, &p->policy_files, link)
    if (strcmp(f->name, name) == 0)
        return f->fd;
    int fd = make_fd(p, name, &err);
    f = fd >= 0 ? calloc(1, sizeof *f) : NULL;
    if (f == NULL) {
        proc_log("there is no image of policy %s: %s", name, err.text);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    snprintf(f->name, sizeof f->name, "%s", name);
    f->fd = fd;
    LIST_INSERT_HEAD(&p->policy_files, f, link);
    return fd;
}

void parent_put_policy(struct parent *p, const char *name, struct msg *m)
{
    msg_put_str(m, name);
    msg_put_u32(m, p->generation);
    msg_put_fd_dup(m, parent_policy_fd(p, name));
}

void parent_push_policy(struct child *c, const char *name)
{
    struct msg m;
    if (c->ch == NULL)
        return;
    msg_init(&m, W_POLICY);
    parent_put_policy(c->parent, name, &m);
    parent_tell(c, &m);
}
