/* Reads and writes the packets of SFTP. */
#include "sftp_packet.h"

#include "ssh_wire.h"

#include <string.h>

/* ---- parts ---- */

static int take_u64(struct slice *s, uint64_t *ret)
{
    uint32_t high, low;
    if (ssh_wire_u32(s, &high) < 0 || ssh_wire_u32(s, &low) < 0)
        return -1;
    *ret = (uint64_t)high << 32 | low;
    return 0;
}

static int put_u64(struct buf *to, uint64_t v)
{
    return ssh_wire_put_u32(to, (uint32_t)(v >> 32)) < 0 ? -1 : ssh_wire_put_u32(to, (uint32_t)v);
}

static int take_text(struct slice *s, struct slice *ret)
{
    return ssh_wire_string(s, ret) < 0 || ret->n > SFTP_TEXT_MAX ? -1 : 0;
}

static int take_handle(struct slice *s, struct slice *ret)
{
    return ssh_wire_string(s, ret) < 0 || ret->n == 0 || ret->n > SFTP_HANDLE_MAX ? -1 : 0;
}

enum { EXTENDED_ATTRS = (int)0x80000000U };

/* Extended ones are left out. */
static int take_attrs(struct slice *s, struct sftp_attrs *a)
{
    uint32_t n = 0;
    struct slice skipped;
    memset(a, 0, sizeof *a);
    if (ssh_wire_u32(s, &a->flags) < 0 ||
        (a->flags & ~((uint32_t)EXTENDED_ATTRS | SFTP_HAS_SIZE | SFTP_HAS_OWNER | SFTP_HAS_MODE |
                      SFTP_HAS_TIMES)) ||
        ((a->flags & SFTP_HAS_SIZE) && take_u64(s, &a->size) < 0) ||
        ((a->flags & SFTP_HAS_OWNER) &&
         (ssh_wire_u32(s, &a->uid) < 0 || ssh_wire_u32(s, &a->gid) < 0)) ||
        ((a->flags & SFTP_HAS_MODE) && ssh_wire_u32(s, &a->mode) < 0) ||
        ((a->flags & SFTP_HAS_TIMES) &&
         (ssh_wire_u32(s, &a->atime) < 0 || ssh_wire_u32(s, &a->mtime) < 0)) ||
        ((a->flags & (uint32_t)EXTENDED_ATTRS) && ssh_wire_u32(s, &n) < 0))
        return -1;
    for (; n > 0; n--)
        if (ssh_wire_string(s, &skipped) < 0 || ssh_wire_string(s, &skipped) < 0)
            return -1;
    a->flags &= ~(uint32_t)EXTENDED_ATTRS;
    return 0;
}

static int put_attrs(struct buf *to, const struct sftp_attrs *a)
{
    return ssh_wire_put_u32(to, a->flags) < 0 ||
                   ((a->flags & SFTP_HAS_SIZE) && put_u64(to, a->size) < 0) ||
                   ((a->flags & SFTP_HAS_OWNER) &&
                    (ssh_wire_put_u32(to, a->uid) < 0 || ssh_wire_put_u32(to, a->gid) < 0)) ||
                   ((a->flags & SFTP_HAS_MODE) && ssh_wire_put_u32(to, a->mode) < 0) ||
                   ((a->flags & SFTP_HAS_TIMES) &&
                    (ssh_wire_put_u32(to, a->atime) < 0 || ssh_wire_put_u32(to, a->mtime) < 0))
               ? -1
               : 0;
}

/* Space for a length, which `end` fills in; where the packet begins. */
static int begin(struct buf *to, size_t *at)
{
    *at = buf_len(to);
    return ssh_wire_put_u32(to, 0);
}

/* r: whether the packet could be written. */
static int end(struct buf *to, size_t at, int r)
{
    size_t n = buf_len(to) - at;
    if (r < 0 || n < 4) {
        buf_cut(to, n);
        return -1;
    }
    unsigned char *p = buf_data(to) + at;
    n -= 4;
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(n >> (24 - 8 * i));
    return 0;
}

