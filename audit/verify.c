#include "verify.h"

#include "head.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
    struct verify_result *ret;
    const struct head *head;
    struct chain at; /* the last good line */
    bool head_seen;
};

/* Always -1. The first break is the one that is told. */
static int broken(struct verify_result *r, const char *file, uint64_t line, const char *fmt, ...)
    PRINTF(4, 5);
static int broken(struct verify_result *r, const char *file, uint64_t line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, ap);
    va_end(ap);
    snprintf(r->file, sizeof r->file, "%s", file);
    r->line = line;
    r->ok = false;
    return -1;
}

static int check_line(struct walk *w, struct slice line, const char *file, uint64_t number)
{
    uint64_t seq;
    unsigned char prev[CHAIN_HASH];
    struct slice rest;
    if (chain_parse(line, &seq, prev, &rest) < 0)
        return broken(w->ret, file, number, "this is not a line of an audit log");
    if (seq != w->at.seq + 1)
        return broken(w->ret, file, number,
                      "record %llu follows record %llu: lines were removed, added or moved",
                      (unsigned long long)seq, (unsigned long long)w->at.seq);
    if (memcmp(prev, w->at.hash, CHAIN_HASH) != 0)
        return broken(w->ret, file, number,
                      "record %llu does not continue record %llu: one of the two was changed",
                      (unsigned long long)seq, (unsigned long long)w->at.seq);
    if (chain_step(&w->at, line) < 0)
        return broken(w->ret, file, number, "SHA-256 failed");
    if (seq == w->head->tip.seq) {
        if (memcmp(w->at.hash, w->head->tip.hash, CHAIN_HASH) != 0)
            return broken(w->ret, file, number, "record %llu is not the one that was signed",
                          (unsigned long long)seq);
        if (strcmp(file, w->head->file) != 0)
            return broken(w->ret, file, number, "record %llu is signed as one of %s",
                          (unsigned long long)seq, w->head->file);
        w->head_seen = true;
    }
    w->ret->records++;
    if (seq > w->head->tip.seq)
        w->ret->unsigned_records++;
    return 0;
}

static int check_end(struct walk *w, enum line_state st, const char *file, uint64_t number,
                     bool last)
{
    if (st == LINE_ERROR)
        return broken(w->ret, file, number, "cannot be read: %s", strerror(errno));
    if (st == LINE_LONG)
        return broken(w->ret, file, number, "this line is too long to be one of an audit log");
    if (!last || !w->head_seen)
        return broken(w->ret, file, number, "this line is cut off");
    w->ret->torn = true;
    return 0;
}

static int check_file(struct walk *w, int dirfd, const char *file, bool last)
{
    int fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct line_reader *lr = fd < 0 ? NULL : line_reader_new(fd);
    int r = lr ? 0 : broken(w->ret, file, 0, "cannot be opened: %s", strerror(errno));
    struct slice line;
    enum line_state st;
    for (uint64_t n = 1; r == 0 && (st = line_reader_next(lr, &line)) != LINE_END; n++)
        r = st == LINE_WHOLE ? check_line(w, line, file, n) : check_end(w, st, file, n, last);
    line_reader_free(lr);
    if (fd >= 0)
        close(fd);
    return r;
}

static void check_files(struct walk *w, int dirfd)
{
    struct log_dir d;
    struct err err = {0};
    if (log_dir_list(dirfd, &d, &err) < 0) {
        broken(w->ret, "", 0, "%s", err.text);
        return;
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < d.n; i++)
        r = check_file(w, dirfd, d.name[i], i + 1 == d.n);
    if (r == 0 && !w->head_seen)
        broken(w->ret, d.n ? d.name[d.n - 1] : "", 0,
               "the log is shorter than its signed head: it ends with record %llu, the head says "
               "%llu (%s)",
               (unsigned long long)w->at.seq, (unsigned long long)w->head->tip.seq, w->head->file);
    log_dir_done(&d);
}

void verify_dir(int dirfd, const struct signing_key *key, struct verify_result *ret)
{
    struct head head;
    struct err err = {0};
    memset(ret, 0, sizeof *ret);
    ret->ok = true;
    /* the head first: a live daemon only ever adds lines after it */
    int had = head_read(dirfd, &head, key, &err);
    if (had < 0) {
        broken(ret, "head", 0, "%s", err.text);
        return;
    }
    if (had == 0) {
        broken(ret, "head", 0, "there is no signed head, so nothing says where the log ends");
        return;
    }
    ret->signed_seq = head.tip.seq;
    struct walk w = {.ret = ret, .head = &head};
    chain_genesis(&w.at);
    check_files(&w, dirfd);
}

bool verify_has_log(int dirfd)
{
    struct stat st;
    struct log_dir d;
    if (fstatat(dirfd, "head", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
        fstatat(dirfd, "journal/next", &st, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    if (log_dir_list(dirfd, &d, NULL) < 0)
        return false;
    bool any = d.n > 0;
    log_dir_done(&d);
    return any;
}
