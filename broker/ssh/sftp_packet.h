/* SFTP version 3 (draft-ietf-secsh-filexfer-02) with OpenSSH's extensions: what a client asks and a
 * server replies, read whole and written anew. What stands nowhere in these structs goes nowhere.
 */
#ifndef DURWARD_SFTP_PACKET_H
#define DURWARD_SFTP_PACKET_H

#include "buf.h"

enum {
    SFTP_VERSION = 3,
    SFTP_DATA_MAX = 64 * 1024,                   /* in one packet */
    SFTP_REQUEST_MAX = SFTP_DATA_MAX + 4096,     /* of a client's, without its length */
    SFTP_REPLY_MAX = 256 * 1024,                 /* of a server's */
    SFTP_SPACE = 2 * SFTP_REPLY_MAX + 32 * 1024, /* for one more, and what came behind it */
    SFTP_HANDLE_MAX = 256,                       /* bytes of a server's handle */
    SFTP_TEXT_MAX = 4096,                        /* of a name, a path, a message */
    SFTP_SLOTS = 64,                             /* requests that wait for their replies */
};

enum sftp_type {
    SFTP_INIT = 1,
    SFTP_VERSION_IS = 2,
    SFTP_STATUS = 101,
    SFTP_HANDLE,
    SFTP_DATA,
    SFTP_NAME,
    SFTP_ATTRS,
    SFTP_EXTENDED = 200,
    SFTP_EXTENDED_REPLY,
};

enum sftp_status {
    SFTP_OK = 0,
    SFTP_EOF,
    SFTP_NO_SUCH_FILE,
    SFTP_PERMISSION_DENIED,
    SFTP_FAILURE,
    SFTP_BAD_MESSAGE,
    SFTP_NO_CONNECTION,
    SFTP_CONNECTION_LOST,
    SFTP_OP_UNSUPPORTED,
};

/* What is asked: up to SFTP_SYMLINK the numbers of the protocol, then extensions, which have a name
 * there; SFTP_OTHER: one that we do not know. */
enum sftp_op {
    SFTP_OPEN = 3,
    SFTP_CLOSE,
    SFTP_READ,
    SFTP_WRITE,
    SFTP_LSTAT,
    SFTP_FSTAT,
    SFTP_SETSTAT,
    SFTP_FSETSTAT,
    SFTP_OPENDIR,
    SFTP_READDIR,
    SFTP_REMOVE,
    SFTP_MKDIR,
    SFTP_RMDIR,
    SFTP_REALPATH,
    SFTP_STAT,
    SFTP_RENAME,
    SFTP_READLINK,
    SFTP_SYMLINK,
    SFTP_POSIX_RENAME,
    SFTP_STATVFS,
    SFTP_FSTATVFS,
    SFTP_HARDLINK,
    SFTP_FSYNC,
    SFTP_LSETSTAT,
    SFTP_LIMITS,
    SFTP_EXPAND_PATH,
    SFTP_OTHER,
    SFTP_OPS,
    SFTP_EXTENSION_FIRST = SFTP_POSIX_RENAME
};

/* Flags of SFTP_OPEN, and of attributes. */
enum {
    SFTP_OPEN_READ = 1,
    SFTP_OPEN_WRITE = 2,
    SFTP_OPEN_APPEND = 4,
    SFTP_OPEN_CREATE = 8,
    SFTP_OPEN_TRUNCATE = 16,
    SFTP_OPEN_EXCLUSIVE = 32,
    SFTP_OPEN_ALL = 63,
    SFTP_HAS_SIZE = 1,
    SFTP_HAS_OWNER = 2,
    SFTP_HAS_MODE = 4,
    SFTP_HAS_TIMES = 8,
};

struct sftp_attrs {
    uint32_t flags;
    uint64_t size;
    uint32_t uid, gid, mode, atime, mtime;
};

struct sftp_request {
    enum sftp_op op;
    uint32_t id;
    struct slice path, to; /* to: of a rename or a link, the new name */
    struct slice handle;
    uint64_t offset;
    uint32_t n; /* of SFTP_READ */
    struct slice data;
    uint32_t flags; /* of SFTP_OPEN */
    struct sftp_attrs attrs;
};

enum { SFTP_STATVFS_WORDS = 11 };

struct sftp_reply {
    enum sftp_type type; /* STATUS, HANDLE, DATA, NAME, ATTRS, EXTENDED_REPLY */
    uint32_t id, status;
    struct slice text; /* of a status: the message; of a handle or data: that */
    uint32_t n_names;
    struct slice names; /* as they stand in the packet, each of them whole: sftp_name_next */
    struct sftp_attrs attrs;
    uint64_t words[SFTP_STATVFS_WORDS]; /* of a file system */
};

struct sftp_name {
    struct slice name, line;
    struct sftp_attrs attrs;
};

/* The next packet's body in what came, without its length. 1: *ret, and *n bytes are to be drained
 * with it; 0: there is more to come; -1: one that is empty or longer than max. */
int sftp_packet_next(struct slice came, size_t max, struct slice *ret, size_t *n);

/* SFTP_INIT or SFTP_VERSION_IS. extensions: of a server's, those that we know, 1 << op. -1: it is
 * another packet, or of a version below 3. */
int sftp_hello_read(struct slice body, enum sftp_type type, uint32_t *extensions);
/* With its length, as all that is written here. */
int sftp_init_write(struct buf *to) WUNUSED;
int sftp_hello_write(uint32_t extensions, struct buf *to) WUNUSED;
/* The reply to SFTP_LIMITS: ours. */
int sftp_limits_write(uint32_t id, struct buf *to) WUNUSED;

/* Slices lie in body. -1: it has no form that its type allows: nothing behind it can be read. */
int sftp_request_read(struct slice body, struct sftp_request *ret) WUNUSED;
int sftp_request_write(const struct sftp_request *q, struct buf *to) WUNUSED;
int sftp_reply_read(struct slice body, struct sftp_reply *ret) WUNUSED;
int sftp_reply_write(const struct sftp_reply *r, struct buf *to) WUNUSED;
/* Is it one that such a request has? */
bool sftp_reply_fits(const struct sftp_reply *r, enum sftp_op op);
int sftp_status_write(uint32_t id, enum sftp_status status, const char *text,
                      struct buf *to) WUNUSED;
bool sftp_name_next(struct slice *names, struct sftp_name *ret);
int sftp_name_write(const struct sftp_name *n, struct buf *to) WUNUSED;

#endif
