/* Reads and writes the facts of a request to an SSH server, and git's commands. */
#include "ssh_facts.h"

#include "ssh_wire.h"

#include <stdio.h>
#include <string.h>

enum { WINDOW_MAX = 10000 };

int ssh_facts_put(const struct ssh_facts *f, struct buf *to)
{
    return ssh_wire_put_string(to, slice_str(f->user)) < 0 ||
                   ssh_wire_put_u8(to, (uint8_t)f->verb) < 0 ||
                   ssh_wire_put_string(to, slice_str(f->text)) < 0 ||
                   ssh_wire_put_u8(to, f->git_protocol) < 0 ||
                   ssh_wire_put_string(to, slice_str(f->term)) < 0
               ? -1
               : ssh_window_put(f->columns, f->rows, to);
}

/* A text without a NUL, into `size` bytes. */
static int take_text(struct slice *s, char *to, size_t size)
{
    struct slice v;
    if (ssh_wire_string(s, &v) < 0 || v.n >= size || memchr(v.p, 0, v.n))
        return -1;
    memcpy(to, v.p, v.n);
    to[v.n] = 0;
    return 0;
}

static bool term_ok(const char *s)
{
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && strchr("-_.+", *s) == NULL)
            return false;
    return true;
}

int ssh_facts_get(struct slice s, struct ssh_facts *ret)
{
    uint8_t verb;
    memset(ret, 0, sizeof *ret);
    if (take_text(&s, ret->user, sizeof ret->user) < 0 || ssh_wire_u8(&s, &verb) < 0 || verb == 0 ||
        verb >= SSH_VERBS || take_text(&s, ret->text, sizeof ret->text) < 0 ||
        ssh_wire_u8(&s, &ret->git_protocol) < 0 || ret->git_protocol > SSH_GIT_PROTOCOLS ||
        take_text(&s, ret->term, sizeof ret->term) < 0 || !term_ok(ret->term))
        return -1;
    ret->verb = (enum ssh_verb)verb;
    if ((ret->verb == SSH_SHELL || ret->verb == SSH_SFTP) && ret->text[0])
        return -1;
    if ((ret->verb == SSH_SFTP || ret->verb == SSH_FORWARD) && ret->term[0])
        return -1;
    return ssh_window_get(s, &ret->columns, &ret->rows);
}

struct ssh_asked ssh_facts_asked(const struct ssh_facts *f)
{
    return (struct ssh_asked){slice_str(f->user), f->verb, slice_str(f->text), f->term[0] != 0};
}

/* ---- git's commands ---- */

/* The first name is the one that a server is asked by. */
static const struct {
    enum ssh_verb verb;
    const char *names[2];
    const char *end; /* what stands behind the repository */
    bool plain;      /* which need not be quoted then */
} gits[] = {
    {SSH_FETCH, {"git-upload-pack ", "git upload-pack "}, "", false},
    {SSH_PUSH, {"git-receive-pack ", "git receive-pack "}, "", false},
    {SSH_ARCHIVE, {"git-upload-archive ", "git upload-archive "}, "", false},
    {SSH_LFS_FETCH, {"git-lfs-transfer ", "git-lfs-transfer "}, " download", true},
    {SSH_LFS_PUSH, {"git-lfs-transfer ", "git-lfs-transfer "}, " upload", true},
};

/* A word as git quotes it: 'it'\''s'. -1: it is none, or more follows. */
static int unquote(struct slice s, char *to, size_t size, size_t *ret)
{
    size_t n = 0, i = 0;
    if (s.n < 2 || s.p[i++] != '\'')
        return -1;
    for (;;) {
        while (i < s.n && s.p[i] != '\'') {
            if (n + 1 >= size || s.p[i] == 0)
                return -1;
            to[n++] = s.p[i++];
        }
        if (i == s.n)
            return -1;
        if (++i == s.n)
            break;
        if (i + 2 >= s.n || s.p[i] != '\\' || (s.p[i + 1] != '\'' && s.p[i + 1] != '!') ||
            s.p[i + 2] != '\'' || n + 1 >= size)
            return -1;
        to[n++] = s.p[i + 1];
        i += 3;
    }
    to[n] = 0;
    *ret = n;
    return 0;
}

/* A word that a shell leaves as it is. -1: it is none. */
static int plain_word(struct slice s, char *to, size_t size, size_t *ret)
{
    if (s.n >= size)
        return -1;
    for (size_t i = 0; i < s.n; i++)
        if (!ascii_is_alnum(s.p[i]) && (s.p[i] == 0 || strchr("/-._~+@=:,", s.p[i]) == NULL))
            return -1;
    memcpy(to, s.p, s.n);
    to[s.n] = 0;
    *ret = s.n;
    return 0;
}

