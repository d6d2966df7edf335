/* What a server replies: read whole, held against what it was asked, and written anew. */
#include "sftp_session.h"

#include "ssh_wire.h"

#include <string.h>

static void write_reply(struct sftp_session *s, const struct sftp_reply *r)
{
    if (sftp_reply_write(r, &s->to_front) < 0)
        s->failed = "memory is out";
}

/* ---- a file is open, or is not ---- */

static void opened(struct sftp_session *s, const struct sftp_slot *slot, struct sftp_reply *r)
{
    struct sftp_file *f = s->open[slot->file];
    char text[100];
    struct buf b;
    if (r->type == SFTP_STATUS) {
        snprintf(text, sizeof text, "%.*s", SL(r->text));
        sftp_file_close(s, slot->file, "ok", text);
        write_reply(s, r);
        return;
    }
    memcpy(f->handle, r->text.p, r->text.n);
    f->n_handle = r->text.n;
    f->usable = true;
    buf_init(&b, 4);
    if (ssh_wire_put_u32(&b, slot->file) < 0)
        s->failed = "memory is out";
    r->text = buf_slice(&b);
    write_reply(s, r);
    buf_free(&b);
}

/* ---- names in a folder ---- */

/* Names that no pattern allows are left out. */
static int put_visible(struct sftp_session *s, const struct sftp_file *f, struct slice names,
                       struct buf *to, uint32_t *n)
{
    struct sftp_name name;
    char path[SSH_FILE_PATH_MAX + 1];
    while (names.n > 0) {
        if (!sftp_name_next(&names, &name))
            return -1;
        bool dots = slice_eq_str(name.name, ".") || slice_eq_str(name.name, "..");
        if (!dots && (name.name.n == 0 || memchr(name.name.p, '/', name.name.n) ||
                      memchr(name.name.p, 0, name.name.n)))
            continue;
        int len = snprintf(path, sizeof path, "%s/%.*s", f->path[1] ? f->path : "", SL(name.name));
        const struct ssh_file_asked asked = {SSH_FILE_SEE, {path, (size_t)len}, {"", 0}};
        if (!dots &&
            (len >= (int)sizeof path || ssh_files_refused(s->files, sftp_home(s), &asked) != NULL))
            continue;
        if (sftp_name_write(&name, to) < 0)
            return -1;
        ++*n;
    }
    return 0;
}

/* Where nothing is left of a list, the next one is asked for: an empty one would end it. */
static void listed(struct sftp_session *s, const struct sftp_slot *slot, struct sftp_reply *r)
{
    const struct sftp_file *f = s->open[slot->file];
    struct sftp_request again = {.op = SFTP_READDIR, .id = r->id};
    struct buf b;
    uint32_t n = 0;
    if (r->type == SFTP_STATUS || f == NULL) {
        write_reply(s, r);
        return;
    }
    buf_init(&b, SFTP_REPLY_MAX);
    if (put_visible(s, f, r->names, &b, &n) < 0) {
        s->failed = "a name that cannot be read";
    } else if (n == 0) {
        again.handle = (struct slice){f->handle, f->n_handle};
        sftp_send(s, &again, false);
    } else {
        r->n_names = n;
        r->names = buf_slice(&b);
        write_reply(s, r);
    }
    buf_free(&b);
}

/* ---- all the others ---- */

static void read_some(struct sftp_session *s, const struct sftp_slot *slot, struct sftp_reply *r)
{
    struct sftp_file *f = s->open[slot->file];
    if (r->type == SFTP_DATA && r->text.n > slot->n)
        s->failed = "more than was asked for";
    else if (r->type == SFTP_DATA && f)
        f->n_read += r->text.n;
    write_reply(s, r);
}

static void done(struct sftp_session *s, struct sftp_slot *slot, const struct sftp_reply *r)
{
    char text[100] = "";
    if (r->type == SFTP_STATUS && r->status != SFTP_OK)
        snprintf(text, sizeof text, "%.*s", SL(r->text));
    if (slot->op == SFTP_CLOSE)
        sftp_file_close(s, slot->file, "ok", text);
    else
        sftp_record_end(s, &slot->record, RECORD_COMPLETED, "ok", text);
    write_reply(s, r);
}

static void take(struct sftp_session *s, struct sftp_reply *r)
{
    struct sftp_slot slot = s->slots[r->id];
    s->slots[r->id].used = false;
    s->slots[r->id].record.counter = 0; /* its end is written once, by whoever has the copy */
    switch (slot.op) {
    case SFTP_OPEN:
    case SFTP_OPENDIR:
        opened(s, &slot, r);
        break;
    case SFTP_READDIR:
        listed(s, &slot, r);
        break;
    case SFTP_READ:
        read_some(s, &slot, r);
        break;
    default:
        done(s, &slot, r);
    }
    if (slot.resolved)
        sftp_turn_end(s);
}

/* ---- before the front hears of anything ---- */

static void hello(struct sftp_session *s, struct slice body)
{
    const struct sftp_request where = {
        .op = SFTP_REALPATH, .id = SFTP_RESOLVE_ID, .path = SLICE(".")};
    if (sftp_hello_read(body, SFTP_VERSION_IS, &s->extensions) < 0)
        s->failed = "the server does not speak version 3 of SFTP";
    else if (sftp_request_write(&where, &s->of->in) < 0)
        s->failed = "memory is out";
    s->stage = SFTP_STAGE_HOME;
}

static void begun(struct sftp_session *s, const struct sftp_reply *r)
{
    struct slice names = r->names;
    struct sftp_name name;
    struct buf b;
    if (r->id != SFTP_RESOLVE_ID || r->type != SFTP_NAME || r->n_names != 1 ||
        !sftp_name_next(&names, &name) || !ssh_file_path_ok(name.name)) {
        s->failed = "the server does not say where it begins";
        return;
    }
    snprintf(s->home, sizeof s->home, "%.*s", SL(name.name));
    s->stage = SFTP_STAGE_READY;
    buf_init(&b, 2 * SSH_FILE_PATH_MAX);
    if (ssh_wire_put_u32(&b, s->extensions) < 0 || ssh_wire_put_string(&b, name.name) < 0 ||
        broker_stream_send(s->of->stream, BROKER_OPENED, buf_slice(&b)) <= 0)
        s->failed = "the front does not listen";
    buf_free(&b);
}

void sftp_reply_take(struct sftp_session *s, struct slice body)
{
    struct sftp_reply r;
    if (s->stage == SFTP_STAGE_HELLO) {
        hello(s, body);
    } else if (sftp_reply_read(body, &r) < 0) {
        s->failed = "a reply of SFTP that cannot be read";
    } else if (s->stage == SFTP_STAGE_HOME) {
        begun(s, &r);
    } else if (r.id == SFTP_RESOLVE_ID) {
        sftp_turn_resolved(s, &r);
    } else if (r.id >= SFTP_SLOTS || !s->slots[r.id].used ||
               !sftp_reply_fits(&r, s->slots[r.id].op)) {
        s->failed = "a reply to nothing that was asked";
    } else {
        take(s, &r);
    }
}
