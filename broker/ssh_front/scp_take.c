/* scp -t: files and folders that the client puts. */
#include "scp_internal.h"

#include <stdio.h>
#include <string.h>

static const struct slice well = SLICE_INIT("\0");

/* ---- where to ---- */

bool scp_take_first(struct scp_session *s, const struct scp_io *io)
{
    struct sftp_request q = {.op = SFTP_STAT, .path = scp_path(s)};
    return scp_ask(s, io, &q, SCP_TARGET);
}

/* What is there instead, if something is. */
static void why_no_folder(struct scp_session *s, const struct sftp_reply *r)
{
    scp_why(s, r);
    if (r->type == SFTP_ATTRS)
        snprintf(s->why, sizeof s->why, "Not a directory");
}

static bool on_target(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    s->in_folder = r->type == SFTP_ATTRS && scp_is_folder(&r->attrs);
    why_no_folder(s, r);
    return s->command.into && !s->in_folder ? scp_complain(s, io, SCP_OVER)
                                            : scp_say(s, io, well, SCP_LINE);
}

/* ---- lines ---- */

static int read_number(struct slice *s, unsigned base, uint64_t most, uint64_t *ret)
{
    size_t i = 0;
    *ret = 0;
    while (i < s->n && s->p[i] >= '0' && s->p[i] < (char)('0' + base)) {
        *ret = *ret * base + (uint64_t)(s->p[i++] - '0');
        if (*ret > most)
            return -1;
    }
    if (i == 0)
        return -1;
    *s = (struct slice){s->p + i, s->n - i};
    return 0;
}

static int read_blank(struct slice *s)
{
    if (s->n == 0 || s->p[0] != ' ')
        return -1;
    *s = (struct slice){s->p + 1, s->n - 1};
    return 0;
}

/* MTIME MICROSECONDS ATIME MICROSECONDS */
static int read_times(struct scp_session *s, struct slice line)
{
    uint64_t mtime, atime, part;
    if (read_number(&line, 10, UINT32_MAX, &mtime) < 0 || read_blank(&line) < 0 ||
        read_number(&line, 10, 999999, &part) < 0 || read_blank(&line) < 0 ||
        read_number(&line, 10, UINT32_MAX, &atime) < 0 || read_blank(&line) < 0 ||
        read_number(&line, 10, 999999, &part) < 0 || line.n != 0)
        return -1;
    s->attrs.mtime = (uint32_t)mtime;
    s->attrs.atime = (uint32_t)atime;
    s->timed = true;
    return 0;
}

/* MODE SIZE NAME. 0: s->path is its place. 1: it has none; -1: this is no such line. */
static int read_head(struct scp_session *s, struct slice line)
{
    uint64_t mode, size;
    if (read_number(&line, 8, 07777, &mode) < 0 || read_blank(&line) < 0 ||
        read_number(&line, 10, (uint64_t)1 << 62, &size) < 0 || read_blank(&line) < 0 ||
        line.n == 0)
        return -1;
    s->attrs.mode = (uint32_t)mode & 0777;
    s->attrs.size = size;
    if (s->depth == 0) {
        snprintf(s->path, sizeof s->path, "%s", s->command.path);
        s->n_path = strlen(s->path);
    }
    if (s->depth == 0 && !s->in_folder)
        return 0;
    snprintf(s->why, sizeof s->why, "this name is none, or too long");
    return scp_name(s, s->depth ? scp_top(s)->n_path : s->n_path, line) ? 0 : 1;
}

static bool take_end(struct scp_session *s, const struct scp_io *io)
{
    if (s->depth == 0)
        return scp_end(s, true);
    struct scp_folder *f = scp_top(s);
    bool timed = f->timed;
    struct sftp_request q = {.op = SFTP_SETSTAT, .path = {s->path, f->n_path}, .attrs = f->attrs};
    s->n_path = f->n_path;
    s->path[s->n_path] = 0;
    scp_pop(s);
    return timed ? scp_ask(s, io, &q, SCP_DIR_SET) : scp_say(s, io, well, SCP_LINE);
}

