/* Judges names, paths, numbers and variables of devices; reads nothing. */
#include "device.h"

#include "config.h"
#include "slice.h"

#include <string.h>
#include <strings.h>
#include <sys/sysmacros.h>

static bool word_ok(const char *s, size_t n, const char *more)
{
    if (n == 0 || n > 63 || !ascii_is_alnum(s[0]) || !ascii_is_alnum(s[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!ascii_is_alnum(s[i]) && strchr(more, s[i]) == NULL)
            return false;
    return true;
}

bool device_name_ok(const char *s)
{
    size_t vendor = strcspn(s, "/"), whole = strlen(s);
    if (vendor == whole || whole > DEVICE_NAME_MAX || !word_ok(s, vendor, "_-."))
        return false;
    const char *class = s + vendor + 1;
    size_t n = strcspn(class, "=");
    return class[n] == '=' && word_ok(class, n, "_-") &&
           word_ok(class + n + 1, strlen(class + n + 1), "_-.:");
}

static bool canonical(const char *s)
{
    return strlen(s) <= DEVICE_PATH_MAX && config_volume_path_ok(s);
}

/* Is it below one of these, or with `itself` one of them? */
static bool below(const char *path, const char *const *roots, size_t n, bool itself)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(roots[i]);
        if (strncmp(path, roots[i], len) == 0 &&
            (path[len] == '/' || (itself && path[len] == '\0')))
            return true;
    }
    return false;
}

/* Disks whose numbers are given out as they come, and what reboots the host: known by their names.
 */
static bool of_host(const char *path)
{
    static const char *const begins[] = {"/dev/nvme", "/dev/watchdog", "/dev/mtd", "/dev/bsg/"};
    for (size_t i = 0; i < ARRAY_LEN(begins); i++)
        if (strncmp(path, begins[i], strlen(begins[i])) == 0)
            return true;
    return strncmp(path, "/dev/ng", 7) == 0 && path[7] >= '0' && path[7] <= '9';
}

bool device_host_ok(const char *path)
{
    static const char *const dev[] = {"/dev"};
    /* descriptors, terminals and shared memory of whoever looks are no devices */
    static const char *const none[] = {"/dev/fd", "/dev/pts", "/dev/shm", "/dev/mqueue"};
    return canonical(path) && below(path, dev, 1, false) &&
           !below(path, none, ARRAY_LEN(none), true) && !of_host(path);
}

bool device_path_ok(const char *path)
{
    static const char *const own[] = {
        "/dev/null", "/dev/zero",  "/dev/full",   "/dev/random", "/dev/urandom", "/dev/tty",
        "/dev/ptmx", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/console", "/dev/core",
    };
    return device_host_ok(path) && !below(path, own, ARRAY_LEN(own), true);
}

/* Not /run and /var: sockets of the host's services and Durward's own files are there. */
static const char *const mountable[] = {
    "/usr", "/opt", "/lib", "/lib64", "/etc/vulkan", "/etc/OpenCL", "/etc/glvnd", "/etc/egl",
};

bool device_mount_host_ok(const char *path)
{
    return canonical(path) && below(path, mountable, ARRAY_LEN(mountable), false);
}

bool device_mount_path_ok(const char *path)
{
    return device_mount_host_ok(path);
}

bool device_number_ok(dev_t number)
{
    enum {
        MEMORY = 1,
        TERMINALS = 4,
        CONSOLES = 5,
        SCREENS = 7,
        MISC = 10,
        SCSI = 21,
        FLASH = 90,
        RAW = 162,
        REGISTERS = 202, /* /dev/cpu/N/msr */
        SERIAL = 204,    /* consoles of some machines: ttyAMA0 */
        HYPERVISOR = 229 /* hvc0 */
    };
    unsigned of = major(number), minor_of = minor(number);
    switch (of) {
    case MEMORY: /* /dev/mem, kmem, port, kmsg are others */
        return minor_of == 3 || minor_of == 5 || minor_of == 7 || minor_of == 8 || minor_of == 9;
    case MISC: /* watchdog, nvram, uinput, snapshot, uhid, userio */
        return minor_of != 130 && minor_of != 144 && minor_of != 223 && minor_of != 231 &&
               minor_of != 239 && minor_of != 240;
    case FLASH:
    case REGISTERS:
    case SERIAL:
    case HYPERVISOR:
    case TERMINALS:
    case CONSOLES:
    case SCREENS:
    case SCSI:
    case RAW:
        return false;
    default:
        return number != 0;
    }
}

bool device_variable_ok(const char *s)
{
    static const char *const names[] = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "IFS", "ENV"};
    /* of loaders and the C library, of languages, of what takes certificates or keys */
    static const char *const parts[] = {
        "LD_",  "GCONV_", "GLIBC_",  "DURWARD",  "SSL",    "SSH_", "OPENSSL_", "GIT_",
        "BASH", "NODE_",  "NPM_",    "PIP_",     "PYTHON", "PERL", "RUBY",     "JAVA_",
        "JDK_", "_JAVA_", "DOTNET_", "CORECLR_", "LUA_",   "PHP",  "COMPlus_", "npm_"};
    static const char *const ends[] = {"_PROXY", "CA_BUNDLE", "_CERT",     "_CERTS",
                                       "CAFILE", "CA_FILE",   "CERT_FILE", "CERT_DIR",
                                       "CAPATH", "CA_PATH",   "CERT_PATH"};
    size_t n = strcspn(s, "=");
    if (s[n] != '=' || n == 0 || strlen(s) > DEVICE_VARIABLE_MAX || (s[0] >= '0' && s[0] <= '9'))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!ascii_is_alnum(s[i]) && s[i] != '_')
            return false;
    for (const char *c = s + n; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (n == strlen(names[i]) && strncmp(s, names[i], n) == 0)
            return false;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (strncmp(s, parts[i], strlen(parts[i])) == 0)
            return false;
    /* proxies and bundles of roots, in whatever case */
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (n >= strlen(ends[i]) &&
            strncasecmp(s + n - strlen(ends[i]), ends[i], strlen(ends[i])) == 0)
            return false;
    return true;
}
