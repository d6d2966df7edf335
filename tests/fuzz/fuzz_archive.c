/* Archives: of a snapshot where it begins as one, else of an image. Whatever one holds, what is
 * laid out stays below the directory, within its budget, and is of harmless kinds.
 *
 * Sums of tar's headers are made right first, or nearly all that is tried would end there. */
#define _GNU_SOURCE 1
#include "layer_archive.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "buf.h"
#include "tree.h"
#include "unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES = 1 << 20, ENTRIES = 400, MAGIC = 257, SUM = 148, SUM_LENGTH = 8, DEPTH = 300 };

static const char *const places[] = {"root", "usr", "outside"};

/* In memory where that can be; removed at exit. */
static char in_memory[] = "/dev/shm/fuzz-archive-XXXXXX", on_disk[] = "/tmp/fuzz-archive-XXXXXX";
static const char *scratch;

static void leave(void)
{
    int fd = open(scratch, O_RDONLY | O_DIRECTORY);
    if (fd >= 0 && tree_empty(fd, NULL) == 0)
        (void)rmdir(scratch);
}

static int place(size_t i)
{
    static int top = -1;
    if (top < 0) {
        scratch = mkdtemp(in_memory);
        if (scratch == NULL)
            scratch = mkdtemp(on_disk);
        if (scratch == NULL || (top = open(scratch, O_RDONLY | O_DIRECTORY)) < 0)
            abort();
        atexit(leave);
        umask(022);
        for (size_t k = 0; k < ARRAY_LEN(places); k++)
            if (mkdirat(top, places[k], 0700) < 0)
                abort();
    }
    return openat(top, places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void mend(uint8_t *p, size_t size)
{
    for (; size >= LAYER_BLOCK; p += LAYER_BLOCK, size -= LAYER_BLOCK) {
        unsigned sum = 0;
        char text[SUM_LENGTH + 1];
        if (memcmp(p + MAGIC, "ustar", 5) != 0)
            continue;
        memset(p + SUM, ' ', SUM_LENGTH);
        for (size_t i = 0; i < LAYER_BLOCK; i++)
            sum += p[i];
        snprintf(text, sizeof text, "%06o", sum);
        memcpy(p + SUM, text, 7); /* its NUL too */
    }
}

static int as_file(const uint8_t *data, size_t size)
{
    uint8_t *p = malloc(size ? size : 1);
    int fd = memfd_create("archive", MFD_CLOEXEC);
    if (p == NULL || fd < 0)
        abort();
    memcpy(p, data, size);
    mend(p, size);
    if (write(fd, p, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) < 0)
        abort();
    free(p);
    return fd;
}

/* No attribute but a user's own and overlayfs's two harmless marks. */
static void check_attributes(int fd, bool snapshot)
{
    char names[65536];
    ssize_t n = flistxattr(fd, names, sizeof names);
    for (const char *p = names; p < names + n; p += strlen(p) + 1)
        if (!snapshot || strncmp(p, "user.", 5) != 0 || strcmp(p, "user.overlay.redirect") == 0 ||
            strcmp(p, "user.overlay.origin") == 0 || strcmp(p, "user.overlay.metacopy") == 0)
            abort();
}

/* Looks at all below a directory; what it holds in bytes. */
static uint64_t check(int dir, bool snapshot, unsigned depth)
{
    uint64_t bytes = 0;
    int own = dup(dir);
    DIR *d = fdopendir(own);
    if (d == NULL || depth > DEPTH)
        abort();
    rewinddir(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            (st.st_mode & (S_ISUID | S_ISGID)) || S_ISBLK(st.st_mode) || S_ISSOCK(st.st_mode) ||
            (!snapshot && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode))) ||
            (S_ISCHR(st.st_mode) && st.st_rdev != makedev(0, 0)))
            abort();
        if (S_ISREG(st.st_mode))
            bytes += (uint64_t)st.st_size / st.st_nlink;
        if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
            continue;
        if (fchmodat(dir, e->d_name, 0700, 0) < 0)
            abort();
        int fd = openat(dir, e->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            abort();
        check_attributes(fd, snapshot);
        if (S_ISDIR(st.st_mode))
            bytes += check(fd, snapshot, depth + 1);
        close(fd);
    }
    closedir(d);
    return bytes;
}

static void look_and_clear(const int at[ARRAY_LEN(places)], bool snapshot)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct stat st;
        uint64_t held = check(at[i], snapshot, 0);
        bytes += held;
        if (i == 2 && (fstat(at[i], &st) < 0 || st.st_nlink != 2 || held))
            abort();
        if (fchmod(at[i], 0700) < 0 || tree_empty(at[i], NULL) < 0)
            abort();
    }
    if (bytes > (snapshot ? BYTES : 2 * BYTES)) /* of an image, twice */
        abort();
}

static void as_image(int fd, int root, bool layer)
{
    struct unpack u = {.root = root, .bytes_left = BYTES, .entries_left = ENTRIES};
    struct err err = {0};
    int r = layer ? unpack_layer(&u, fd, &err) : unpack_stream(&u, fd, &err);
    if (u.done.bytes > BYTES || u.done.entries > ENTRIES || (r < 0) != (err.code != ERR_NONE))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char first[] = LAYER_FIRST;
    char about[LAYER_ABOUT_MAX + 1];
    struct err err = {0};
    bool snapshot = size >= sizeof first && memcmp(data, first, sizeof first) == 0;
    int fd = as_file(data, size), at[ARRAY_LEN(places)];
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if ((at[i] = place(i)) < 0)
            abort();
    if (!snapshot) {
        if (layer_read_about(fd, about, NULL) == 0 || lseek(fd, 0, SEEK_SET) < 0)
            abort();
        as_image(fd, at[0], false);
        as_image(fd, at[1], true);
        look_and_clear(at, false);
    } else {
        if (layer_read_about(fd, about, &err) == 0) {
            int r = layer_lay_out(fd, at, BYTES, &err);
            if ((r < 0) != (err.code != ERR_NONE))
                abort();
        }
        look_and_clear(at, true);
    }
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        close(at[i]);
    close(fd);
    return 0;
}
