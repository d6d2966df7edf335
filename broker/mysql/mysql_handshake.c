/* Packets of a login, read strictly and written. */
#include "mysql_handshake.h"

#include <string.h>

enum { FILLER = 10, FIRST_PART = 8, STATUS_AUTOCOMMIT = 2 };

/* ---- the greeting ---- */

int mysql_greeting_read(struct slice body, struct mysql_greeting *ret)
{
    struct slice one, first, second, rest;
    uint16_t low, high, status;
    memset(ret, 0, sizeof *ret);
    if (mysql_take_bytes(&body, 1, &one) < 0 || one.p[0] != MYSQL_PROTOCOL ||
        mysql_take_text(&body, &ret->version) < 0 || mysql_take_u32(&body, &ret->id) < 0 ||
        mysql_take_bytes(&body, FIRST_PART, &first) < 0 || mysql_take_bytes(&body, 1, &one) < 0 ||
        mysql_take_u16(&body, &low) < 0 || mysql_take_bytes(&body, 1, &one) < 0 ||
        mysql_take_u16(&body, &status) < 0 || mysql_take_u16(&body, &high) < 0 ||
        mysql_take_bytes(&body, 1, &one) < 0 || mysql_take_bytes(&body, FILLER, &rest) < 0 ||
        mysql_take_bytes(&body, MYSQL_NONCE_MAX - FIRST_PART, &second) < 0 ||
        mysql_take_bytes(&body, 1, &one) < 0 || one.p[0] != 0)
        return -1;
    ret->capabilities = low | (uint32_t)high << 16;
    memcpy(ret->nonce, first.p, first.n);
    memcpy(ret->nonce + first.n, second.p, second.n);
    if (!(ret->capabilities & MYSQL_PLUGIN_AUTH))
        ret->plugin = SLICE(MYSQL_PLUGIN_NATIVE);
    else if (mysql_take_text(&body, &ret->plugin) < 0)
        ret->plugin = body; /* some end it with nothing */
    return 0;
}

int mysql_greeting_put(struct buf *out, const struct mysql_greeting *g)
{
    const unsigned char flags[] = {(unsigned char)g->capabilities,
                                   (unsigned char)(g->capabilities >> 8),
                                   MYSQL_UTF8MB4,
                                   STATUS_AUTOCOMMIT,
                                   0,
                                   (unsigned char)(g->capabilities >> 16),
                                   (unsigned char)(g->capabilities >> 24),
                                   MYSQL_NONCE_MAX + 1},
                        number = MYSQL_PROTOCOL;
    static const char zeros[FILLER] = {0};
    struct buf b;
    buf_init(&b, 512);
    int r = buf_append(&b, &number, 1) < 0 || buf_append_slice(&b, g->version) < 0 ||
                    buf_append(&b, "", 1) < 0 || mysql_put_u32(&b, g->id) < 0 ||
                    buf_append(&b, g->nonce, FIRST_PART) < 0 || buf_append(&b, "", 1) < 0 ||
                    buf_append(&b, flags, sizeof flags) < 0 ||
                    buf_append(&b, zeros, sizeof zeros) < 0 ||
                    buf_append(&b, g->nonce + FIRST_PART, MYSQL_NONCE_MAX - FIRST_PART) < 0 ||
                    buf_append(&b, "", 1) < 0 || buf_append_slice(&b, g->plugin) < 0 ||
                    buf_append(&b, "", 1) < 0
                ? -1
                : mysql_put(out, 0, buf_slice(&b));
    buf_free(&b);
    return r;
}

/* ---- the answer ---- */

static int read_proof(struct slice *body, uint32_t capabilities, struct slice *ret)
{
    struct slice n;
    if (capabilities & MYSQL_PLUGIN_AUTH_LENENC)
        return mysql_take_counted(body, ret);
    if (!(capabilities & MYSQL_SECURE_CONNECTION))
        return mysql_take_text(body, ret);
    return mysql_take_bytes(body, 1, &n) < 0 ? -1
                                             : mysql_take_bytes(body, (unsigned char)n.p[0], ret);
}

