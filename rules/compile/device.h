/* Devices of a sandbox: what a CDI specification of the host may have of the host, and where. Pure
 * rules, which who reads a specification and who makes the sandbox both ask. */
#ifndef DURWARD_DEVICE_H
#define DURWARD_DEVICE_H

#include <stdbool.h>
#include <sys/types.h>

enum {
    DEVICE_NAMES_MAX = 8,      /* that a policy names */
    DEVICE_NAME_MAX = 191,     /* vendor.com/class=name */
    DEVICE_PARTS_MAX = 64,     /* device nodes and mounts together */
    DEVICE_PATH_MAX = 191,     /* of each */
    DEVICE_VARIABLES_MAX = 32, /* that they add */
    DEVICE_VARIABLE_MAX = 1023 /* NAME=VALUE */
};

/* vendor.com/class=name */
bool device_name_ok(const char *s);
/* A place of device nodes on the host: below /dev, canonical. */
bool device_host_ok(const char *path);
/* The same inside, and none that each sandbox has of its own, or that is below one. */
bool device_path_ok(const char *path);
/* A file or directory of the host that may be mounted: of programs and libraries, canonical. */
bool device_mount_host_ok(const char *path);
bool device_mount_path_ok(const char *path);
/* May a character device of this number be in a sandbox? No raw memory, no console, no raw disk,
 * no registers and nobody's keyboard: they are the host. */
bool device_number_ok(dev_t number);
/* NAME=VALUE, and no variable that decides what programs load or whom they trust. */
bool device_variable_ok(const char *s);

#endif
