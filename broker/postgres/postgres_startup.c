/* Reads and writes first packets; which settings a session may make. */
#include "postgres_startup.h"

#include "postgres_message.h"

#include <string.h>

enum { HEAD = 8 }; /* length and code */

ssize_t postgres_startup_length(struct slice in)
{
    uint32_t length, code;
    if (in.n < HEAD)
        return 0;
    if (postgres_take_u32(&in, &length) < 0 || postgres_take_u32(&in, &code) < 0)
        return -1;
    bool request = code == POSTGRES_SSL || code == POSTGRES_GSS;
    if (length < HEAD || length > POSTGRES_STARTUP_MAX || (request && length != HEAD) ||
        (code == POSTGRES_CANCEL && length != HEAD + 8))
        return -1;
    return (ssize_t)length;
}

static int put_setting(struct postgres_startup *s, struct slice name, struct slice value,
                       struct err *err)
{
    if (name.n == 0 || name.n > POSTGRES_NAME_MAX)
        return err_set(err, ERR_PARSE, "a setting without a name, or with too long a one");
    for (size_t i = 0; i < s->n; i++)
        if (slice_ieq(s->settings[i].name, name))
            return err_set(err, ERR_PARSE, "'%.*s' is said twice", SL(name));
    if (s->n == POSTGRES_SETTINGS_MAX)
        return err_set(err, ERR_LIMIT, "more than %d settings", POSTGRES_SETTINGS_MAX);
    s->settings[s->n++] = (struct postgres_setting){name, value};
    return 0;
}

static int put_name(struct slice *to, const char *what, struct slice value, struct err *err)
{
    if (to->p)
        return err_set(err, ERR_PARSE, "'%s' is said twice", what);
    *to = value;
    return 0;
}

static int read_settings(struct slice in, struct postgres_startup *s, struct err *err)
{
    struct slice name, value;
    while (in.n > 0 && *in.p != 0) {
        int r;
        if (postgres_take_text(&in, &name) < 0 || postgres_take_text(&in, &value) < 0)
            return err_set(err, ERR_PARSE, "a startup packet that ends early");
        if (slice_starts(name, SLICE("_pq_."))) {
            s->extensions = true;
            r = 0;
        } else if (slice_eq_str(name, "user")) {
            r = put_name(&s->user, "user", value, err);
        } else if (slice_eq_str(name, "database")) {
            r = put_name(&s->database, "database", value, err);
        } else {
            r = put_setting(s, name, value, err);
        }
        if (r < 0)
            return -1;
    }
    return in.n == 1 ? 0 : err_set(err, ERR_PARSE, "a startup packet without its end");
}

int postgres_startup_read(struct slice packet, struct postgres_startup *ret, struct err *err)
{
    uint32_t length;
    memset(ret, 0, sizeof *ret);
    if (postgres_startup_length(packet) != (ssize_t)packet.n ||
        postgres_take_u32(&packet, &length) < 0 || postgres_take_u32(&packet, &ret->code) < 0)
        return err_set(err, ERR_PARSE, "not a startup packet");
    if (ret->code == POSTGRES_SSL || ret->code == POSTGRES_GSS)
        return 0;
    if (ret->code == POSTGRES_CANCEL)
        return postgres_take_u32(&packet, &ret->cancel.process) < 0 ||
                       postgres_take_u32(&packet, &ret->cancel.key) < 0
                   ? err_set(err, ERR_PARSE, "not a request to cancel")
                   : 0;
    if (ret->code >> 16 != POSTGRES_PROTOCOL_3 >> 16)
        return err_set(err, ERR_PARSE, "protocol %u.%u; 3.0 is spoken here", ret->code >> 16,
                       ret->code & 0xffff);
    ret->extensions = ret->code != POSTGRES_PROTOCOL_3;
    return read_settings(packet, ret, err);
}

/* ---- options ---- */

/* The next word of it, its escapes undone, in `words`. 1: there is one; 0: none is left. */
static int next_word(struct slice *in, struct buf *words, struct slice *ret)
{
    size_t from = buf_len(words);
    while (in->n > 0 && (*in->p == ' ' || *in->p == '\t'))
        in->p++, in->n--;
    if (in->n == 0)
        return 0;
    while (in->n > 0 && *in->p != ' ' && *in->p != '\t') {
        if (*in->p == '\\' && in->n > 1)
            in->p++, in->n--;
        if (buf_append(words, in->p, 1) < 0)
            return -1;
        in->p++, in->n--;
    }
    *ret = (struct slice){(const char *)buf_data(words) + from, buf_len(words) - from};
    return 1;
}