int sftp_packet_next(struct slice came, size_t max, struct slice *ret, size_t *n)
{
    uint32_t length;
    if (ssh_wire_u32(&came, &length) < 0)
        return 0;
    if (length == 0 || length > max)
        return -1;
    if (came.n < length)
        return 0;
    *ret = (struct slice){came.p, length};
    *n = 4 + (size_t)length;
    return 1;
}

/* ---- extensions ---- */

static const struct {
    enum sftp_op op;
    struct slice name;
    const char *version;
} extensions_known[] = {
    {SFTP_POSIX_RENAME, SLICE_INIT("posix-rename@openssh.com"), "1"},
    {SFTP_STATVFS, SLICE_INIT("statvfs@openssh.com"), "2"},
    {SFTP_FSTATVFS, SLICE_INIT("fstatvfs@openssh.com"), "2"},
    {SFTP_HARDLINK, SLICE_INIT("hardlink@openssh.com"), "1"},
    {SFTP_FSYNC, SLICE_INIT("fsync@openssh.com"), "1"},
    {SFTP_LSETSTAT, SLICE_INIT("lsetstat@openssh.com"), "1"},
    {SFTP_LIMITS, SLICE_INIT("limits@openssh.com"), "1"},
    {SFTP_EXPAND_PATH, SLICE_INIT("expand-path@openssh.com"), "1"},
};

static enum sftp_op extension_of(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(extensions_known); i++)
        if (slice_eq(extensions_known[i].name, name))
            return extensions_known[i].op;
    return SFTP_OTHER;
}

int sftp_hello_read(struct slice body, enum sftp_type type, uint32_t *extensions)
{
    uint8_t is;
    uint32_t version;
    struct slice name, value;
    *extensions = 0;
    if (ssh_wire_u8(&body, &is) < 0 || is != type || ssh_wire_u32(&body, &version) < 0 ||
        version < SFTP_VERSION || (type == SFTP_VERSION_IS && version != SFTP_VERSION))
        return -1;
    while (body.n > 0) {
        if (ssh_wire_string(&body, &name) < 0 || ssh_wire_string(&body, &value) < 0)
            return -1;
        for (size_t i = 0; i < ARRAY_LEN(extensions_known); i++)
            if (slice_eq(extensions_known[i].name, name) &&
                slice_eq_str(value, extensions_known[i].version))
                *extensions |= 1u << extensions_known[i].op;
    }
    return 0;
}

int sftp_init_write(struct buf *to)
{
    size_t at;
    if (begin(to, &at) < 0)
        return -1;
    return end(to, at,
               ssh_wire_put_u8(to, SFTP_INIT) < 0 ? -1 : ssh_wire_put_u32(to, SFTP_VERSION));
}

int sftp_hello_write(uint32_t extensions, struct buf *to)
{
    size_t at;
    if (begin(to, &at) < 0)
        return -1;
    int r = ssh_wire_put_u8(to, SFTP_VERSION_IS) < 0 ? -1 : ssh_wire_put_u32(to, SFTP_VERSION);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(extensions_known); i++)
        if (extensions >> extensions_known[i].op & 1)
            r = ssh_wire_put_string(to, extensions_known[i].name) < 0
                    ? -1
                    : ssh_wire_put_string(to, slice_str(extensions_known[i].version));
    return end(to, at, r);
}

int sftp_limits_write(uint32_t id, struct buf *to)
{
    static const uint64_t limits[] = {SFTP_REQUEST_MAX, SFTP_DATA_MAX, SFTP_DATA_MAX, SFTP_SLOTS};
    size_t at;
    if (begin(to, &at) < 0)
        return -1;
    int r = ssh_wire_put_u8(to, SFTP_EXTENDED_REPLY) < 0 ? -1 : ssh_wire_put_u32(to, id);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(limits); i++)
        r = put_u64(to, limits[i]);
    return end(to, at, r);
}

/* ---- what each asks for ---- */

