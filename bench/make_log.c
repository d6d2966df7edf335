/* make_log DIR RECORDS [BEGIN]: an audit log as the logger writes it (chained, signed checkpoints,
 * rotated at 64 MiB, compressed, indexed), a record a millisecond from BEGIN (seconds since 1970)
 * on: values that are common, rare, or in the middle, for each thing that a query asks for. Prints
 * the records made. */
#include "checkpoint.h"
#include "log_blocks.h"
#include "log_file.h"
#include "log_index.h"
#include "log_compress.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LIVE = 40,            /* sandboxes at a time */
    TURN = 100000,        /* records until others live */
    SIGNED_EVERY = 60000, /* records of a checkpoint: a minute of 1,000 a second */
    RARE_EVERY = 500021,  /* 20 of 10 million */
    MIDDLE_EVERY = 5003,
};

static uint64_t state = 88172645463325252u;

static uint64_t chance(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

struct made {
    int dir;
    struct log_file *log;
    struct signing_key *key;
    struct log_index *index;
    struct open_request_terms *begun;
    uint64_t now, n;
};

static void stop(const char *what)
{
    fprintf(stderr, "make_log: %s\n", what);
    exit(1);
}

static void on_lines(void *arg, struct slice lines)
{
    struct made *m = arg;
    ssize_t nl;
    for (; (nl = slice_find(lines, '\n')) >= 0; lines.p += nl + 1, lines.n -= (size_t)nl + 1)
        log_index_line(m->index, (struct slice){lines.p, (size_t)nl});
}

static void close_file(struct made *m)
{
    struct err err = {0};
    char name[LOG_NAME_MAX];
    checkpoint_put(m->log, m->key, m->now);
    if (log_file_flush(m->log, &err) < 0 || log_file_rotate(m->log, name, &err) < 0)
        stop(err.text);
    if (name[0] == 0)
        return;
    if (log_index_write(m->index, m->dir, name, &err) < 0)
        stop(err.text);
    log_index_free(m->index);
    m->index = log_index_new();
    struct log_compress *s = log_compress_new(m->dir, name, m->begun, &err);
    int r = s ? 1 : -1;
    while (r > 0)
        r = log_compress_step(s, &err);
    log_compress_free(s);
    if (r < 0)
        stop(err.text);
}

static void put(struct made *m, struct record_view *v, const struct render_source *from)
{
    struct err err = {0};
    m->now += 500000 + chance(1000000);
    v->wall_ns = m->now - chance(900000);
    if (log_file_put(m->log, v, from, m->n * 200, m->now) < 0)
        stop("out of room");
    m->n++;
    if (m->n % SIGNED_EVERY == 0)
        checkpoint_put(m->log, m->key, m->now);
    if ((m->n % 1000 == 0 || m->n % SIGNED_EVERY == 0) && log_file_flush(m->log, &err) < 0)
        stop(err.text);
    if (m->n % 1000 == 0 && log_file_due(m->log, 64 << 20, 0, m->now))
        close_file(m);
}

static PRINTF(3, 4) struct slice text(char *to, size_t size, const char *format, ...);
static struct slice text(char *to, size_t size, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(to, size, format, ap);
    va_end(ap);
    return (struct slice){to, (size_t)n};
}

static const char *host_of(uint64_t i, char *to, size_t size)
{
    static const char *const common[] = {"api.github.com", "api.openai.com", "deps.example.com",
                                         "registry.example.org", "pypi.example.net"};
    if (i % RARE_EVERY < 2)
        return "paste.rare-place.net";
    if (i % MIDDLE_EVERY < 2)
        return "middle.example.com";
    if (chance(10) < 8)
        return common[chance(5)];
    snprintf(to, size, "h%u.example.com", (unsigned)chance(500));
    return to;
}

/* A request: admitted and completed, or denied. */
static void request(struct made *m, struct render_source *from, uint64_t i)
{
    char host[64], rule[96], path[128], down[24], status[8], ms[8];
    uint64_t id = m->n + 1;
    struct record_view v = {.kind = RECORD_ADMITTED, .counter = id};
    const char *at = host_of(i, host, sizeof host);
    bool rare = i % RARE_EVERY < 2;
    v.field[RF_SCHEME] = SLICE("https");
    v.field[RF_AUTHORITY] = slice_str(at);
    v.field[RF_METHOD] = slice_str(rare ? "DELETE" : chance(10) ? "GET" : "POST");
    v.field[RF_PATH] = rare ? SLICE("/drop/Xk9Qz-exfil")
                            : text(path, sizeof path, "/repos/acme/site%u/contents/%u",
                                   (unsigned)chance(50), (unsigned)chance(100000000));
    v.field[RF_RULE] = text(rule, sizeof rule, "allow %s/repos/**", at);
    if (chance(3) == 0 || rare)
        v.field[RF_CREDENTIAL] = slice_str(rare ? "deploy-key" : "github");
    v.field[RF_ENTRY] = SLICE("transparent");
    if (chance(10) == 0 || rare) {
        v.kind = RECORD_DENIED;
        v.field[RF_CODE] = slice_str(rare ? "foreign_credential" : "no_rule");
        v.field[RF_STATUS] = SLICE("403");
        put(m, &v, from);
        return;
    }
    put(m, &v, from);
    struct record_view end = {.kind = RECORD_COMPLETED, .counter = id};
    bool odd = i % RARE_EVERY < 1000 && i % 500 == 7;
    end.field[RF_STATUS] = text(status, sizeof status, "%d", odd ? 418 : chance(50) ? 200 : 404);
    end.field[RF_UP] = SLICE("0");
    end.field[RF_DOWN] = text(down, sizeof down, "%u", (unsigned)chance(200000));
    end.field[RF_MS] = text(ms, sizeof ms, "%u", (unsigned)chance(900));
    put(m, &end, from);
}

int main(int argc, char **argv)
{
    struct err err = {0};
    bool broken = false;
    uint64_t want = argc == 3 || argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t begin = argc == 4 ? strtoull(argv[3], NULL, 10) : UINT64_C(1767225600);
    if (want == 0 || begin == 0 || begin > UINT32_MAX)
        stop("make_log DIR RECORDS [BEGIN]");
    mkdir(argv[1], 0700);
    struct made m = {.dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                     .now = begin * 1000000000U};
    if (m.dir < 0 || (m.key = signing_key_open(m.dir, &err)) == NULL ||
        (m.log = log_file_open(m.dir, NULL, 0, NULL, NULL, &broken, &err)) == NULL ||
        (m.index = log_index_new()) == NULL || (m.begun = open_request_terms_new()) == NULL)
        stop(err.text[0] ? err.text : "out of memory");
    log_file_on_lines(m.log, on_lines, &m);
    for (uint64_t i = 0; m.n < want; i++) {
        char sandbox[40];
        uint64_t box = i % RARE_EVERY < 2 ? 4242424242u : m.n / TURN * LIVE + chance(LIVE);
        snprintf(sandbox, sizeof sandbox, "sb-%026" PRIu64, box);
        struct render_source from = {.channel = (uint32_t)(box % 100000) + 1,
                                     .role = "gate",
                                     .sandbox = sandbox,
                                     .policy = "coder"};
        request(&m, &from, i);
    }
    struct head head;
    close_file(&m);
    if (!log_file_tip(m.log, &head))
        stop("no tip");
    timestamp_text(m.now, head.time, sizeof head.time);
    if (head_write(m.dir, &head, m.key, &err) < 0)
        stop(err.text);
    printf("%" PRIu64 "\n", m.n);
    return 0;
}
