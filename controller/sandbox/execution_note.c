/* What the API did inside a sandbox, on record: commands, files, connections. Of a command the
 * program alone: what stands behind it may be its user's secret. */
#include "execution_internal.h"

#include <stdio.h>
#include <string.h>

#include "controller_internal.h"

enum { PROGRAM_MAX = 200 };

static void begin_record(const struct execution *e, struct record *r, const char *event)
{
    record_init(r, RECORD_LIFECYCLE, 0);
    record_put_str(r, RF_EVENT, event);
    record_put_str(r, RF_TARGET, e->managed_sandbox->id);
}

static void write_record(const struct execution *e, struct record *r)
{
    if (redact_found(e)[0])
        record_put_str(r, RF_PATTERNS, redact_found(e));
    controller_put(e->managed_sandbox->controller, r);
}

void execution_note_started(const struct execution *e, const struct execution_command *c)
{
    struct record r;
    char text[EXECUTION_ID_MAX + PROGRAM_MAX + 64];
    if (c->command)
        snprintf(text, sizeof text, "%s: /bin/sh -c (%zu bytes)", e->id, strlen(c->command));
    else
        snprintf(text, sizeof text, "%s: %.*s (%zu word%s)", e->id, PROGRAM_MAX,
                 c->argv->n ? c->argv->v[0] : "", c->argv->n, c->argv->n == 1 ? "" : "s");
    begin_record(e, &r, "exec_started");
    record_put_str(&r, RF_DETAIL, text);
    write_record(e, &r);
}

static void note_command(const struct execution *e)
{
    struct record r;
    char text[EXECUTION_ID_MAX + 64];
    snprintf(text, sizeof text, "%s: %s %u", e->id, e->timed_out ? "timed out," : "exit status",
             (unsigned)e->status);
    begin_record(e, &r, "exec_ended");
    record_put_str(&r, RF_DETAIL, text);
    record_put_u64(&r, RF_MS, e->ms);
    write_record(e, &r);
}

static void note_file(const struct execution *e)
{
    static const char *const events[INSIDE_END] = {
        [INSIDE_READ] = "file_read",       [INSIDE_WRITE] = "file_written",
        [INSIDE_DELETE] = "file_deleted",  [INSIDE_DELETE_TREE] = "file_deleted",
        [INSIDE_MKDIR] = "directory_made", [INSIDE_WATCH] = "file_watched"};
    struct record r;
    if (events[e->op] == NULL)
        return; /* nothing went either way */
    begin_record(e, &r, events[e->op]);
    record_put_str(&r, RF_CODE, e->status ? "failed" : "ok");
    record_put_str(&r, RF_PATH, e->path);
    if (e->op == INSIDE_READ)
        record_put_u64(&r, RF_UP, buf_len(&e->kept[0]));
    else if (e->op == INSIDE_WRITE)
        record_put_u64(&r, RF_DOWN, e->n_written);
    record_put_u64(&r, RF_MS, e->ms);
    write_record(e, &r);
}

void execution_note_ended(const struct execution *e)
{
    if (e->kind == EXECUTION_COMMAND)
        note_command(e);
    else if (e->kind == EXECUTION_FILE)
        note_file(e);
}
