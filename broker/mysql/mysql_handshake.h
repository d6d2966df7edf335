/* The packets of a login: a greeting, an answer to it, a change of the method; and the facts of a
 * session, what a front says of it to its back. */
#ifndef DURWARD_MYSQL_HANDSHAKE_H
#define DURWARD_MYSQL_HANDSHAKE_H

#include "mysql_packet.h"

enum mysql_capability {
    MYSQL_LONG_PASSWORD = 1, /* not set, it is MariaDB's, which has more of its own */
    MYSQL_FOUND_ROWS = 2,
    MYSQL_LONG_FLAG = 4,
    MYSQL_CONNECT_WITH_DB = 8,
    MYSQL_LOCAL_FILES = 0x80,
    MYSQL_PROTOCOL_41 = 0x200,
    MYSQL_INTERACTIVE = 0x400,
    MYSQL_SSL = 0x800,
    MYSQL_TRANSACTIONS = 0x2000,
    MYSQL_SECURE_CONNECTION = 0x8000,
    MYSQL_MULTI_STATEMENTS = 0x10000,
    MYSQL_MULTI_RESULTS = 0x20000,
    MYSQL_PS_MULTI_RESULTS = 0x40000,
    MYSQL_PLUGIN_AUTH = 0x80000,
    MYSQL_CONNECT_ATTRS = 0x100000,
    MYSQL_PLUGIN_AUTH_LENENC = 0x200000,
};

enum {
    MYSQL_PROTOCOL = 10,
    MYSQL_USER_MAX = 63,
    MYSQL_NAME_MAX = 64, /* of a database */
    MYSQL_NONCE_MAX = 20,
    MYSQL_SSL_REQUEST = 32, /* bytes of an answer that asks for TLS */
    MYSQL_UTF8MB4 = 45,     /* utf8mb4_general_ci */
    /* All that a session may have; compression, session tracking, query attributes and the forms
     * without EOF are not among them. */
    MYSQL_ALWAYS = MYSQL_LONG_PASSWORD | MYSQL_LONG_FLAG | MYSQL_PROTOCOL_41 | MYSQL_TRANSACTIONS |
                   MYSQL_SECURE_CONNECTION | MYSQL_MULTI_RESULTS | MYSQL_PS_MULTI_RESULTS |
                   MYSQL_PLUGIN_AUTH,
    MYSQL_CHOSEN =
        MYSQL_FOUND_ROWS | MYSQL_INTERACTIVE | MYSQL_LOCAL_FILES | MYSQL_MULTI_STATEMENTS,
};

#define MYSQL_PLUGIN_NATIVE  "mysql_native_password"
#define MYSQL_PLUGIN_SHA2    "caching_sha2_password"
#define MYSQL_PLUGIN_ED25519 "client_ed25519"

struct mysql_greeting {
    uint32_t id, capabilities;
    struct slice version, plugin;
    char nonce[MYSQL_NONCE_MAX];
};

int mysql_greeting_read(struct slice body, struct mysql_greeting *ret) WUNUSED;
int mysql_greeting_put(struct buf *out, const struct mysql_greeting *g) WUNUSED;

/* Slices lie in the packet. */
struct mysql_answer {
    uint32_t capabilities;
    uint8_t charset;
    bool asks_tls; /* it ends before the user */
    struct slice user, proof, database, plugin;
};

/* body: of a whole packet. -1: it is none, or has more behind it. */
int mysql_answer_read(struct slice body, struct mysql_answer *ret) WUNUSED;
/* The packet, with its number. */
int mysql_answer_put(struct buf *out, unsigned char number, const struct mysql_answer *a) WUNUSED;

/* AuthSwitchRequest: "plugin" and data. */
int mysql_switch_read(struct slice body, struct slice *plugin, struct slice *data) WUNUSED;
int mysql_switch_put(struct buf *out, unsigned char number, const char *plugin,
                     const char nonce[MYSQL_NONCE_MAX]) WUNUSED;

/* A character set in which each byte below 128 stands for itself wherever it is: those of UTF-8,
 * Latin-1, ASCII and bytes. By number, and by name. */
bool mysql_charset_ok(uint8_t number);
bool mysql_charset_name_ok(struct slice name);

/* ---- facts ---- */

struct mysql_facts {
    uint32_t capabilities; /* of MYSQL_CHOSEN */
    uint8_t charset;
    struct slice database; /* n 0: none */
};

int mysql_facts_put(struct buf *out, const struct mysql_facts *f) WUNUSED;
int mysql_facts_read(struct slice in, struct mysql_facts *ret) WUNUSED;

#endif
