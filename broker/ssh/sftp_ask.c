/* Says what SFTP's requests are to the rules of files. */
#include "sftp_ask.h"

#include <string.h>

static const struct {
    enum sftp_op op;
    enum ssh_file_verb verb;
    bool follows, recorded;
} table[] = {
    {SFTP_LSTAT, SSH_FILE_SEE, false, false},
    {SFTP_STAT, SSH_FILE_SEE, true, false},
    {SFTP_STATVFS, SSH_FILE_SEE, true, false},
    {SFTP_REALPATH, SSH_FILE_SEE, true, false},
    {SFTP_OPENDIR, SSH_FILE_LIST, true, true},
    {SFTP_READLINK, SSH_FILE_READ_LINK, false, false},
    {SFTP_SETSTAT, SSH_FILE_SET, true, true},
    {SFTP_LSETSTAT, SSH_FILE_SET, false, true},
    {SFTP_MKDIR, SSH_FILE_MAKE_DIRECTORY, false, true},
    {SFTP_REMOVE, SSH_FILE_DELETE, false, true},
    {SFTP_RMDIR, SSH_FILE_DELETE_DIRECTORY, false, true},
    {SFTP_RENAME, SSH_FILE_RENAME, false, true},
    {SFTP_POSIX_RENAME, SSH_FILE_RENAME, false, true},
    {SFTP_HARDLINK, SSH_FILE_LINK, false, true},
};

enum { WRITES = SFTP_OPEN_WRITE | SFTP_OPEN_APPEND | SFTP_OPEN_CREATE | SFTP_OPEN_TRUNCATE };

static enum ssh_file_verb opened(uint32_t flags)
{
    if (!(flags & WRITES))
        return SSH_FILE_GET;
    return flags & SFTP_OPEN_READ ? SSH_FILE_GET_PUT : SSH_FILE_PUT;
}

enum sftp_kind sftp_ask(const struct sftp_request *q, struct ssh_file_asked *ret)
{
    *ret = (struct ssh_file_asked){SSH_FILE_SEE, q->path, q->to};
    if (q->op == SFTP_OPEN) {
        ret->verb = opened(q->flags);
        return SFTP_KIND_PATH;
    }
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].op == q->op) {
            ret->verb = table[i].verb;
            return SFTP_KIND_PATH;
        }
    return q->handle.n > 0 ? SFTP_KIND_HANDLE : SFTP_KIND_NEVER;
}

bool sftp_follows(enum sftp_op op)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].op == op)
            return table[i].follows;
    return true;
}

bool sftp_is_recorded(enum sftp_op op)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].op == op)
            return table[i].recorded;
    return op == SFTP_OPEN;
}

bool sftp_attrs_settle(enum sftp_op op, struct sftp_attrs *a)
{
    bool made = op == SFTP_OPEN || op == SFTP_MKDIR;
    if (((a->flags & SFTP_HAS_OWNER) && !made) || ((a->flags & SFTP_HAS_MODE) && (a->mode & 06000)))
        return false;
    a->mode &= 01777;
    if (made)
        a->flags &= SFTP_HAS_MODE;
    return true;
}

bool sftp_path_settle(struct slice home, struct slice path, bool up, char to[SSH_FILE_PATH_MAX + 1])
{
    size_t n = 0;
    if (memchr(path.p, 0, path.n) != NULL)
        return false;
    if ((path.n == 0 || path.p[0] != '/') && home.n > 1) {
        memcpy(to, home.p, home.n);
        n = home.n;
    }
    for (size_t i = 0; i < path.n;) {
        const char *end = memchr(path.p + i, '/', path.n - i);
        struct slice name = {path.p + i, end ? (size_t)(end - path.p) - i : path.n - i};
        i += name.n + 1;
        if (slice_eq_str(name, "..")) {
            if (!up)
                return false;
            while (n > 0 && to[--n] != '/')
                ;
        } else if (name.n > 0 && !slice_eq_str(name, ".")) {
            if (n + 1 + name.n > SSH_FILE_PATH_MAX)
                return false;
            to[n++] = '/';
            memcpy(to + n, name.p, name.n);
            n += name.n;
        }
    }
    if (n == 0)
        to[n++] = '/';
    to[n] = 0;
    /* a server on Windows divides at a backslash too */
    return ssh_file_path_ok((struct slice){to, n});
}

const char *sftp_refusal_words(const char *code)
{
    static const struct {
        const char *code, *words;
    } words[] = {
        {"file", "durward: the policy does not allow this file: file"},
        {"file_path", "durward: a path has no '..' and at most 1024 bytes: file_path"},
        {"file_link", "durward: this leads to a file that the policy does not allow: file_link"},
        {"file_size", "durward: this is more than the policy leaves of a file: file_size"},
        {"file_attributes", "durward: owners and set-user-ID are not carried: file_attributes"},
        {"file_symlink", "durward: no symbolic links are made: file_symlink"},
        {"file_handle", "durward: it was not opened for this: file_handle"},
        {"audit_unwritable", "durward: it could not be recorded: audit_unwritable"},
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(words[i].code, code) == 0)
            return words[i].words;
    return code;
}
