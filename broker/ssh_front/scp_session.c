/* What giving and taking have in common: replies, the client's answers, complaints. */
#include "scp_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scp_session *scp_session_new(const struct scp_command *c)
{
    struct scp_session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->command = *c;
    return s;
}

struct scp_folder *scp_top(struct scp_session *s)
{
    return &s->folders[s->depth - 1];
}

void scp_pop(struct scp_session *s)
{
    s->depth--;
    buf_free(&s->folders[s->depth].names);
}

void scp_session_free(struct scp_session *s)
{
    if (s == NULL)
        return;
    while (s->depth > 0)
        scp_pop(s);
    free(s);
}

uint32_t scp_session_status(const struct scp_session *s)
{
    return s->step != SCP_OVER || s->errors;
}

bool scp_end(struct scp_session *s, bool failed)
{
    s->errors = s->errors || failed;
    s->step = SCP_OVER;
    return true;
}

/* ---- the server ---- */

bool scp_ask(struct scp_session *s, const struct scp_io *io, struct sftp_request *q,
             enum scp_step next)
{
    q->id = s->id;
    if (sftp_request_write(q, io->requests) < 0)
        return scp_end(s, true);
    s->id++;
    s->under_way++;
    s->step = next;
    return true;
}

bool scp_reply(struct scp_session *s, const struct scp_io *io, scp_reply_turn *turn)
{
    struct sftp_reply r;
    struct slice body;
    size_t n;
    int got = sftp_packet_next(buf_slice(io->replies), SFTP_REPLY_MAX, &body, &n);
    if (got == 0)
        return false;
    if (got < 0 || s->under_way == 0 || sftp_reply_read(body, &r) < 0 ||
        r.id - s->first >= s->under_way)
        return scp_end(s, true);
    s->first++;
    s->under_way--;
    bool moved = turn(s, io, &r);
    buf_drain(io->replies, n);
    return moved;
}

void scp_why(struct scp_session *s, const struct sftp_reply *r)
{
    static const char *const words[] = {"", "end of file", "No such file or directory",
                                        "Permission denied", "Failure"};
    bool said = r->type == SFTP_STATUS && r->text.n > 0;
    uint32_t status = r->type == SFTP_STATUS && r->status < ARRAY_LEN(words) ? r->status : 4;
    size_t n = 0;
    if (!said)
        snprintf(s->why, sizeof s->why, "%s", words[status]);
    for (; said && n < r->text.n && n + 1 < sizeof s->why; n++) {
        unsigned char c = (unsigned char)r->text.p[n];
        s->why[n] = c >= ' ' && c != 0x7f ? (char)c : '?';
    }
    if (said)
        s->why[n] = 0;
}

bool scp_take_handle(struct scp_session *s, const struct sftp_reply *r)
{
    if (r->type != SFTP_HANDLE || r->text.n > sizeof s->handle)
        return false;
    memcpy(s->handle, r->text.p, r->text.n);
    s->n_handle = r->text.n;
    return true;
}

bool scp_is_folder(const struct sftp_attrs *a)
{
    return (a->flags & SFTP_HAS_MODE) && (a->mode & SCP_KIND) == SCP_KIND_FOLDER;
}

struct slice scp_handle(const struct scp_session *s)
{
    return (struct slice){s->handle, s->n_handle};
}

struct slice scp_path(const struct scp_session *s)
{
    return (struct slice){s->path, s->n_path};
}

bool scp_name(struct scp_session *s, size_t n, struct slice name)
{
    bool slash = n > 0 && s->path[n - 1] != '/';
    if (name.n == 0 || slice_eq_str(name, ".") || slice_eq_str(name, "..") ||
        memchr(name.p, '/', name.n) || memchr(name.p, 0, name.n) ||
        n + slash + name.n >= sizeof s->path)
        return false;
    if (slash)
        s->path[n++] = '/';
    memcpy(s->path + n, name.p, name.n);
    s->n_path = n + name.n;
    s->path[s->n_path] = 0;
    return true;
}

/* ---- the client ---- */

bool scp_say(struct scp_session *s, const struct scp_io *io, struct slice what, enum scp_step next)
{
    if (buf_append_slice(io->out, what) < 0)
        return scp_end(s, true);
    s->step = next;
    return true;
}

bool scp_complain(struct scp_session *s, const struct scp_io *io, enum scp_step next)
{
    char line[SCP_LINE_MAX];
    int n = snprintf(line, sizeof line, "\1scp: %.1000s: %s\n", s->path, s->why);
    for (int i = 1; i + 1 < n; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = '?';
    s->errors = true;
    return scp_say(s, io, (struct slice){line, (size_t)n}, next);
}

int scp_answered(struct scp_session *s, const struct scp_io *io)
{
    struct slice came = buf_slice(io->client);
    if (came.n > 0 && came.p[0] == 0) {
        buf_drain(io->client, 1);
        return 1;
    }
    ssize_t end = slice_find(came, '\n');
    if (came.n > 0 && came.p[0] == 1 && end >= 0) {
        buf_drain(io->client, (size_t)end + 1);
        s->errors = true;
        return 2;
    }
    if (io->eof || (came.n > 0 && (came.p[0] != 1 || came.n > SCP_LINE_MAX))) {
        scp_end(s, true);
        return -1;
    }
    return 0;
}

/* ---- turns ---- */

static bool hello(struct scp_session *s, const struct scp_io *io)
{
    struct slice body;
    uint32_t extensions;
    size_t n;
    if (s->id == 0) {
        s->id = s->first = 1;
        return sftp_init_write(io->requests) == 0 || scp_end(s, true);
    }
    int r = sftp_packet_next(buf_slice(io->replies), SFTP_REPLY_MAX, &body, &n);
    if (r == 0)
        return false;
    if (r < 0 || sftp_hello_read(body, SFTP_VERSION_IS, &extensions) < 0)
        return scp_end(s, true);
    buf_drain(io->replies, n);
    snprintf(s->path, sizeof s->path, "%s", s->command.path);
    s->n_path = strlen(s->path);
    return s->command.gives ? scp_give_first(s, io) : scp_take_first(s, io);
}

static bool act(struct scp_session *s, const struct scp_io *io)
{
    const struct scp_act *a = s->command.gives ? &scp_give_acts[s->step] : &scp_take_acts[s->step];
    return a->turn ? a->turn(s, io) : scp_reply(s, io, a->reply);
}

bool scp_session_run(struct scp_session *s, const struct scp_io *io)
{
    bool goes_on = true;
    while (goes_on && s->step != SCP_OVER)
        goes_on = s->step == SCP_HELLO ? hello(s, io) : act(s, io);
    return s->step == SCP_OVER;
}
