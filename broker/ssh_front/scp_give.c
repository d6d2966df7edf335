/* scp -f: files and folders that the client gets. */
#include "scp_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- what is next ---- */

static bool next(struct scp_session *s)
{
    s->step = SCP_LIST;
    return s->depth > 0 || scp_end(s, false);
}

/* It says so, and goes on with the next. */
static bool skip(struct scp_session *s, const struct scp_io *io)
{
    if (!scp_complain(s, io, SCP_LIST))
        return false;
    return s->step == SCP_OVER || next(s);
}

static bool skip_for(struct scp_session *s, const struct scp_io *io, const char *why)
{
    snprintf(s->why, sizeof s->why, "%s", why);
    return skip(s, io);
}

static bool ask_stat(struct scp_session *s, const struct scp_io *io)
{
    struct sftp_request q = {.op = SFTP_STAT, .path = scp_path(s)};
    return scp_ask(s, io, &q, SCP_STAT);
}

static bool ask_list(struct scp_session *s, const struct scp_io *io, struct slice folder)
{
    struct sftp_request q = {.op = SFTP_OPENDIR, .path = folder};
    return s->depth < SCP_FOLDERS_MAX ? scp_ask(s, io, &q, SCP_LIST_OPEN)
                                      : skip_for(s, io, "too many folders in one another");
}

bool scp_give_first(struct scp_session *s, const struct scp_io *io UNUSED)
{
    s->step = SCP_BEGIN;
    return true;
}

static bool on_begin(struct scp_session *s, const struct scp_io *io)
{
    int r = scp_answered(s, io);
    if (r <= 0)
        return r < 0;
    if (!s->command.has_stars)
        return ask_stat(s, io);
    s->n_path = s->command.name;
    return ask_list(s, io, s->n_path ? scp_path(s) : SLICE("."));
}

/* ---- a file ---- */

static const char *last_name(const struct scp_session *s, int *n)
{
    size_t end = s->n_path;
    while (end > 1 && s->path[end - 1] == '/')
        end--;
    size_t from = end;
    while (from > 0 && s->path[from - 1] != '/')
        from--;
    *n = (int)(end - from);
    return s->path + from;
}

static bool say_times(struct scp_session *s, const struct scp_io *io, enum scp_step step)
{
    char line[80];
    int n = snprintf(line, sizeof line, "T%u 0 %u 0\n", s->attrs.mtime, s->attrs.atime);
    return scp_say(s, io, (struct slice){line, (size_t)n}, step);
}

static bool say_head(struct scp_session *s, const struct scp_io *io, char kind, enum scp_step step)
{
    char line[SCP_LINE_MAX];
    int len, n;
    const char *name = last_name(s, &len);
    n = snprintf(line, sizeof line, "%c%04o %llu %.*s\n", kind, s->attrs.mode & 0777,
                 kind == 'C' ? (unsigned long long)s->attrs.size : 0, len, name);
    return scp_say(s, io, (struct slice){line, (size_t)n}, step);
}

static bool on_stat(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    scp_why(s, r);
    s->attrs = r->attrs;
    if (r->type != SFTP_ATTRS || !(s->attrs.flags & SFTP_HAS_MODE))
        return skip(s, io);
    if (scp_is_folder(&s->attrs) && s->command.folders)
        return ask_list(s, io, scp_path(s));
    if ((s->attrs.mode & SCP_KIND) != SCP_KIND_FILE || !(s->attrs.flags & SFTP_HAS_SIZE))
        return skip_for(s, io, "not a regular file");
    struct sftp_request q = {.op = SFTP_OPEN, .path = scp_path(s), .flags = SFTP_OPEN_READ};
    return scp_ask(s, io, &q, SCP_OPEN);
}

static bool on_open(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    scp_why(s, r);
    if (!scp_take_handle(s, r))
        return skip(s, io);
    s->asked = s->done = 0;
    s->failed = false;
    return s->command.times && (s->attrs.flags & SFTP_HAS_TIMES) ? say_times(s, io, SCP_TIMES)
                                                                 : say_head(s, io, 'C', SCP_HEAD);
}

static bool ask_close(struct scp_session *s, const struct scp_io *io)
{
    struct sftp_request q = {.op = SFTP_CLOSE, .handle = scp_handle(s)};
    return scp_ask(s, io, &q, SCP_CLOSE);
}

