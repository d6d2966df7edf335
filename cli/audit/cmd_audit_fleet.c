/* durward audit verify --fleet: what the hosts of a fleet signed about their logs, held against one
 * another and against the logs that are at hand. What cannot be looked at is no success. */
#include "audit_where.h"
#include "fleet_file.h"
#include "merkle.h"
#include "out.h"
#include "settings.h"
#include "timestamp.h"
#include "witness_log.h"
#include "witness_problem.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = WITNESS_PROBLEM_TEXT };

struct check {
    const struct audit_fleet_asked *asked;
    const struct config_fleet_logs *fleet;
    const char *dir; /* of this host; NULL: files and logs from elsewhere */
    struct witness *w;
    uint64_t now;
    bool failed;     /* something is wrong, or could not be looked at */
    json_t *strange; /* of files: what is no line of a host's */
    json_t *problems[FLEET_LINE_HOSTS];
    json_t *logs[FLEET_LINE_HOSTS];
    bool broken[FLEET_LINE_HOSTS];
};

/* ---- problems ---- */

static void problem(struct check *c, size_t host, const char *what, const char *fmt, ...)
    PRINTF(4, 5);
static void problem(struct check *c, size_t host, const char *what, const char *fmt, ...)
{
    char text[TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->failed = true;
    c->broken[host] |= strcmp(what, "unknown") != 0;
    json_array_append_new(c->problems[host], json_pack("{s:s,s:s}", "what", what, "text", text));
}

static void on_problem(void *arg, size_t host, const char *what, const char *text)
{
    problem(arg, host, what, "%s", text);
}

static void check_heads(struct check *c, size_t host)
{
    witness_problems(c->w, host, on_problem, c);
    witness_silence(c->w, host, c->now, c->fleet->silent * UINT64_C(1000000000), on_problem, c);
}

/* ---- logs ---- */

static void log_result(struct check *c, size_t host, const char *dir, const struct verify_result *v,
                       const struct witness_log *l)
{
    if (!v->ok)
        problem(c, host, "log_broken", "its log is broken at %s/%s:%llu: %s", dir, v->file,
                (unsigned long long)v->line, v->why);
    if (l->forked)
        problem(c, host, "log_forked",
                "record %llu of its log is not the one of head %llu: the log was put back and went "
                "on, or was made anew",
                (unsigned long long)l->forked_seq, (unsigned long long)l->forked);
    if (l->cut)
        problem(c, host, "log_cut",
                "its log ends with record %llu, and head %llu says %llu: it was cut or put back",
                (unsigned long long)l->end, (unsigned long long)l->cut,
                (unsigned long long)l->cut_seq);
    if (l->held == 0 && !l->forked && !l->cut && v->ok)
        problem(c, host, "unknown", "no head of it is of a record that its log still has");
    c->logs[host] = audit_verified(dir, v);
    json_object_set_new(c->logs[host], "heads", json_integer((json_int_t)l->held));
    json_object_set_new(c->logs[host], "heads_removed", json_integer((json_int_t)l->removed));
}

static void check_log(struct check *c, size_t host, const char *dir)
{
    struct verify_result v;
    struct witness_log l;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        problem(c, host, "unknown", "its log cannot be opened: %s", dir);
        return;
    }
    if (witness_log_verify(fd, c->w, host, &v, &l) < 0)
        problem(c, host, "unknown", "out of memory");
    else
        log_result(c, host, dir, &v, &l);
    close(fd);
}

/* "HOST=DIR,…": whose log lies where; this host's is its own. -1 with err: one is no host, or two
 * are one. */
static int check_logs(struct check *c, struct err *err)
{
    char *list = c->asked->logs ? strdup(c->asked->logs) : NULL, *at = list, *word;
    bool seen[FLEET_LINE_HOSTS] = {false};
    int r = 0;
    if (c->dir) {
        size_t self = witness_find(c->w, c->fleet->host);
        check_log(c, self, c->dir);
        seen[self] = true;
    }
    while (r == 0 && (word = at ? strsep(&at, ",") : NULL) != NULL) {
        char *dir = strchr(word, '=');
        if (dir)
            *dir++ = 0;
        size_t host = dir ? witness_find(c->w, word) : SIZE_MAX;
        if (host == SIZE_MAX || seen[host]) {
            r = err_set(err, ERR_PARSE, "--logs takes HOST=DIR,... with each host once: %s", word);
            break;
        }
        seen[host] = true;
        check_log(c, host, dir);
    }
    free(list);
    for (size_t i = 0; r == 0 && c->dir == NULL && i < witness_hosts(c->w); i++)
        if (!seen[i])
            problem(c, i, "unknown", "its log was not given");
    return r;
}