enum shape { NONE = 0, PATH, PATHS, HANDLE, PATH_ATTRS, HANDLE_ATTRS, OPENS, READS, WRITES, OTHER };

static const uint8_t shapes[SFTP_OPS] = {
    [SFTP_OPEN] = OPENS,         [SFTP_CLOSE] = HANDLE,
    [SFTP_READ] = READS,         [SFTP_WRITE] = WRITES,
    [SFTP_LSTAT] = PATH,         [SFTP_FSTAT] = HANDLE,
    [SFTP_SETSTAT] = PATH_ATTRS, [SFTP_FSETSTAT] = HANDLE_ATTRS,
    [SFTP_OPENDIR] = PATH,       [SFTP_READDIR] = HANDLE,
    [SFTP_REMOVE] = PATH,        [SFTP_MKDIR] = PATH_ATTRS,
    [SFTP_RMDIR] = PATH,         [SFTP_REALPATH] = PATH,
    [SFTP_STAT] = PATH,          [SFTP_RENAME] = PATHS,
    [SFTP_READLINK] = PATH,      [SFTP_SYMLINK] = PATHS,
    [SFTP_POSIX_RENAME] = PATHS, [SFTP_STATVFS] = PATH,
    [SFTP_FSTATVFS] = HANDLE,    [SFTP_HARDLINK] = PATHS,
    [SFTP_FSYNC] = HANDLE,       [SFTP_LSETSTAT] = PATH_ATTRS,
    [SFTP_LIMITS] = NONE,        [SFTP_EXPAND_PATH] = PATH,
    [SFTP_OTHER] = OTHER,
};

static int read_op(struct slice *body, struct sftp_request *q)
{
    uint8_t type;
    struct slice name;
    if (ssh_wire_u8(body, &type) < 0 || ssh_wire_u32(body, &q->id) < 0)
        return -1;
    q->op = type >= SFTP_OPEN && type <= SFTP_SYMLINK ? (enum sftp_op)type : SFTP_OTHER;
    if (type == SFTP_EXTENDED) {
        if (ssh_wire_string(body, &name) < 0)
            return -1;
        q->op = extension_of(name);
    }
    return 0;
}

static int read_shape(struct slice *s, struct sftp_request *q, enum shape shape)
{
    switch (shape) {
    case PATH:
        return take_text(s, &q->path);
    case PATHS:
        return take_text(s, &q->path) < 0 ? -1 : take_text(s, &q->to);
    case HANDLE:
        return take_handle(s, &q->handle);
    case PATH_ATTRS:
        return take_text(s, &q->path) < 0 ? -1 : take_attrs(s, &q->attrs);
    case HANDLE_ATTRS:
        return take_handle(s, &q->handle) < 0 ? -1 : take_attrs(s, &q->attrs);
    case OPENS:
        return take_text(s, &q->path) < 0 || ssh_wire_u32(s, &q->flags) < 0 ||
                       (q->flags & ~(uint32_t)SFTP_OPEN_ALL)
                   ? -1
                   : take_attrs(s, &q->attrs);
    case READS:
        return take_handle(s, &q->handle) < 0 || take_u64(s, &q->offset) < 0
                   ? -1
                   : ssh_wire_u32(s, &q->n);
    case WRITES:
        return take_handle(s, &q->handle) < 0 || take_u64(s, &q->offset) < 0 ||
                       ssh_wire_string(s, &q->data) < 0 || q->data.n > SFTP_DATA_MAX
                   ? -1
                   : 0;
    case OTHER:
        s->n = 0; /* nothing of it goes on */
        return 0;
    default:
        return 0;
    }
}

int sftp_request_read(struct slice body, struct sftp_request *ret)
{
    memset(ret, 0, sizeof *ret);
    if (read_op(&body, ret) < 0 || read_shape(&body, ret, shapes[ret->op]) < 0)
        return -1;
    return body.n == 0 ? 0 : -1;
}

