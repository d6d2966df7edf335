/* Writes the guest's first files as an archive that its kernel unpacks (cpio, "newc"):
 * durward-guest as /init, modules in the order in which they are loaded, and what is to be started.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "guest.h"
#include "ipc.h"
#include "microvm.h"
#include "program.h"
#include "rlimits.h"
#include "rootfs.h"

enum {
    MODULES = 64,
    FILE_MAX = 16 * 1024 * 1024,
    WORDS_MAX = 1024,
    DEP_LINE = 4096,
    LIBRARIES = 4,
};

struct archive {
    FILE *to;
    unsigned inode;
};

/* ---- the archive ---- */

static void pad(struct archive *a, size_t n)
{
    static const char zeros[4];
    fwrite(zeros, 1, (4 - n % 4) % 4, a->to);
}

static void add(struct archive *a, const char *name, unsigned mode, const void *p, size_t n)
{
    size_t len = strlen(name) + 1;
    fprintf(a->to, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", ++a->inode, mode,
            0, 0, 1, 0, (unsigned)n, 0, 0, 0, 0, (unsigned)len, 0);
    fwrite(name, 1, len, a->to);
    pad(a, 110 + len);
    fwrite(p, 1, n, a->to);
    pad(a, n);
}

static int add_open(struct archive *a, const char *name, unsigned mode, int fd, const char *path,
                    struct err *err)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > FILE_MAX)
        return err_set(err, ERR_UNREADY, "%s cannot be read, or is too large", path);
    size_t n = (size_t)st.st_size;
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return err_sys(err, "%s", path);
    add(a, name, mode, p, n);
    munmap(p, n);
    return 0;
}

static int add_file(struct archive *a, const char *name, unsigned mode, const char *path,
                    struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r = add_open(a, name, mode, fd, path, err);
    if (fd >= 0)
        close(fd);
    return r;
}

/* ---- durward-guest's libraries ---- */

struct libraries {
    struct archive *to;
    struct err *err;
    unsigned n;
};

/* Those that we run with are those that it was linked with. */
static int add_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    static const char *const wanted[] = {"libc.so.", "libmnl.so.", "libnftnl.so.", "ld-linux"};
    struct libraries *l = arg;
    char name[128];
    const char *base = strrchr(info->dlpi_name, '/');
    (void)size;
    for (size_t i = 0; base && i < ARRAY_LEN(wanted); i++) {
        bool loader = i == ARRAY_LEN(wanted) - 1;
        if (strncmp(base + 1, wanted[i], strlen(wanted[i])) != 0)
            continue;
        int n = snprintf(name, sizeof name, "%s%s", loader ? "lib64" : "lib", base);
        if (n < 0 || (size_t)n >= sizeof name)
            return err_set(l->err, ERR_LIMIT, "%s: too long a name", info->dlpi_name);
        l->n++;
        return add_file(l->to, name, S_IFREG | 0500, info->dlpi_name, l->err);
    }
    return 0;
}

static int with_libraries(struct archive *a, struct err *err)
{
    struct libraries l = {.to = a, .err = err};
    add(a, "lib", S_IFDIR | 0700, "", 0);
    add(a, "lib64", S_IFDIR | 0700, "", 0);
    if (dl_iterate_phdr(add_library, &l) < 0)
        return -1;
    return l.n == LIBRARIES ? 0 : err_set(err, ERR_UNREADY, "the guest's libraries were not found");
}

/* ---- modules ---- */

struct modules {
    char *text; /* modules.dep, a line each: PATH: PATH PATH */
    char *paths[MODULES];
    unsigned n;
};

/* The line that is of a module of this name. */
static char *line_of(char *text, const char *name)
{
    size_t n = strlen(name);
    for (char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        size_t path = strcspn(at, ":\n");
        char *base = at;
        for (size_t i = 0; i < path; i++)
            if (at[i] == '/')
                base = at + i + 1;
        if (at[path] == ':' && strncmp(base, name, n) == 0 && strncmp(base + n, ".ko", 3) == 0)
            return at;
    }
    return NULL;
}

static int add_path(struct modules *m, const char *at, size_t n)
{
    for (unsigned i = 0; i < m->n; i++)
        if (strlen(m->paths[i]) == n && strncmp(m->paths[i], at, n) == 0)
            return 0;
    if (m->n == MODULES || (m->paths[m->n] = slice_dup((struct slice){at, n})) == NULL)
        return -1;
    m->n++;
    return 0;
}

/* Those that it needs first: the last that is named needs none of the others. One that has no line
 * is part of the kernel. */