static bool on_times(struct scp_session *s, const struct scp_io *io)
{
    int r = scp_answered(s, io);
    if (r <= 0)
        return r < 0;
    return r == 1 ? say_head(s, io, 'C', SCP_HEAD) : ask_close(s, io);
}

static bool on_head(struct scp_session *s, const struct scp_io *io)
{
    int r = scp_answered(s, io);
    if (r <= 0)
        return r < 0;
    s->step = SCP_DATA;
    return r == 1 || ask_close(s, io);
}

static size_t chunk_at(const struct scp_session *s, uint64_t at)
{
    return s->attrs.size - at < SCP_CHUNK ? (size_t)(s->attrs.size - at) : SCP_CHUNK;
}

static bool ask_more(struct scp_session *s, const struct scp_io *io)
{
    bool asked = false;
    while (!s->failed && s->stale == 0 && s->asked < s->attrs.size && s->under_way < SCP_READS &&
           s->step == SCP_DATA && buf_len(io->out) < SCP_OUT_MAX && buf_room(io->requests) > 1024) {
        struct sftp_request q = {.op = SFTP_READ,
                                 .handle = scp_handle(s),
                                 .offset = s->asked,
                                 .n = (uint32_t)chunk_at(s, s->asked)};
        s->asked += q.n;
        asked = scp_ask(s, io, &q, SCP_DATA);
    }
    return asked;
}

/* A reply with less than was asked for makes those behind it worthless: they were asked for what is
 * further on. */
static bool take_data(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    size_t wanted = chunk_at(s, s->done);
    if (s->stale > 0) {
        s->stale--;
    } else if (r->type != SFTP_DATA || r->text.n == 0) {
        scp_why(s, r);
        s->failed = true;
    } else if (r->id != s->first - 1 || r->text.n > wanted) {
        return scp_end(s, true);
    } else if (!s->failed) {
        if (buf_append_slice(io->out, r->text) < 0)
            return scp_end(s, true);
        s->done += r->text.n;
        s->stale = r->text.n < wanted ? s->under_way : 0;
        if (r->text.n < wanted && s->stale == 0)
            s->asked = s->done;
        return true;
    }
    if (s->stale == 0)
        s->asked = s->done;
    return true;
}

/* What was announced comes, though it be nothing. */
static bool pad(struct scp_session *s, const struct scp_io *io)
{
    static const char zeros[SCP_CHUNK];
    size_t n = chunk_at(s, s->done);
    if (s->under_way > 0 || n == 0 || buf_len(io->out) > SCP_OUT_MAX)
        return false;
    s->done += n;
    return buf_append(io->out, zeros, n) == 0 || scp_end(s, true);
}

static bool on_data(struct scp_session *s, const struct scp_io *io)
{
    bool moved = ask_more(s, io);
    if (s->under_way > 0 && s->step == SCP_DATA)
        moved = scp_reply(s, io, take_data) || moved;
    if (s->step != SCP_DATA)
        return true;
    if (s->failed)
        moved = pad(s, io) || moved;
    if (s->done < s->attrs.size || s->under_way > 0)
        return moved;
    return s->failed ? scp_complain(s, io, SCP_TAIL)
                     : scp_say(s, io, (struct slice){"", 1}, SCP_TAIL);
}

static bool on_tail(struct scp_session *s, const struct scp_io *io)
{
    int r = scp_answered(s, io);
    return r > 0 ? ask_close(s, io) : r < 0;
}

static bool on_close(struct scp_session *s, const struct scp_io *io UNUSED,
                     const struct sftp_reply *r UNUSED)
{
    return next(s);
}

/* ---- a folder ---- */

static bool on_list_open(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    scp_why(s, r);
    if (!scp_take_handle(s, r))
        return skip(s, io);
    struct scp_folder *f = &s->folders[s->depth++];
    memset(f, 0, sizeof *f);
    memcpy(f->handle, s->handle, s->n_handle);
    f->n_handle = s->n_handle;
    f->n_path = s->n_path;
    f->quiet = s->command.has_stars && s->depth == 1;
    buf_init(&f->names, SFTP_REPLY_MAX);
    if (f->quiet)
        return next(s);
    return s->command.times && (s->attrs.flags & SFTP_HAS_TIMES)
               ? say_times(s, io, SCP_LIST_TIMES)
               : say_head(s, io, 'D', SCP_LIST_HEAD);
}

