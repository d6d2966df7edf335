/* Finds QEMU, virtiofsd and a kernel for the guest. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "microvm.h"

#define OWN_KERNEL "/usr/local/lib/durward/microvm"

static const char *first_of(const char *const *places, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Can what is named so be used: the kernel itself, and its modules? */
static bool take(struct microvm_program *ret, const char *kernel, const char *modules)
{
    char dep[MICROVM_PATH + 16];
    int a = snprintf(ret->kernel, sizeof ret->kernel, "%s", kernel);
    int b = snprintf(ret->modules, sizeof ret->modules, "%s", modules);
    if (a < 0 || b < 0 || (size_t)a >= sizeof ret->kernel || (size_t)b >= sizeof ret->modules)
        return false;
    snprintf(dep, sizeof dep, "%s/modules.dep", ret->modules);
    return access(kernel, R_OK) == 0 && access(dep, R_OK) == 0;
}

/* The newest of Debian's, of those whose version ends so. */
static bool find_debian(struct microvm_program *ret, const char *flavour)
{
    char best[256] = "", kernel[300], modules[300];
    DIR *d = opendir("/boot");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        const char *version = e->d_name + sizeof "vmlinuz-" - 1;
        if (strncmp(e->d_name, "vmlinuz-", sizeof "vmlinuz-" - 1) != 0 ||
            !ends_in(version, flavour) || (best[0] && strverscmp(version, best) < 0))
            continue;
        snprintf(kernel, sizeof kernel, "/boot/%s", e->d_name);
        snprintf(modules, sizeof modules, "/lib/modules/%s", version);
        if (take(ret, kernel, modules))
            snprintf(best, sizeof best, "%s", version);
    }
    if (d)
        closedir(d);
    snprintf(kernel, sizeof kernel, "/boot/vmlinuz-%s", best);
    snprintf(modules, sizeof modules, "/lib/modules/%s", best);
    return best[0] && take(ret, kernel, modules);
}

/* A /dev/kvm alone says little: one of a paravirtual host may never start a guest. */
static bool has_kvm(void)
{
    char line[8192];
    bool found = false;
    FILE *f = access("/dev/kvm", R_OK | W_OK) == 0 ? fopen("/proc/cpuinfo", "re") : NULL;
    while (f && !found && fgets(line, sizeof line, f))
        found = strncmp(line, "flags", 5) == 0 && (strstr(line, " vmx") || strstr(line, " svm"));
    if (f)
        fclose(f);
    return found;
}

/* Where virtiofsd is and how it keeps files. Left to itself the guest's kernel forgets a file's
 * bytes each time that it is opened, a program's libraries at each start. Debian's can keep them
 * for as long as size and time of change are the same, and look for those anew after a second: so
 * late is seen what the host changes in a bind, and no later. */
static void find_files(struct microvm_program *ret)
{
    static const char *const places[][2] = {{"/usr/local/libexec/virtiofsd", "cache=auto"},
                                            {"/usr/lib/qemu/virtiofsd", "cache=always,timeout=1"}};
    for (size_t i = 0; i < ARRAY_LEN(places) && ret->files == NULL; i++)
        if (access(places[i][0], X_OK) == 0) {
            ret->files = places[i][0];
            ret->cache = places[i][1];
        }
}

int microvm_find(struct microvm_program *ret, struct err *err)
{
    static const char *const qemu[] = {"/usr/local/bin/qemu-system-x86_64",
                                       "/usr/bin/qemu-system-x86_64"};
    *ret = (struct microvm_program){.qemu = first_of(qemu, ARRAY_LEN(qemu)), .kvm = has_kvm()};
    find_files(ret);
    if (ret->qemu == NULL)
        return err_set(err, ERR_UNREADY,
                       "QEMU is not there: install it, for instance with apt install "
                       "qemu-system-x86");
    if (ret->files == NULL)
        return err_set(err, ERR_UNREADY,
                       "virtiofsd is not there: install it, for instance with apt install "
                       "qemu-system-common");
    if (take(ret, OWN_KERNEL "/vmlinuz", OWN_KERNEL "/modules") ||
        find_debian(ret, "-cloud-amd64") || find_debian(ret, "-amd64"))
        return 0;
    return err_set(err, ERR_UNREADY,
                   "no kernel for the guest can be read: install one, for instance with apt "
                   "install linux-image-cloud-amd64, or as " OWN_KERNEL "/vmlinuz with " OWN_KERNEL
                   "/modules");
}