static int want(struct modules *m, const char *name)
{
    char line[DEP_LINE];
    const char *at = line_of(m->text, name);
    if (at == NULL)
        return 0;
    size_t n = strcspn(at, "\n");
    if (n >= sizeof line)
        return -1;
    memcpy(line, at, n);
    line[n] = '\0';
    for (char *space; (space = strrchr(line, ' ')) != NULL; *space = '\0')
        if (space[1] && add_path(m, space + 1, strlen(space + 1)) < 0)
            return -1;
    return add_path(m, line, strcspn(line, ":"));
}

static int add_modules(struct archive *a, struct modules *m, const char *directory, struct err *err)
{
    static const char *const wanted[] = {"virtio_pci", "virtio_console", "virtiofs",
                                         "nf_tables",  "nft_tproxy",     "nft_reject_inet",
                                         "nft_log",    "nfnetlink_log"};
    char path[2 * MICROVM_PATH], name[32];
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (want(m, wanted[i]) < 0)
            return err_set(err, ERR_LIMIT, "%s: too many modules", directory);
    for (unsigned i = 0; i < m->n; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, m->paths[i]);
        snprintf(name, sizeof name, GUEST_MODULE, i);
        if (add_file(a, name, S_IFREG | 0400, path, err) < 0)
            return -1;
    }
    return 0;
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "re");
    char *text = f ? calloc(1, FILE_MAX / 8) : NULL;
    if (text && fread(text, 1, FILE_MAX / 8 - 1, f) == 0)
        text[0] = '\0';
    if (f)
        fclose(f);
    return text;
}

static int with_modules(struct archive *a, const char *directory, struct err *err)
{
    struct modules m = {.n = 0};
    char path[MICROVM_PATH + 16];
    snprintf(path, sizeof path, "%s/modules.dep", directory);
    m.text = read_text(path);
    int r = m.text ? add_modules(a, &m, directory, err) : err_sys(err, "%s", path);
    for (unsigned i = 0; i < m.n; i++)
        free(m.paths[i]);
    free(m.text);
    return r;
}

/* ---- what is started ---- */

/* Files in the machine's memory, beside its programs. */
static uint64_t shared_memory(const struct plan *plan)
{
    uint64_t half = plan_machine_mib(plan) * PLAN_MIB / 2, disk = plan->sandbox_spec.limits.disk;
    return disk && disk < half ? disk : half;
}

/* Each ends in a NUL. */
static int add_words(struct archive *a, const struct plan *plan, struct err *err)
{
    char text[WORDS_MAX], pids[16], known[24], shared[24], files[32];
    snprintf(pids, sizeof pids, "%u", (unsigned)plan->sandbox_spec.limits.pids);
    snprintf(known, sizeof known, "%llu", (unsigned long long)rlimits_server_files(plan));
    snprintf(shared, sizeof shared, "%llu", (unsigned long long)shared_memory(plan));
    snprintf(files, sizeof files, COMMAND_FILES "%u", (unsigned)plan->sandbox_spec.limits.files);
    const char *const words[] = {plan->hostname,
                                 pids,
                                 known,
                                 shared,
                                 program_build,
                                 ROOTFS_INIT,
                                 COMMAND_RELAYED,
                                 COMMAND_GUEST,
                                 files,
                                 plan->signs ? COMMAND_AGENT : NULL,
                                 plan->sandbox_spec.root != SANDBOX_SPEC_READ_ONLY ? "layered"
                                                                                   : NULL};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = words[i] ? strlen(words[i]) + 1 : 0;
        if (n + len > sizeof text)
            return err_set(err, ERR_LIMIT, "the guest's words are too long");
        memcpy(text + n, words[i] ? words[i] : "", len);
        n += len;
    }
    add(a, GUEST_WORDS, S_IFREG | 0400, text, n);
    return 0;
}

int microvm_guest(struct err *err)
{
    char path[MICROVM_PATH];
    if (program_path(GUEST_PROGRAM, path, sizeof path, err) < 0)
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(err, "%s", path) : fd;
}

int microvm_initrd(const struct plan *plan, const struct microvm_program *p, int guest,
                   struct err *err)
{
    int fd = memfd_create("initrd", MFD_CLOEXEC), other = fd < 0 ? -1 : dup(fd);
    struct archive a = {.to = other < 0 ? NULL : fdopen(other, "w")};
    if (a.to == NULL)
        return err_sys(err, "initrd");
    add(&a, "modules", S_IFDIR | 0700, "", 0);
    int r = add_open(&a, "init", S_IFREG | 0500, guest, GUEST_PROGRAM, err);
    if (r == 0)
        r = with_libraries(&a, err);
    if (r == 0)
        r = with_modules(&a, p->modules, err);
    if (r == 0)
        r = add_words(&a, plan, err);
    add(&a, "TRAILER!!!", 0, "", 0);
    if (fclose(a.to) != 0 && r == 0)
        r = err_sys(err, "initrd");
    if (r == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return r < 0 ? -1 : err_sys(err, "initrd");
}
