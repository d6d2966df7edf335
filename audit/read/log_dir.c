/* Lists the files of a log by the exact form of their names. Where a plain file lies beside its
 * compressed copy, the plain one counts, because the copying was cut short. */
#include "log_dir.h"

#include "render.h"
#include "timestamp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 1 << 20 };

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* audit-YYYYmmddTHHMMSSZ.jsonl, .zst behind it or not, and nothing else */
static bool is_log(const char *name)
{
    static const char shape[] = "audit-00000000T000000Z.jsonl";
    size_t n = sizeof shape - 1;
    if (strlen(name) != n && !(strlen(name) == n + 4 && strcmp(name + n, ".zst") == 0))
        return false;
    for (size_t i = 0; i < n; i++)
        if (shape[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != shape[i])
            return false;
    return true;
}

static bool is_run(const char *name)
{
    return slice_starts(slice_str(name), SLICE("run-")) && strlen(name) < LOG_NAME_MAX;
}

static int add(struct log_dir *d, size_t *cap, const char *name)
{
    if (d->n == *cap) {
        size_t more = *cap ? *cap * 2 : 16;
        void *p = more > FILES_MAX ? NULL : realloc(d->name, more * sizeof *d->name);
        if (p == NULL)
            return -1;
        d->name = p;
        *cap = more;
    }
    memcpy(d->name[d->n++], name, strlen(name) + 1);
    return 0;
}

static int list(int dirfd, bool (*wanted)(const char *), bool dirs, struct log_dir *ret,
                struct err *err)
{
    size_t cap = 0;
    *ret = (struct log_dir){0};
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        err_sys(err, "cannot read the audit directory");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
        struct stat st;
        if (!wanted(e->d_name) || fstatat(dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (dirs ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode))
            r = add(ret, &cap, e->d_name);
    }
    closedir(d);
    if (r < 0) {
        log_dir_done(ret);
        return err_set(err, ERR_LIMIT, "too many files in the audit directory");
    }
    if (ret->n)
        qsort(ret->name, ret->n, sizeof *ret->name, by_name);
    return 0;
}

int log_dir_order(const char *a, const char *b)
{
    static const char shape[] = "audit-00000000T000000Z.jsonl";
    return strncmp(a, b, sizeof shape - 1);
}

bool log_dir_packed(const char *name)
{
    return slice_ends(slice_str(name), SLICE(".zst"));
}

/* A compressed copy beside its plain file was not finished with: the plain one counts. */
static void drop_copies(struct log_dir *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->n; i++) {
        size_t n = kept ? strlen(d->name[kept - 1]) : 0;
        bool copy =
            kept && log_dir_packed(d->name[i]) && strncmp(d->name[i], d->name[kept - 1], n) == 0;
        if (!copy && kept++ != i)
            memcpy(d->name[kept - 1], d->name[i], LOG_NAME_MAX);
    }
    d->n = kept;
}

int log_dir_list(int dirfd, struct log_dir *ret, struct err *err)
{
    if (list(dirfd, is_log, false, ret, err) < 0)
        return -1;
    drop_copies(ret);
    return 0;
}

int log_dir_runs(int dirfd, struct log_dir *ret, struct err *err)
{
    return list(dirfd, is_run, true, ret, err);
}

void log_dir_done(struct log_dir *d)
{
    free(d->name);
    *d = (struct log_dir){0};
}

void log_dir_next_name(uint64_t now_ns, const char *last, char name[LOG_NAME_MAX])
{
    char timestamp[TIMESTAMP_MAX];
    uint64_t at = now_ns;
    /* the clock may stand behind the last name: then the second after that name */
    if (is_log(last)) {
        char text[TIMESTAMP_MAX];
        uint64_t then;
        snprintf(text, sizeof text, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", last + 6, last + 10,
                 last + 12, last + 15, last + 17, last + 19);
        if (timestamp_parse(text, 0, &then, NULL) == 0 && then / 1000000000U >= at / 1000000000U)
            at = then + 1000000000U;
    }
    snprintf(name, LOG_NAME_MAX, "audit-%s.jsonl",
             timestamp_compact(at, timestamp, sizeof timestamp));
}