static bool take_head(struct scp_session *s, const struct scp_io *io, struct slice line)
{
    int r = read_head(s, (struct slice){line.p + 1, line.n - 1});
    bool file = line.p[0] == 'C';
    if (r < 0 || (!file && !s->command.folders))
        return scp_end(s, true);
    if (r > 0 || (!file && s->depth == SCP_FOLDERS_MAX)) {
        s->timed = false;
        return scp_complain(s, io, SCP_LINE);
    }
    struct sftp_request q = {.op = SFTP_STAT, .path = scp_path(s)};
    if (file) {
        q.op = SFTP_OPEN;
        q.flags = SFTP_OPEN_WRITE | SFTP_OPEN_CREATE | SFTP_OPEN_TRUNCATE;
        q.attrs = (struct sftp_attrs){.flags = SFTP_HAS_MODE, .mode = s->attrs.mode};
    }
    return scp_ask(s, io, &q, file ? SCP_PUT_OPEN : SCP_DIR_STAT);
}

static bool take_line(struct scp_session *s, const struct scp_io *io, struct slice line)
{
    struct slice rest = {line.p + 1, line.n > 0 ? line.n - 1 : 0};
    switch (line.n > 0 ? line.p[0] : 0) {
    case 1:
        s->errors = true;
        return true;
    case 'E':
        return rest.n == 0 ? take_end(s, io) : scp_end(s, true);
    case 'T':
        return read_times(s, rest) < 0 ? scp_end(s, true) : scp_say(s, io, well, SCP_LINE);
    case 'C':
    case 'D':
        return take_head(s, io, line);
    default:
        return scp_end(s, true);
    }
}

static bool on_line(struct scp_session *s, const struct scp_io *io)
{
    struct slice came = buf_slice(io->client);
    ssize_t end = slice_find(came, '\n');
    if (end < 0 && (io->eof || came.n > SCP_LINE_MAX))
        return scp_end(s, came.n > 0);
    if (end < 0)
        return false;
    bool moved = take_line(s, io, (struct slice){came.p, (size_t)end});
    buf_drain(io->client, (size_t)end + 1);
    return moved;
}

/* ---- a file ---- */

static bool on_put_open(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    scp_why(s, r);
    if (!scp_take_handle(s, r)) {
        s->timed = false;
        return scp_complain(s, io, SCP_LINE);
    }
    s->asked = 0;
    s->failed = false;
    return scp_say(s, io, well, SCP_PUT_DATA);
}

/* The first that says no is what the client is told. */
static bool take_status(struct scp_session *s, const struct scp_io *io UNUSED,
                        const struct sftp_reply *r)
{
    if (!s->failed && (r->type != SFTP_STATUS || r->status != SFTP_OK)) {
        s->failed = true;
        scp_why(s, r);
    }
    return true;
}

/* What cannot be written is read nevertheless: the client says it all before it listens. */
static bool on_put_data(struct scp_session *s, const struct scp_io *io)
{
    bool moved = s->under_way > 0 && scp_reply(s, io, take_status);
    uint64_t left = s->attrs.size - s->asked;
    size_t n = buf_len(io->client) < SCP_CHUNK ? buf_len(io->client) : SCP_CHUNK;
    n = left < n ? (size_t)left : n;
    if (s->step != SCP_PUT_DATA)
        return true;
    if (left == 0) {
        s->step = SCP_PUT_TAIL;
        return true;
    }
    if (n == 0 && io->eof)
        return scp_end(s, true);
    if (n == 0 || s->under_way == SCP_WRITES || buf_room(io->requests) < n + 1024)
        return moved;
    if (!s->failed) {
        struct sftp_request q = {.op = SFTP_WRITE,
                                 .handle = scp_handle(s),
                                 .offset = s->asked,
                                 .data = {(char *)buf_data(io->client), n}};
        (void)scp_ask(s, io, &q, SCP_PUT_DATA);
    }
    s->asked += n;
    buf_drain(io->client, n);
    return true;
}

