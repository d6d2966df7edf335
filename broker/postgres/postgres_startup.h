/* The first packet of a connection, which has no type: a startup, a wish for encryption, or a
 * request to cancel; and the settings that a startup or a SET may name. */
#ifndef DURWARD_POSTGRES_STARTUP_H
#define DURWARD_POSTGRES_STARTUP_H

#include "buf.h"
#include "err.h"

enum {
    POSTGRES_STARTUP_MAX = 10000,  /* as PostgreSQL's own */
    POSTGRES_NAME_MAX = 63,        /* of a user, a database, a setting */
    POSTGRES_SETTINGS_MAX = 32,    /* of a startup */
    POSTGRES_PROTOCOL_3 = 3 << 16, /* 3.0 */
    POSTGRES_CANCEL = 80877102,
    POSTGRES_SSL = 80877103,
    POSTGRES_GSS = 80877104,
};

struct postgres_cancel {
    uint32_t process, key;
};

struct postgres_setting {
    struct slice name, value;
};

/* Slices lie in the packet. */
struct postgres_startup {
    uint32_t code; /* one of the three requests, else a protocol: major 3, any minor */
    struct postgres_cancel cancel;
    struct slice user, database;                             /* p NULL: not said */
    struct postgres_setting settings[POSTGRES_SETTINGS_MAX]; /* all others */
    size_t n;
    bool extensions; /* it asks for a newer minor or for options of the protocol ("_pq_.") */
};

/* How long the packet is whose first bytes these are: 0: more is needed (at least 8 bytes), -1: it
 * is none. */
ssize_t postgres_startup_length(struct slice in) WUNUSED;
/* The whole packet. -1 with err: it is none, or is ambiguous (a name twice). */
int postgres_startup_read(struct slice packet, struct postgres_startup *ret,
                          struct err *err) WUNUSED;

/* Settings of one `options` text ("-c name=value", "--name=value", blanks escaped by backslash)
 * are appended to what is there as if each had been said by itself; their texts go into `words`.
 * -1 with err: anything else is in it. */
int postgres_options_read(struct slice options, struct buf *words, struct postgres_startup *ret,
                          struct err *err) WUNUSED;

/* What a setting decides that is not the session's own matter. Names are compared as the server
 * does, without regard to case. */
enum postgres_setting_kind {
    POSTGRES_SETTING_FREE = 0,
    POSTGRES_SETTING_ROLE,      /* who somebody is */
    POSTGRES_SETTING_READ_ONLY, /* what may be written */
    POSTGRES_SETTING_ENCODING,  /* of the client; good when it is UTF-8 */
    POSTGRES_SETTING_READING,   /* how the server reads a statement, or what code it loads */
};
enum postgres_setting_kind postgres_setting_kind(struct slice name);
/* UTF-8, by any spelling: of the name of an encoding the server reads letters and digits alone. */
bool postgres_encoding_ok(struct slice value);
/* Of POSTGRES_SETTING_READING: it is what each session has. */
bool postgres_reading_ok(struct slice name, struct slice value);
/* A boolean as the server reads one, who takes what begins a word: 1, 0; -1: it is none. */
int postgres_bool(struct slice value);

/* Writing: begin, texts, end. -1: out is full. */
int postgres_startup_begin(struct buf *out) WUNUSED;
int postgres_startup_put(struct buf *out, struct slice name, struct slice value) WUNUSED;
int postgres_startup_end(struct buf *out, size_t from) WUNUSED;   /* from: where begin was */
int postgres_request_put(struct buf *out, uint32_t code) WUNUSED; /* SSL */
int postgres_cancel_put(struct buf *out, struct postgres_cancel c) WUNUSED;

#endif