static int read_repository(struct slice word, bool plain, struct ssh_facts *ret, bool *relative)
{
    char path[SSH_TEXT_MAX];
    size_t n;
    if (((!plain || plain_word(word, path, sizeof path - 1, &n) < 0) &&
         unquote(word, path, sizeof path - 1, &n) < 0) ||
        n == 0)
        return -1;
    *relative = path[0] != '/' && strncmp(path, "~/", 2) != 0;
    if (*relative && path[0] == '~') /* another user's home */
        return -1;
    if (*relative && n == sizeof path - 2) /* with its '/' the other end would not read it */
        return -1;
    while (n > 1 && path[n - 1] == '/')
        path[--n] = 0;
    snprintf(ret->text, sizeof ret->text, "%s%s", *relative ? "/" : "", path);
    return 0;
}

int ssh_command_read(struct slice command, struct ssh_facts *ret, bool *relative)
{
    *relative = false;
    for (size_t i = 0; i < ARRAY_LEN(gits); i++)
        for (size_t k = 0; k < 2; k++) {
            struct slice name = slice_str(gits[i].names[k]), end = slice_str(gits[i].end);
            if (command.n < name.n + end.n || !slice_starts(command, name) ||
                !slice_ends(command, end) ||
                read_repository((struct slice){command.p + name.n, command.n - name.n - end.n},
                                gits[i].plain, ret, relative) < 0)
                continue;
            ret->verb = gits[i].verb;
            return 0;
        }
    *relative = false;
    if (command.n == 0 || command.n > SSH_TEXT_MAX || memchr(command.p, 0, command.n))
        return -1;
    ret->verb = SSH_EXEC;
    memcpy(ret->text, command.p, command.n);
    ret->text[command.n] = 0;
    return 0;
}

int ssh_command_write(const struct ssh_facts *f, struct buf *to)
{
    size_t git = 0;
    if (f->verb == SSH_EXEC)
        return buf_append_str(to, f->text);
    while (git < ARRAY_LEN(gits) && gits[git].verb != f->verb)
        git++;
    if (git == ARRAY_LEN(gits) || buf_printf(to, "%s'", gits[git].names[0]) < 0)
        return -1;
    for (const char *p = f->text; *p; p++) {
        bool marked = *p == '\'' || *p == '!';
        if ((marked && buf_append_str(to, "'\\") < 0) || buf_append(to, p, 1) < 0 ||
            (marked && buf_append_str(to, "'") < 0))
            return -1;
    }
    return buf_printf(to, "'%s", gits[git].end);
}

void ssh_facts_record(const struct ssh_facts *f, struct record *r)
{
    record_put_str(r, RF_USER, f->user);
    record_put_str(r, RF_METHOD, ssh_verb_name(f->verb));
    record_put_str(r,
                   f->verb == SSH_EXEC      ? RF_COMMAND
                   : f->verb == SSH_FORWARD ? RF_TARGET
                                            : RF_PATH,
                   f->text);
    for (size_t i = 0; i < ARRAY_LEN(gits) && f->verb >= SSH_ARCHIVE; i++)
        if (gits[i].verb == f->verb)
            record_put(r, RF_COMMAND,
                       (struct slice){gits[i].names[0], strlen(gits[i].names[0]) - 1});
}

/* ---- packets ---- */

int ssh_status_put(const struct ssh_status *s, struct buf *to)
{
    return ssh_wire_put_u8(to, s->signalled) < 0 || ssh_wire_put_u32(to, s->status) < 0
               ? -1
               : ssh_wire_put_string(to, slice_str(s->signal));
}

int ssh_status_get(struct slice s, struct ssh_status *ret)
{
    uint8_t signalled;
    memset(ret, 0, sizeof *ret);
    if (ssh_wire_u8(&s, &signalled) < 0 || signalled > 1 || ssh_wire_u32(&s, &ret->status) < 0 ||
        take_text(&s, ret->signal, sizeof ret->signal) < 0 || s.n != 0)
        return -1;
    ret->signalled = signalled;
    return 0;
}

int ssh_window_put(uint32_t columns, uint32_t rows, struct buf *to)
{
    return ssh_wire_put_u32(to, columns) < 0 ? -1 : ssh_wire_put_u32(to, rows);
}

int ssh_window_get(struct slice s, uint32_t *columns, uint32_t *rows)
{
    return ssh_wire_u32(&s, columns) < 0 || ssh_wire_u32(&s, rows) < 0 || s.n != 0 ||
                   *columns > WINDOW_MAX || *rows > WINDOW_MAX
               ? -1
               : 0;
}