/* ---- files of heads ---- */

struct reading {
    struct check *c;
    const char *file;
    uint64_t bad;
};

static void on_read(void *arg, uint64_t number, struct slice line UNUSED, enum witness_taken taken,
                    const struct fleet_head *head)
{
    struct reading *r = arg;
    size_t host = taken == WITNESS_UNSIGNED ? witness_find(r->c->w, head->host) : SIZE_MAX;
    if (host != SIZE_MAX)
        problem(r->c, host, "unsigned",
                "%s:%llu says it is its head %llu, and its key did not "
                "sign that",
                r->file, (unsigned long long)number, (unsigned long long)head->number);
    if (taken != WITNESS_MALFORMED && taken != WITNESS_FULL)
        return;
    r->c->failed = true;
    if (r->bad++ == 0)
        json_array_append_new(r->c->strange,
                              json_sprintf("%s:%llu: this is not a head of a fleet's host", r->file,
                                           (unsigned long long)number));
}

static int read_file(struct check *c, int at, const char *dir, const char *file, struct err *err)
{
    char name[TEXT];
    snprintf(name, sizeof name, "%s%s%s", dir, dir[0] ? "/" : "", file);
    struct reading r = {c, name, 0};
    int fd = openat(at, file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "cannot open %s", name);
    int ret = fleet_file_read(fd, c->w, true, on_read, &r, err);
    close(fd);
    return ret;
}

static int read_heads(struct check *c, struct err *err)
{
    char *list = c->asked->heads ? strdup(c->asked->heads) : NULL, *at = list, *file;
    int r = 0;
    if (list == NULL) {
        int fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? err_sys(err, "cannot open the audit directory %s", c->dir)
                   : read_file(c, fd, c->dir, FLEET_FILE, err);
        if (fd >= 0)
            close(fd);
    }
    while (r == 0 && (file = at ? strsep(&at, ",") : NULL) != NULL)
        r = read_file(c, AT_FDCWD, "", file, err);
    free(list);
    return r;
}

/* ---- the report ---- */

/* One Merkle root over the latest head of each host. */
static json_t *latest_root(const struct check *c)
{
    struct merkle m;
    unsigned char root[CHAIN_HASH];
    char hex[CHAIN_HEX];
    merkle_clear(&m);
    for (size_t i = 0; i < witness_hosts(c->w); i++) {
        const struct fleet_head *h = witness_latest(c->w, i);
        if (h && merkle_add(&m, h->hash) < 0)
            return json_null();
    }
    return merkle_root(&m, root) < 0 ? json_null() : json_string(chain_hex(root, hex));
}

static json_t *host_json(const struct check *c, size_t host)
{
    size_t n;
    const struct fleet_head *h = witness_latest(c->w, host);
    (void)witness_known(c->w, host, &n);
    const char *state = c->broken[host]                      ? "broken"
                        : json_array_size(c->problems[host]) ? "unchecked"
                                                             : "good";
    json_t *o = json_pack("{s:s,s:s,s:I,s:O}", "host", witness_name(c->w, host), "state", state,
                          "heads", (json_int_t)n, "problems", c->problems[host]);
    if (h) {
        json_object_set_new(o, "head", json_integer((json_int_t)h->number));
        json_object_set_new(o, "time", json_string(h->time));
        json_object_set_new(o, "seq", json_integer((json_int_t)h->log.seq));
    }
    json_object_set(o, "log", c->logs[host] ? c->logs[host] : json_null());
    return o;
}