static bool on_put_tail(struct scp_session *s, const struct scp_io *io)
{
    int r = scp_answered(s, io);
    if (r > 0)
        s->step = SCP_PUT_FLUSH;
    return r != 0;
}

static bool ask_close(struct scp_session *s, const struct scp_io *io)
{
    struct sftp_request q = {.op = SFTP_CLOSE, .handle = scp_handle(s)};
    return scp_ask(s, io, &q, SCP_PUT_CLOSE);
}

static bool on_put_flush(struct scp_session *s, const struct scp_io *io)
{
    if (s->under_way > 0)
        return scp_reply(s, io, take_status);
    struct sftp_request q = {.op = SFTP_FSETSTAT, .handle = scp_handle(s), .attrs = s->attrs};
    q.attrs.flags = SFTP_HAS_MODE | SFTP_HAS_TIMES;
    return s->timed && !s->failed ? scp_ask(s, io, &q, SCP_PUT_SET) : ask_close(s, io);
}

static bool on_put_set(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    return take_status(s, io, r) && ask_close(s, io);
}

static bool on_put_close(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    (void)take_status(s, io, r);
    s->timed = false;
    return s->failed ? scp_complain(s, io, SCP_LINE) : scp_say(s, io, well, SCP_LINE);
}

/* ---- a folder ---- */

static bool enter(struct scp_session *s, const struct scp_io *io)
{
    struct scp_folder *f = &s->folders[s->depth++];
    memset(f, 0, sizeof *f);
    buf_init(&f->names, 1);
    f->n_path = s->n_path;
    f->timed = s->timed;
    f->attrs = s->attrs;
    f->attrs.flags = SFTP_HAS_MODE | SFTP_HAS_TIMES;
    s->timed = false;
    return scp_say(s, io, well, SCP_LINE);
}

static bool refuse_folder(struct scp_session *s, const struct scp_io *io)
{
    s->timed = false;
    return scp_complain(s, io, SCP_LINE);
}

static bool on_dir_stat(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    why_no_folder(s, r);
    if (r->type == SFTP_ATTRS && scp_is_folder(&r->attrs))
        return enter(s, io);
    if (r->type != SFTP_STATUS || r->status != SFTP_NO_SUCH_FILE)
        return refuse_folder(s, io);
    struct sftp_request q = {.op = SFTP_MKDIR,
                             .path = scp_path(s),
                             .attrs = {.flags = SFTP_HAS_MODE, .mode = s->attrs.mode | 0700}};
    return scp_ask(s, io, &q, SCP_DIR_MAKE);
}

static bool on_dir_make(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    s->failed = false;
    (void)take_status(s, io, r);
    return s->failed ? refuse_folder(s, io) : enter(s, io);
}

static bool on_dir_set(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    s->failed = false;
    (void)take_status(s, io, r);
    return s->failed ? scp_complain(s, io, SCP_LINE) : scp_say(s, io, well, SCP_LINE);
}

const struct scp_act scp_take_acts[SCP_STEPS] = {
    [SCP_TARGET] = {.reply = on_target},     [SCP_LINE] = {.turn = on_line},
    [SCP_PUT_OPEN] = {.reply = on_put_open}, [SCP_PUT_DATA] = {.turn = on_put_data},
    [SCP_PUT_TAIL] = {.turn = on_put_tail},  [SCP_PUT_FLUSH] = {.turn = on_put_flush},
    [SCP_PUT_SET] = {.reply = on_put_set},   [SCP_PUT_CLOSE] = {.reply = on_put_close},
    [SCP_DIR_STAT] = {.reply = on_dir_stat}, [SCP_DIR_MAKE] = {.reply = on_dir_make},
    [SCP_DIR_SET] = {.reply = on_dir_set},
};
