/* A message head, parsed: what an exchange carries whatever protocol version it came in.
 *
 * All slices point into storage that the head owns (one copy of the raw bytes, names lowered in
 * place) or into constants; http_head_set adds storage of its own. A head never holds a secret in
 * the gate; in the injector its storage is wiped on release. */
#ifndef DURWARD_HTTP_HEAD_H
#define DURWARD_HTTP_HEAD_H

#include "authority.h"
#include "buf.h"
#include "slice.h"

enum { HEAD_FIELDS_MAX = 512 };

enum target_form { TARGET_ORIGIN = 1, TARGET_ABSOLUTE, TARGET_AUTHORITY, TARGET_ASTERISK };

enum body_kind {
    BODY_NONE = 0,
    BODY_LENGTH, /* length bytes */
    BODY_CHUNKED,
    BODY_CLOSE,  /* replies only: until the connection ends */
    BODY_TUNNEL, /* after an upgrade that both sides want: bytes both ways until either ends */
};

/* Another protocol asked for (request) or begun (reply). A WebSocket is a GET in every HTTP
 * version: RFC 6455, and RFC 8441 whose extended CONNECT is read as one. */
enum upgrade { UPGRADE_NONE = 0, UPGRADE_WEBSOCKET };

/* What was mended of a reply's head: a blank in front of a colon, a length that was said again, a
 * coding of a reply without a body. */
enum repair { REPAIR_NAME = 1, REPAIR_LENGTH = 2, REPAIR_CODING = 4 };

/* Why a head is refused: the status for the sandbox and a constant code for audit and answer. */
struct refusal {
    unsigned status;
    const char *code;
};

struct field {
    struct slice name; /* lower case */
    struct slice value;
};

struct head {
    /* request */
    struct slice method;
    enum target_form form;
    struct slice target; /* as received */
    struct slice path;   /* origin and absolute form: from "/" to before "?" */
    struct slice query;  /* without "?"; has_query tells an empty one from none */
    bool has_query;
    bool respelled;                /* path or query hold escapes of ours (target.h) */
    struct slice target_authority; /* absolute and authority form */
    bool target_https;             /* absolute form: its scheme, which is http else */
    /* reply */
    unsigned status;
    /* both */
    unsigned minor; /* HTTP/1.minor */
    size_t n;       /* fields */
    enum body_kind body;
    uint64_t length;
    bool keep_alive;
    unsigned repaired; /* reply: enum repair; see http1_repair_reply */
    bool expect_continue;
    bool te_trailers; /* request: who asks can take trailers (TE: trailers, or HTTP/2) */
    bool knows_http2; /* request in clear: it came as HTTP/2 by prior knowledge, and leaves so */
    enum upgrade upgrade;
    /* storage */
    char *raw; /* owned */
    size_t raw_n;
    char **extra; /* owned strings of http_head_set */
    size_t n_extra;
    /* last: large, and neither cleared nor moved beyond n */
    struct field fields[HEAD_FIELDS_MAX];
};

void http_head_init(struct head *h);
void http_head_free(struct head *h); /* wipes */
/* First field of that (lower-case) name, or NULL. */
const struct field *http_head_find(const struct head *h, const char *name);
size_t http_head_count(const struct head *h, const char *name);
/* Remove every field of that name; returns how many. */
size_t http_head_remove(struct head *h, const char *name);
/* Append a field; the value is copied. name must be a constant or owned by something that outlives
 * the head. -1 when full or out of memory. */
int http_head_add(struct head *h, const char *name, struct slice value) WUNUSED;
/* remove + add */
int http_head_set(struct head *h, const char *name, struct slice value) WUNUSED;
/* Another path or query; the value is copied. */
int http_head_set_path(struct head *h, struct slice path) WUNUSED;
int http_head_set_query(struct head *h, struct slice query, bool has) WUNUSED;
/* What from holds is to's; from is as after http_head_init. to must hold nothing. */
void http_head_move(struct head *to, struct head *from);
/* Copy of method, target, status, fields and framing into fresh storage. */
int http_head_copy(struct head *to, const struct head *from) WUNUSED;

#endif