int mysql_answer_read(struct slice body, struct mysql_answer *ret)
{
    struct slice head, attributes;
    uint32_t longest;
    memset(ret, 0, sizeof *ret);
    if (mysql_take_u32(&body, &ret->capabilities) < 0 || !(ret->capabilities & MYSQL_PROTOCOL_41) ||
        mysql_take_u32(&body, &longest) < 0 || mysql_take_bytes(&body, 24, &head) < 0)
        return -1;
    ret->charset = (uint8_t)head.p[0];
    if (body.n == 0 && ret->capabilities & MYSQL_SSL) {
        ret->asks_tls = true;
        return 0;
    }
    if (mysql_take_text(&body, &ret->user) < 0 ||
        read_proof(&body, ret->capabilities, &ret->proof) < 0)
        return -1;
    if (ret->capabilities & MYSQL_CONNECT_WITH_DB && body.n > 0 &&
        mysql_take_text(&body, &ret->database) < 0)
        return -1;
    if (ret->capabilities & MYSQL_PLUGIN_AUTH && body.n > 0 &&
        mysql_take_text(&body, &ret->plugin) < 0)
        return -1;
    if (ret->capabilities & MYSQL_CONNECT_ATTRS && body.n > 0 &&
        mysql_take_counted(&body, &attributes) < 0)
        return -1;
    return body.n > 1 || (body.n == 1 && body.p[0] != 0) ? -1 : 0;
}

/* What stands between head and end. */
static int put_body(struct buf *b, const struct mysql_answer *a)
{
    static const char zeros[23] = {0};
    const unsigned char n = (unsigned char)a->proof.n;
    if (mysql_put_u32(b, a->capabilities) < 0 || mysql_put_u32(b, MYSQL_FULL) < 0 ||
        buf_append(b, &a->charset, 1) < 0 || buf_append(b, zeros, sizeof zeros) < 0)
        return -1;
    if (a->asks_tls)
        return 0;
    return buf_append_slice(b, a->user) < 0 || buf_append(b, "", 1) < 0 || a->proof.n > 250 ||
                   buf_append(b, &n, 1) < 0 || buf_append_slice(b, a->proof) < 0 ||
                   (a->capabilities & MYSQL_CONNECT_WITH_DB &&
                    (buf_append_slice(b, a->database) < 0 || buf_append(b, "", 1) < 0)) ||
                   buf_append_slice(b, a->plugin) < 0 || buf_append(b, "", 1) < 0
               ? -1
               : 0;
}

int mysql_answer_put(struct buf *out, unsigned char number, const struct mysql_answer *a)
{
    struct buf b;
    buf_init_wiped(&b, 1024);
    int r = put_body(&b, a) < 0 ? -1 : mysql_put(out, number, buf_slice(&b));
    buf_free(&b);
    return r;
}

/* ---- another method ---- */

int mysql_switch_read(struct slice body, struct slice *plugin, struct slice *data)
{
    struct slice one;
    if (mysql_take_bytes(&body, 1, &one) < 0 || (unsigned char)one.p[0] != 0xfe ||
        mysql_take_text(&body, plugin) < 0)
        return -1;
    if (body.n > 0 && body.p[body.n - 1] == 0 &&
        (body.n == MYSQL_NONCE_MAX + 1 || body.n == MYSQL_FIRST + 1))
        body.n--; /* some end it */
    *data = body;
    return 0;
}

int mysql_switch_put(struct buf *out, unsigned char number, const char *plugin,
                     const char nonce[MYSQL_NONCE_MAX])
{
    struct buf b;
    buf_init(&b, 128);
    int r = buf_append(&b, "\xfe", 1) < 0 || buf_append(&b, plugin, strlen(plugin) + 1) < 0 ||
                    buf_append(&b, nonce, MYSQL_NONCE_MAX) < 0 || buf_append(&b, "", 1) < 0
                ? -1
                : mysql_put(out, number, buf_slice(&b));
    buf_free(&b);
    return r;
}

/* ---- character sets ---- */

bool mysql_charset_ok(uint8_t number)
{
    static const uint8_t singles[] = {5,  8,  15, 31, 47, 48,  49, 94,
                                      11, 65, 63, 33, 83, 223, 45, 46};
    for (size_t i = 0; i < sizeof singles; i++)
        if (singles[i] == number)
            return true;
    return (number >= 192 && number <= 215) || (number >= 224 && number <= 247) || number == 255;
}

bool mysql_charset_name_ok(struct slice name)
{
    static const char *const names[] = {"utf8", "utf8mb3", "utf8mb4", "latin1", "ascii", "binary"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_ieq_str(name, names[i]))
            return true;
    return false;
}

/* ---- facts ---- */

int mysql_facts_put(struct buf *out, const struct mysql_facts *f)
{
    return mysql_put_u32(out, f->capabilities) < 0 || buf_append(out, &f->charset, 1) < 0
               ? -1
               : buf_append_slice(out, f->database);
}

int mysql_facts_read(struct slice in, struct mysql_facts *ret)
{
    struct slice charset;
    if (mysql_take_u32(&in, &ret->capabilities) < 0 || mysql_take_bytes(&in, 1, &charset) < 0 ||
        ret->capabilities & ~(uint32_t)MYSQL_CHOSEN || in.n > MYSQL_NAME_MAX)
        return -1;
    ret->charset = (uint8_t)charset.p[0];
    ret->database = in;
    return mysql_charset_ok(ret->charset) ? 0 : -1;
}