static int put_op(const struct sftp_request *q, struct buf *to)
{
    bool extended = q->op >= SFTP_EXTENSION_FIRST;
    if (ssh_wire_put_u8(to, extended ? SFTP_EXTENDED : (uint8_t)q->op) < 0 ||
        ssh_wire_put_u32(to, q->id) < 0)
        return -1;
    for (size_t i = 0; extended && i < ARRAY_LEN(extensions_known); i++)
        if (extensions_known[i].op == q->op)
            return ssh_wire_put_string(to, extensions_known[i].name);
    return extended ? -1 : 0;
}

static int put_shape(const struct sftp_request *q, enum shape shape, struct buf *to)
{
    switch (shape) {
    case PATH:
        return ssh_wire_put_string(to, q->path);
    case PATHS:
        return ssh_wire_put_string(to, q->path) < 0 ? -1 : ssh_wire_put_string(to, q->to);
    case HANDLE:
        return ssh_wire_put_string(to, q->handle);
    case PATH_ATTRS:
        return ssh_wire_put_string(to, q->path) < 0 ? -1 : put_attrs(to, &q->attrs);
    case HANDLE_ATTRS:
        return ssh_wire_put_string(to, q->handle) < 0 ? -1 : put_attrs(to, &q->attrs);
    case OPENS:
        return ssh_wire_put_string(to, q->path) < 0 || ssh_wire_put_u32(to, q->flags) < 0
                   ? -1
                   : put_attrs(to, &q->attrs);
    case READS:
        return ssh_wire_put_string(to, q->handle) < 0 || put_u64(to, q->offset) < 0
                   ? -1
                   : ssh_wire_put_u32(to, q->n);
    case WRITES:
        return ssh_wire_put_string(to, q->handle) < 0 || put_u64(to, q->offset) < 0
                   ? -1
                   : ssh_wire_put_string(to, q->data);
    case OTHER:
        return -1;
    default:
        return 0;
    }
}

int sftp_request_write(const struct sftp_request *q, struct buf *to)
{
    size_t at;
    if (begin(to, &at) < 0)
        return -1;
    return end(to, at, put_op(q, to) < 0 ? -1 : put_shape(q, shapes[q->op], to));
}

/* ---- replies ---- */

bool sftp_name_next(struct slice *names, struct sftp_name *ret)
{
    return names->n > 0 && take_text(names, &ret->name) == 0 && take_text(names, &ret->line) == 0 &&
           take_attrs(names, &ret->attrs) == 0;
}

int sftp_name_write(const struct sftp_name *n, struct buf *to)
{
    return ssh_wire_put_string(to, n->name) < 0 || ssh_wire_put_string(to, n->line) < 0
               ? -1
               : put_attrs(to, &n->attrs);
}

static int read_names(struct slice *s, struct sftp_reply *r)
{
    struct sftp_name name;
    if (ssh_wire_u32(s, &r->n_names) < 0)
        return -1;
    r->names = *s;
    for (uint32_t i = 0; i < r->n_names; i++)
        if (!sftp_name_next(s, &name))
            return -1;
    r->names.n -= s->n;
    return 0;
}

static int read_status(struct slice *s, struct sftp_reply *r)
{
    struct slice language;
    if (ssh_wire_u32(s, &r->status) < 0)
        return -1;
    if (s->n > 0 && (take_text(s, &r->text) < 0 || take_text(s, &language) < 0))
        return -1; /* some servers say a number and no more */
    if (r->status > SFTP_OP_UNSUPPORTED)
        r->status = SFTP_FAILURE;
    return 0;
}

static int read_words(struct slice *s, struct sftp_reply *r)
{
    for (size_t i = 0; i < SFTP_STATVFS_WORDS; i++)
        if (take_u64(s, &r->words[i]) < 0)
            return -1;
    return 0;
}

