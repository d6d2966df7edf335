/* Reads `cluster`: the API server of a Kubernetes cluster in which sandboxes of `backend:
 * kubernetes` are pods. */
#include <string.h>

#include "authority.h"
#include "config_tree.h"

enum { API_MAX = 300, PATH_MAX_BYTES = 255 };

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

static const struct key cluster_section[] = {
    KEY("api", AS(address), "kubernetes.default.svc", "HOST or HOST:PORT of the API server"),
    KEY("ca", AS(path), "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
        "file of the CA that its certificate is good by"),
    KEY("token", AS(path), "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "file of the token that says who the daemon is; read for each connection, so that it may "
        "be "
        "replaced"),
    KEY("image", AS(engine_image), "required",
        "Durward's own image: from it an init container takes durward-init into each pod"),
};

static int read_file(struct config *c, const struct node *n, const char *key, const char **ret,
                     struct err *err)
{
    struct node at;
    if (!node_get(n, key, &at))
        return 0;
    if (config_file(c, &at, ret, err) < 0)
        return -1;
    return strlen(*ret) <= PATH_MAX_BYTES ? 0 : node_fail(&at, err, "is too long a path");
}

int config_read_cluster(struct config *c, const struct node *n, struct err *err)
{
    struct node at;
    struct authority api;
    const char *text;
    if (node_is_object(n, err) < 0 || node_keys(n, KEYS(cluster_section), err) < 0)
        return -1;
    struct config_cluster *s = arena_zalloc(c->arena, 1, sizeof *s);
    *s = (struct config_cluster){"kubernetes.default.svc", ACCOUNT "ca.crt", ACCOUNT "token", NULL};
    if (node_get(n, "api", &at)) {
        if (node_string(&at, &text, err) < 0)
            return -1;
        if (strlen(text) > API_MAX || authority_parse(&api, SCHEME_HTTPS, slice_str(text)) < 0)
            return node_fail(&at, err, "must be HOST or HOST:PORT of an API server");
        s->api = arena_str(c->arena, text);
    }
    if (read_file(c, n, "ca", &s->ca, err) < 0 || read_file(c, n, "token", &s->token, err) < 0)
        return -1;
    if (!node_get(n, "image", &at))
        return node_fail(n, err, "'image' is missing: Durward's own, with durward-init");
    if (node_string(&at, &text, err) < 0)
        return -1;
    if (!config_engine_image_ok(text))
        return node_fail(&at, err, "must be an image's name as the cluster knows it");
    s->image = arena_str(c->arena, text);
    c->cluster = s;
    return 0;
}

int config_check_cluster(const struct config *c, const struct node *root, struct err *err)
{
    for (size_t i = 0; i < config_policies(c) && c->cluster == NULL; i++)
        if (config_policy_sandbox(c, config_policy_name(c, i))->backend == BACKEND_KUBERNETES)
            return node_fail(root, err,
                             "the policy '%.60s' makes pods of a cluster: 'cluster' says which",
                             config_policy_name(c, i));
    return 0;
}

const struct config_cluster *config_cluster(const struct config *c)
{
    return c->cluster;
}