/* The folder's handle is closed, and it says no more of it. */
static bool leave(struct scp_session *s, const struct scp_io *io)
{
    struct scp_folder *f = scp_top(s);
    struct sftp_request q = {.op = SFTP_CLOSE, .handle = {f->handle, f->n_handle}};
    return scp_ask(s, io, &q, SCP_LIST_CLOSE);
}

static bool on_list_answered(struct scp_session *s, const struct scp_io *io)
{
    int r = scp_answered(s, io);
    if (r <= 0)
        return r < 0;
    if (r == 2) {
        scp_top(s)->quiet = s->matched = true;
        return leave(s, io);
    }
    return s->step == SCP_LIST_TIMES ? say_head(s, io, 'D', SCP_LIST_HEAD) : next(s);
}

static bool on_listed(struct scp_session *s, const struct scp_io *io, const struct sftp_reply *r)
{
    struct scp_folder *f = scp_top(s);
    bool ended = r->type == SFTP_STATUS && r->status == SFTP_EOF;
    scp_why(s, r);
    if (r->type == SFTP_NAME)
        return buf_append_slice(&f->names, r->names) == 0 || scp_end(s, true);
    s->n_path = f->n_path;
    s->path[s->n_path] = 0;
    if (!ended && (!scp_complain(s, io, SCP_LIST) || s->step == SCP_OVER))
        return true;
    return leave(s, io);
}

static bool on_list(struct scp_session *s, const struct scp_io *io)
{
    struct scp_folder *f = scp_top(s);
    struct slice names = buf_slice(&f->names);
    struct sftp_name name;
    if (s->under_way > 0)
        return scp_reply(s, io, on_listed);
    if (!sftp_name_next(&names, &name)) {
        struct sftp_request q = {.op = SFTP_READDIR, .handle = {f->handle, f->n_handle}};
        buf_clear(&f->names);
        return scp_ask(s, io, &q, SCP_LIST);
    }
    bool whole = true, wanted = !slice_eq_str(name.name, ".") && !slice_eq_str(name.name, "..") &&
                                !(f->quiet && !scp_command_matches(&s->command, name.name));
    if (wanted)
        whole = memchr(name.name.p, '\n', name.name.n) == NULL && scp_name(s, f->n_path, name.name);
    buf_drain(&f->names, buf_len(&f->names) - names.n);
    if (!wanted)
        return true;
    s->matched = true;
    return whole ? ask_stat(s, io) : skip_for(s, io, "a name in it cannot be sent");
}

static bool on_list_close(struct scp_session *s, const struct scp_io *io,
                          const struct sftp_reply *r UNUSED)
{
    if (!scp_top(s)->quiet)
        return scp_say(s, io, SLICE("E\n"), SCP_LIST_TAIL);
    scp_pop(s);
    if (s->matched)
        return next(s);
    snprintf(s->path, sizeof s->path, "%s", s->command.path); /* the pattern, of which none was */
    return skip_for(s, io, "No such file or directory");
}

static bool on_list_tail(struct scp_session *s, const struct scp_io *io)
{
    int r = scp_answered(s, io);
    if (r <= 0)
        return r < 0;
    scp_pop(s);
    return next(s);
}

const struct scp_act scp_give_acts[SCP_STEPS] = {
    [SCP_BEGIN] = {.turn = on_begin},
    [SCP_STAT] = {.reply = on_stat},
    [SCP_OPEN] = {.reply = on_open},
    [SCP_TIMES] = {.turn = on_times},
    [SCP_HEAD] = {.turn = on_head},
    [SCP_DATA] = {.turn = on_data},
    [SCP_TAIL] = {.turn = on_tail},
    [SCP_CLOSE] = {.reply = on_close},
    [SCP_LIST_OPEN] = {.reply = on_list_open},
    [SCP_LIST_TIMES] = {.turn = on_list_answered},
    [SCP_LIST_HEAD] = {.turn = on_list_answered},
    [SCP_LIST] = {.turn = on_list},
    [SCP_LIST_CLOSE] = {.reply = on_list_close},
    [SCP_LIST_TAIL] = {.turn = on_list_tail},
};