static void host_text(const json_t *o)
{
    const char *state = json_string_value(json_object_get(o, "state"));
    const json_t *log = json_object_get(o, "log"), *one;
    size_t i;
    printf("%s: ", json_string_value(json_object_get(o, "host")));
    out_coloured(stdout, strcmp(state, "good") == 0 ? COLOUR_GREEN : COLOUR_RED, state);
    if (json_object_get(o, "head"))
        printf(", head %lld of %s, log up to %lld",
               (long long)json_integer_value(json_object_get(o, "head")),
               json_string_value(json_object_get(o, "time")),
               (long long)json_integer_value(json_object_get(o, "seq")));
    if (json_is_object(log)) /* what it took out itself is its own word */
        printf("; its log holds %lld of its heads, and says that it removed the records of %lld",
               (long long)json_integer_value(json_object_get(log, "heads")),
               (long long)json_integer_value(json_object_get(log, "heads_removed")));
    else
        printf("; its log is not at hand");
    printf("\n");
    json_array_foreach(json_object_get(o, "problems"), i, one)
        printf("  %s\n", json_string_value(json_object_get(one, "text")));
}

static int report(const struct check *c, bool json)
{
    size_t i;
    json_t *hosts = json_array(), *root = latest_root(c), *one;
    for (i = 0; i < witness_hosts(c->w); i++)
        json_array_append_new(hosts, host_json(c, i));
    if (!json) {
        json_array_foreach(hosts, i, one) host_text(one);
        json_array_foreach(c->strange, i, one) printf("%s\n", json_string_value(one));
        printf("fleet: ");
        out_coloured(stdout, c->failed ? COLOUR_RED : COLOUR_GREEN, c->failed ? "broken" : "good");
        printf(", %zu hosts, root %s\n", witness_hosts(c->w),
               json_is_string(root) ? json_string_value(root) : "unknown");
    }
    json_t *all = json_pack("{s:b,s:o,s:o,s:O}", "ok", !c->failed, "hosts", hosts, "root", root,
                            "strange", c->strange);
    if (json && out_json(json_incref(all)) < 0)
        c = NULL;
    json_decref(all);
    return c == NULL || out_flush() < 0 || c->failed ? EXIT_NO : EXIT_OK;
}

/* ---- the command ---- */

/* Files from elsewhere are as old as they are: then the latest of their heads says when that was.
 * Here our own clock says it, whatever clock another host has. */
static uint64_t time_of(const struct check *c)
{
    uint64_t latest = c->asked->heads ? 0 : timestamp_now();
    for (size_t i = 0; c->asked->heads && i < witness_hosts(c->w); i++) {
        uint64_t heard = witness_heard(c->w, i);
        latest = heard > latest ? heard : latest;
    }
    return latest;
}

static int check_all(struct check *c, struct err *err)
{
    for (size_t i = 0; i < c->fleet->n; i++)
        if (witness_add(c->w, c->fleet->all[i].name, c->fleet->all[i].key, err) < 0)
            return -1;
    for (size_t i = 0; i < c->fleet->n; i++)
        c->problems[i] = json_array();
    c->strange = json_array();
    if (read_heads(c, err) < 0)
        return -1;
    c->now = time_of(c);
    for (size_t i = 0; i < witness_hosts(c->w); i++)
        check_heads(c, i);
    return check_logs(c, err);
}

int audit_verify_fleet(const struct audit_fleet_asked *asked, const char *dir, bool json)
{
    struct err err = {0};
    struct check c = {.asked = asked, .dir = asked->heads ? NULL : dir};
    struct config *config = settings_load(asked->config, &err);
    c.fleet = config && config_fleet(config) ? &config_fleet(config)->logs : NULL;
    int r = config ? 0 : -1;
    if (r == 0 && (c.fleet == NULL || c.fleet->host == NULL))
        r = err_set(&err, ERR_UNREADY, "the configuration has no 'fleet.logs'");
    if (r == 0 && (c.w = witness_new()) == NULL)
        r = err_set(&err, ERR_INTERNAL, "out of memory");
    if (r == 0)
        r = check_all(&c, &err);
    int code = r < 0 ? out_fail(&err) : report(&c, json);
    for (size_t i = 0; i < FLEET_LINE_HOSTS; i++) {
        json_decref(c.problems[i]);
        json_decref(c.logs[i]);
    }
    json_decref(c.strange);
    witness_free(c.w);
    config_unref(config);
    return code;
}
