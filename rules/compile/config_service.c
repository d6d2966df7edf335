/* `services` of a policy's sandboxes, and where previews of them are seen from. */
#include <string.h>

#include "config_tree.h"

static const struct key service_keys[] = {
    KEY("port", UINT(1, 65535), "", ""),
    KEY("health", AS(text), "", ""),
};

/* A label of a host name before "--": [a-z]([a-z0-9-]*[a-z0-9])? without "--". */
static bool name_ok(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > CONFIG_SERVICE_NAME_MAX || s[0] < 'a' || s[0] > 'z' || s[n - 1] == '-' ||
        strstr(s, "--"))
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && *s != '-')
            return false;
        else if (*s != ascii_lower(*s))
            return false;
    return true;
}

static bool path_ok(const char *s)
{
    if (s[0] != '/' || strlen(s) > CONFIG_SERVICE_PATH_MAX)
        return false;
    for (; *s; s++)
        if (*s <= 0x20 || *s >= 0x7f || *s == '#')
            return false;
    return true;
}

static int read_service(const struct node *n, struct config_service *s, struct err *err)
{
    struct node at;
    unsigned port = 0;
    const char *health = "tcp";
    if (json_is_integer(n->value)) {
        if (node_uint(n, 1, 65535, &port, err) < 0)
            return -1;
        s->port = (uint16_t)port;
        return 0;
    }
    if (node_keys(n, KEYS(service_keys), err) < 0 ||
        node_key_uint(n, service_keys, "port", &port, err) < 0)
        return -1;
    if (port == 0)
        return node_fail(n, err, "'port' is missing: where the service listens inside");
    s->port = (uint16_t)port;
    if (!node_get(n, "health", &at))
        return 0;
    if (node_string(&at, &health, err) < 0)
        return -1;
    if (strcmp(health, "tcp") == 0)
        return 0;
    if (!path_ok(health))
        return node_fail(&at, err,
                         "must be tcp, or the path that a GET is sent to, such as /healthz");
    memcpy(s->health, health, strlen(health) + 1);
    return 0;
}

int config_read_services(const struct node *n, struct config_sandbox *s, struct err *err)
{
    const char *name;
    json_t *value;
    if (node_is_object(n, err) < 0)
        return -1;
    json_object_foreach(n->value, name, value)
    {
        struct node at;
        node_get(n, name, &at);
        if (!name_ok(name))
            return node_fail(&at, err,
                             "a service's name is of a to z, 0 to 9 and single '-', begins with a "
                             "letter, and has at most %d",
                             CONFIG_SERVICE_NAME_MAX);
        if (s->n_services >= CONFIG_SERVICES_MAX)
            return node_fail(&at, err, "a sandbox has at most %d services", CONFIG_SERVICES_MAX);
        struct config_service *one = &s->services[s->n_services++];
        memset(one, 0, sizeof *one);
        memcpy(one->name, name, strlen(name) + 1);
        if (read_service(&at, one, err) < 0)
            return -1;
    }
    return 0;
}
