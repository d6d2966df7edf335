/* A file of the log and its index: what a query finds in the lines is never excluded, whatever the
 * lines are; a damaged index excludes nothing wrong and is read within its bounds. First two bytes:
 * the question, and where the index is damaged (0: not). The files are in a memory file system's
 * folder. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char name[] = "audit-20260101T000000Z.jsonl";
static char folder[] = "/dev/shm/durward-fuzz-XXXXXX";
static int dir = -1;

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void leave(void)
{
    log_index_remove(dir, name);
    rmdir(folder);
}

static void count(void *arg, const struct query_row *row)
{
    (void)row;
    ++*(unsigned *)arg;
}

static const struct query_filter questions[] = {
    {.sandbox = "sb-one"},
    {.host = "api.example.com"},
    {.host = ".example.com"},
    {.id = "7-12"},
    {.rule = "allow api"},
    {.credential = "github"},
    {.method = "GET"},
    {.policy = "coder"},
    {.code = "no_rule"},
    {.role = "gate"},
    {.status = 403},
    {.kinds = 1U << RECORD_DENIED},
    {.since = 1},
    {.until = 1800000000000000000},
};

static void each_line(struct slice text, struct log_index *x, struct query *q)
{
    while (text.n > 0) {
        ssize_t lf = slice_find(text, '\n');
        size_t n = lf < 0 ? text.n : (size_t)lf;
        log_index_line(x, (struct slice){text.p, n});
        query_line(q, 0, (struct slice){text.p, n}, false);
        n += lf >= 0;
        text = (struct slice){text.p + n, text.n - n};
    }
}

static void damage(unsigned at)
{
    char path[100], c;
    snprintf(path, sizeof path, "%s.idx", name);
    int fd = openat(dir, path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    if (at & 1 && ftruncate(fd, at) < 0)
        abort();
    if (pread(fd, &c, 1, at) == 1) {
        c ^= 0x10;
        must(pwrite(fd, &c, 1, at) == 1);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned found = 0;
    struct err err = {0};
    if (size < 2)
        return 0;
    if (dir < 0) {
        must(mkdtemp(folder) != NULL);
        dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        atexit(leave);
    }
    const struct query_filter *f = &questions[data[0] % ARRAY_LEN(questions)];
    struct log_index *x = log_index_new();
    struct query *q = query_new(f, count, &found);
    must(x && q);
    each_line((struct slice){(const char *)data + 2, size - 2}, x, q);
    must(log_index_write(x, dir, name, &err) == 0);
    if (data[1])
        damage(data[1]);
    if (found > 0)
        must(log_index_may(dir, name, f));
    else
        (void)log_index_may(dir, name, f);
    query_free(q);
    log_index_free(x);
    return 0;
}
