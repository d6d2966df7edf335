/* Files that a session has open at the server, and what is on record of each: where it is, which
 * way, how many bytes. */
#include "sftp_session.h"

#include "ssh_wire.h"

#include <stdlib.h>
#include <string.h>

void sftp_record_put(const struct sftp_session *s, const struct sftp_request *q, struct record *r)
{
    struct ssh_file_asked asked;
    char path[SSH_FILE_PATH_MAX + 1];
    (void)sftp_ask(q, &asked);
    back_request_put(&s->of->request, r);
    record_put_str(r, RF_USER, s->of->facts.user);
    record_put_str(r, RF_METHOD, ssh_file_verb_name(asked.verb));
    snprintf(path, sizeof path, "%.*s", SL(q->path));
    record_put_str(r, RF_PATH, path);
    snprintf(path, sizeof path, "%.*s", SL(q->to));
    record_put_str(r, RF_DETAIL, path);
}

static void put_end(const struct sftp_session *s, struct sftp_record *of, enum record_kind kind,
                    const char *code, const char *detail, struct record *r)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    record_init(r, kind, of->counter);
    record_put_str(r, RF_CODE, code);
    record_put_u64(r, RF_MS,
                   (uint64_t)((now.tv_sec - of->begun.tv_sec) * 1000 +
                              (now.tv_nsec - of->begun.tv_nsec) / 1000000));
    record_put_str(r, RF_ADDRESS, s->of->address);
    record_put_str(r, RF_DETAIL, detail);
}

void sftp_record_end(const struct sftp_session *s, struct sftp_record *of, enum record_kind kind,
                     const char *code, const char *detail)
{
    struct record r;
    if (of->counter == 0)
        return;
    put_end(s, of, kind, code, detail, &r);
    journal_note(s->of->of->back->journal, &r);
    of->counter = 0;
}

/* ---- files ---- */

int sftp_file_new(struct sftp_session *s, const struct sftp_request *q)
{
    uint32_t i = 0;
    while (i < SFTP_FILES_MAX && s->open[i])
        i++;
    struct sftp_file *f = i < SFTP_FILES_MAX ? calloc(1, sizeof *f) : NULL;
    if (f == NULL)
        return -1;
    f->record = s->record;
    s->record.counter = 0;
    f->directory = q->op == SFTP_OPENDIR;
    f->reads = !f->directory && (q->flags & SFTP_OPEN_READ);
    f->writes = !f->directory && (q->flags & (SFTP_OPEN_WRITE | SFTP_OPEN_APPEND));
    snprintf(f->path, sizeof f->path, "%.*s", SL(q->path));
    s->open[i] = f;
    return (int)i;
}

struct sftp_file *sftp_file_of(const struct sftp_session *s, struct slice handle, uint32_t *number)
{
    if (ssh_wire_u32(&handle, number) < 0 || handle.n > 0 || *number >= SFTP_FILES_MAX ||
        s->open[*number] == NULL || !s->open[*number]->usable)
        return NULL;
    return s->open[*number];
}

void sftp_file_close(struct sftp_session *s, uint32_t number, const char *code, const char *detail)
{
    struct sftp_file *f = s->open[number];
    struct record r;
    s->open[number] = NULL;
    if (f->record.counter) {
        put_end(s, &f->record, strcmp(code, "ok") == 0 ? RECORD_COMPLETED : RECORD_ABORTED, code,
                detail, &r);
        record_put_u64(&r, RF_UP, f->n_written);
        record_put_u64(&r, RF_DOWN, f->n_read);
        journal_note(s->of->of->back->journal, &r);
    }
    free(f);
}