int postgres_options_read(struct slice options, struct buf *words, struct postgres_startup *ret,
                          struct err *err)
{
    struct slice word;
    int more;
    if (options.n > 0 &&
        buf_reserve(words, options.n) == NULL) /* so that nothing moves while it is read */
        return err_set(err, ERR_LIMIT, "'options' is too long");
    while ((more = next_word(&options, words, &word)) > 0) {
        if (slice_eq_str(word, "-c")) {
            if (next_word(&options, words, &word) <= 0)
                return err_set(err, ERR_PARSE, "'options' ends after -c");
        } else if (slice_starts(word, SLICE("-c")) || slice_starts(word, SLICE("--"))) {
            word.p += 2;
            word.n -= 2;
        } else {
            return err_set(err, ERR_PARSE, "'options' holds more than settings");
        }
        ssize_t at = slice_find(word, '=');
        if (at < 0)
            return err_set(err, ERR_PARSE, "'options' holds a setting without a value");
        char *name = (char *)buf_data(words) + (word.p - (const char *)buf_data(words));
        for (ssize_t i = 0; i < at; i++)
            if (name[i] == '-') /* the server takes either */
                name[i] = '_';
        struct slice value = {word.p + at + 1, word.n - (size_t)at - 1};
        if (put_setting(ret, (struct slice){word.p, (size_t)at}, value, err) < 0)
            return -1;
    }
    return more < 0 ? err_set(err, ERR_LIMIT, "'options' is too long") : 0;
}

/* ---- what may be set ---- */

static const struct {
    const char *name;
    enum postgres_setting_kind kind;
} bound_settings[] = {
    {"role", POSTGRES_SETTING_ROLE},
    {"session_authorization", POSTGRES_SETTING_ROLE},
    {"is_superuser", POSTGRES_SETTING_ROLE},
    {"transaction_read_only", POSTGRES_SETTING_READ_ONLY},
    {"default_transaction_read_only", POSTGRES_SETTING_READ_ONLY},
    {"client_encoding", POSTGRES_SETTING_ENCODING},
    {"standard_conforming_strings", POSTGRES_SETTING_READING},
    {"backslash_quote", POSTGRES_SETTING_READING},
    {"server_encoding", POSTGRES_SETTING_READING},
    {"session_replication_role", POSTGRES_SETTING_READING},
    {"replication", POSTGRES_SETTING_READING},
    {"local_preload_libraries", POSTGRES_SETTING_READING},
    {"session_preload_libraries", POSTGRES_SETTING_READING},
    {"dynamic_library_path", POSTGRES_SETTING_READING},
    {"lo_compat_privileges", POSTGRES_SETTING_READING},
    {"allow_system_table_mods", POSTGRES_SETTING_READING},
};

enum postgres_setting_kind postgres_setting_kind(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(bound_settings); i++)
        if (slice_ieq_str(name, bound_settings[i].name))
            return bound_settings[i].kind;
    return POSTGRES_SETTING_FREE;
}

bool postgres_encoding_ok(struct slice v)
{
    char name[sizeof "unicode"];
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++) {
        if (!ascii_is_alnum(v.p[i]))
            continue;
        if (n == sizeof name)
            return false;
        name[n++] = v.p[i];
    }
    struct slice s = {name, n};
    return slice_ieq_str(s, "utf8") || slice_ieq_str(s, "unicode");
}

int postgres_bool(struct slice v)
{
    static const struct {
        const char *word;
        size_t least; /* letters that tell it from the others */
        int value;
    } words[] = {{"true", 1, 1}, {"false", 1, 0}, {"yes", 1, 1}, {"no", 1, 0},
                 {"on", 2, 1},   {"off", 2, 0},   {"1", 1, 1},   {"0", 1, 0}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (v.n >= words[i].least && v.n <= strlen(words[i].word) &&
            slice_ieq(v, (struct slice){words[i].word, v.n}))
            return words[i].value;
    return -1;
}

bool postgres_reading_ok(struct slice name, struct slice value)
{
    return (slice_ieq_str(name, "standard_conforming_strings") && postgres_bool(value) == 1) ||
           (slice_ieq_str(name, "replication") && postgres_bool(value) == 0);
}

/* ---- writing ---- */

int postgres_startup_begin(struct buf *out)
{
    return postgres_put_u32(out, 0) < 0 ? -1 : postgres_put_u32(out, POSTGRES_PROTOCOL_3);
}

int postgres_startup_put(struct buf *out, struct slice name, struct slice value)
{
    return postgres_put_text(out, name) < 0 ? -1 : postgres_put_text(out, value);
}

int postgres_startup_end(struct buf *out, size_t from)
{
    if (buf_append(out, "", 1) < 0)
        return -1;
    size_t n = buf_len(out) - from;
    if (n > POSTGRES_STARTUP_MAX)
        return -1;
    unsigned char *at = buf_data(out) + from;
    for (unsigned i = 0; i < 4; i++)
        at[i] = (unsigned char)(n >> (24 - 8 * i));
    return 0;
}

int postgres_request_put(struct buf *out, uint32_t code)
{
    return postgres_put_u32(out, HEAD) < 0 ? -1 : postgres_put_u32(out, code);
}

int postgres_cancel_put(struct buf *out, struct postgres_cancel c)
{
    return postgres_put_u32(out, HEAD + 8) < 0 || postgres_put_u32(out, POSTGRES_CANCEL) < 0 ||
                   postgres_put_u32(out, c.process) < 0
               ? -1
               : postgres_put_u32(out, c.key);
}
