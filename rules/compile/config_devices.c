/* A policy's `devices` as device_specs.c has put them into the tree: held to the same rules as what
 * a specification says. */
#include <string.h>

#include "config_tree.h"
#include "device.h"

static bool known(const json_t *object)
{
    static const char *const keys[] = {"names", "nodes", "mounts", "env"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        unsigned i = 0;
        while (i < ARRAY_LEN(keys) && strcmp(keys[i], key) != 0)
            i++;
        if (i == ARRAY_LEN(keys) || !json_is_array(value))
            return false;
    }
    return true;
}

static bool found_ok(const json_t *found)
{
    json_t *part;
    size_t i, parts = json_array_size(json_object_get(found, "nodes")) +
                      json_array_size(json_object_get(found, "mounts"));
    if (!known(found) || parts > DEVICE_PARTS_MAX ||
        json_array_size(json_object_get(found, "env")) > DEVICE_VARIABLES_MAX)
        return false;
    for (int node = 0; node <= 1; node++)
        json_array_foreach(json_object_get(found, node ? "nodes" : "mounts"), i, part)
        {
            const char *host = json_string_value(json_object_get(part, "host")),
                       *path = json_string_value(json_object_get(part, "path"));
            if (host == NULL || path == NULL ||
                !(node ? device_host_ok(host) && device_path_ok(path)
                       : device_mount_host_ok(host) && device_mount_path_ok(path)))
                return false;
        }
    json_array_foreach(json_object_get(found, "env"), i,
                       part) if (!json_is_string(part) ||
                                 !device_variable_ok(json_string_value(part))) return false;
    return true;
}

int config_read_devices(const struct node *sandbox, struct config_sandbox *s, struct err *err)
{
    struct node list;
    if (!node_get(sandbox, "devices", &list))
        return 0;
    if (s->backend != BACKEND_BWRAP || s->nested)
        return node_fail(&list, err,
                         "devices are of sandboxes that bwrap makes, without nested: true");
    s->devices = list.value;
    return json_is_object(list.value) && found_ok(list.value)
               ? 0
               : node_fail(&list, err, "this is not a device of this host");
}