static int read_reply(struct slice *s, struct sftp_reply *r)
{
    switch (r->type) {
    case SFTP_STATUS:
        return read_status(s, r);
    case SFTP_HANDLE:
        return take_handle(s, &r->text);
    case SFTP_DATA:
        return ssh_wire_string(s, &r->text) < 0 || r->text.n > SFTP_DATA_MAX ? -1 : 0;
    case SFTP_NAME:
        return read_names(s, r);
    case SFTP_ATTRS:
        return take_attrs(s, &r->attrs);
    case SFTP_EXTENDED_REPLY:
        return read_words(s, r);
    default:
        return -1;
    }
}

int sftp_reply_read(struct slice body, struct sftp_reply *ret)
{
    uint8_t type;
    memset(ret, 0, sizeof *ret);
    if (ssh_wire_u8(&body, &type) < 0 || ssh_wire_u32(&body, &ret->id) < 0)
        return -1;
    ret->type = (enum sftp_type)type;
    return read_reply(&body, ret) < 0 || body.n > 0 ? -1 : 0;
}

static int put_names(struct slice names, struct buf *to)
{
    struct sftp_name name;
    while (names.n > 0)
        if (!sftp_name_next(&names, &name) || sftp_name_write(&name, to) < 0)
            return -1;
    return 0;
}

static int put_words(const struct sftp_reply *r, struct buf *to)
{
    for (size_t i = 0; i < SFTP_STATVFS_WORDS; i++)
        if (put_u64(to, r->words[i]) < 0)
            return -1;
    return 0;
}

static int put_reply(const struct sftp_reply *r, struct buf *to)
{
    switch (r->type) {
    case SFTP_STATUS:
        return ssh_wire_put_u32(to, r->status) < 0 || ssh_wire_put_string(to, r->text) < 0
                   ? -1
                   : ssh_wire_put_string(to, SLICE(""));
    case SFTP_HANDLE:
    case SFTP_DATA:
        return ssh_wire_put_string(to, r->text);
    case SFTP_NAME:
        return ssh_wire_put_u32(to, r->n_names) < 0 ? -1 : put_names(r->names, to);
    case SFTP_ATTRS:
        return put_attrs(to, &r->attrs);
    case SFTP_EXTENDED_REPLY:
        return put_words(r, to);
    default:
        return -1;
    }
}

int sftp_reply_write(const struct sftp_reply *r, struct buf *to)
{
    size_t at;
    if (begin(to, &at) < 0)
        return -1;
    return end(to, at,
               ssh_wire_put_u8(to, (uint8_t)r->type) < 0 || ssh_wire_put_u32(to, r->id) < 0
                   ? -1
                   : put_reply(r, to));
}

int sftp_status_write(uint32_t id, enum sftp_status status, const char *text, struct buf *to)
{
    const struct sftp_reply r = {
        .type = SFTP_STATUS, .id = id, .status = status, .text = slice_str(text)};
    return sftp_reply_write(&r, to);
}

bool sftp_reply_fits(const struct sftp_reply *r, enum sftp_op op)
{
    if (r->type == SFTP_STATUS)
        return r->status != SFTP_OK ||
               !(op == SFTP_OPEN || op == SFTP_OPENDIR || op == SFTP_READ || op == SFTP_READDIR ||
                 op == SFTP_STAT || op == SFTP_LSTAT || op == SFTP_FSTAT || op == SFTP_REALPATH ||
                 op == SFTP_READLINK || op == SFTP_STATVFS || op == SFTP_FSTATVFS);
    switch (op) {
    case SFTP_OPEN:
    case SFTP_OPENDIR:
        return r->type == SFTP_HANDLE;
    case SFTP_READ:
        return r->type == SFTP_DATA;
    case SFTP_READDIR:
        return r->type == SFTP_NAME;
    case SFTP_REALPATH:
    case SFTP_EXPAND_PATH:
    case SFTP_READLINK:
        return r->type == SFTP_NAME && r->n_names == 1;
    case SFTP_STAT:
    case SFTP_LSTAT:
    case SFTP_FSTAT:
        return r->type == SFTP_ATTRS;
    case SFTP_STATVFS:
    case SFTP_FSTATVFS:
        return r->type == SFTP_EXTENDED_REPLY;
    default:
        return false;
    }
}
