/* From a login file that was looked at to secrets, rules and files of a sandbox: the texts of its
 * format with names, hosts and harmless values filled in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base64.h"
#include "login_tree.h"

enum { NAME_MAX_BYTES = 64 };

static void put(json_t *object, const char *key, json_t *value)
{
    if (value == NULL || json_object_set_new(object, key, value) < 0)
        abort(); /* memory is out */
}

/* ---- names ---- */

static void secret_name(const struct login_use *u, size_t entry, const char *part,
                        char to[NAME_MAX_BYTES + 1])
{
    if (u->of)
        snprintf(to, NAME_MAX_BYTES + 1, "login_%.8s_%.32s_%.10s", u->format->name, u->of, part);
    else if (login_entries(u->format))
        snprintf(to, NAME_MAX_BYTES + 1, "login_%.20s_%zu_%.20s", u->format->name, entry + 1, part);
    else
        snprintf(to, NAME_MAX_BYTES + 1, "login_%.20s_%.20s", u->format->name, part);
}

static void name_all(const struct login_use *u, size_t i, const json_t *parts, json_t *vars)
{
    char name[NAME_MAX_BYTES + 1];
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)parts, key, v)
    {
        secret_name(u, i, key, name);
        put(vars, key, json_string(name));
    }
}

/* What {{NAME}} stands for in the texts of one entry. New reference. */
static json_t *variables(const struct login_use *u, size_t i, const char *entry,
                         const json_t *parts)
{
    const json_t *root = u->format->root;
    json_t *vars = json_copy((json_t *)(uintptr_t)parts), *word;
    char name[NAME_MAX_BYTES + 1];
    size_t k;
    if (vars == NULL)
        abort(); /* memory is out */
    name_all(u, i, json_object_get(root, "secrets"), vars);
    name_all(u, i, json_object_get(root, "made"), vars);
    json_array_foreach(json_object_get(root, "captured"), k, word)
    {
        secret_name(u, i, json_string_value(word), name);
        put(vars, json_string_value(word), json_string(name));
    }
    put(vars, "entry", json_string(entry));
    return vars;
}

/* ---- filling ---- */

static int fill_jwt(struct slice claims, struct buf *to)
{
    int bad = base64url_append(to, SLICE("{\"alg\":\"none\",\"typ\":\"JWT\"}"));
    bad |= buf_append_str(to, ".") | base64url_append(to, claims) | buf_append_str(to, ".");
    return bad | base64url_append(to, SLICE("durward"));
}

/* {{NAME}} of the variables; every other {{ stays. */
static int fill_text(const char *text, size_t n, const json_t *vars, struct buf *to)
{
    for (size_t i = 0; i < n;) {
        const char *close =
            n - i > 4 && memcmp(text + i, "{{", 2) == 0 ? memmem(text + i, n - i, "}}", 2) : NULL;
        size_t len = close ? (size_t)(close - text) - i - 2 : 0;
        char name[NAME_MAX_BYTES];
        const char *value = NULL;
        if (close && len < sizeof name) {
            memcpy(name, text + i + 2, len);
            name[len] = 0;
            value = login_word(vars, name);
        }
        if ((value ? buf_append_str(to, value) : buf_append(to, text + i, 1)) < 0)
            return -1;
        i += value ? len + 4 : 1;
    }
    return 0;
}

/* The same in all texts of a value, in place. */
static void fill_value(json_t *v, const json_t *vars)
{
    const char *key;
    json_t *item;
    size_t i;
    struct buf b;
    if (json_is_string(v) && strstr(json_string_value(v), "{{")) {
        buf_init(&b, 4096);
        if (fill_text(json_string_value(v), json_string_length(v), vars, &b) < 0 ||
            json_string_setn(v, (const char *)buf_data(&b), buf_len(&b)) < 0)
            abort(); /* the texts of formats are short */
        buf_free(&b);
    }
    json_object_foreach(v, key, item) fill_value(item, vars);
    json_array_foreach(v, i, item) fill_value(item, vars);
}

/* ---- the configuration ---- */

static int declare(json_t *secrets, const char *name, json_t *value, struct err *err)
{
    if (json_object_get(secrets, name)) {
        json_decref(value);
        return err_set(err, ERR_PARSE, "a secret '%s' is there already; rename it", name);
    }
    put(secrets, name, value);
    return 0;
}

static json_t *stored(const struct login_use *u, const char *entry, const char *part)
{
    json_t *v = json_pack("{s:{s:s, s:s, s:s}}", "login", "format", u->format->name, "file",
                          u->file, "part", part);
    if (v && *entry)
        put(json_object_get(v, "login"), "entry", json_string(entry));
    return v;
}

/* Its access token, made of the file with whatever refreshes it. */
static int declare_session(const struct login_use *u, const char *name, const json_t *vars,
                           json_t *secrets, struct err *err)
{
    char file[NAME_MAX_BYTES + 1];
    const json_t *s = json_object_get(u->format->root, "session");
    snprintf(file, sizeof file, "%.50s_file", name);
    if (declare(secrets, file, stored(u, "", "session"), err) < 0)
        return -1;
    json_t *made =
        json_pack("{s:{s:s, s:s, s:s*, s:s*, s:s, s:s}}", "oauth_login", "session", file,
                  "token_url", login_word(s, "token_url"), "client_id", login_word(s, "client_id"),
                  "resource", login_word(s, "resource"), "encoding", login_word(s, "encoding"),
                  "refresh", u->refresh ? "yes" : "no");
    if (login_word(u->format->root, "kind"))
        put(made, "kind", json_string(login_word(u->format->root, "kind")));
    fill_value(made, vars);
    return declare(secrets, name, made, err);
}

static int declare_all(const struct login_use *u, const char *entry, const json_t *parts,
                       const json_t *vars, json_t *secrets, struct err *err)
{
    const json_t *root = u->format->root;
    const char *kind = login_word(root, "kind"), *key;
    json_t *v;
    size_t i;
    json_object_foreach(json_object_get(root, "secrets"), key, v)
    {
        if (login_is_session(u->format)) {
            if (declare_session(u, login_word(vars, key), vars, secrets, err) < 0)
                return -1;
            continue;
        }
        if (json_object_get(parts, key) == NULL)
            continue;
        json_t *made = stored(u, entry, key);
        if (kind)
            put(made, "kind", json_string(kind));
        if (declare(secrets, login_word(vars, key), made, err) < 0)
            return -1;
    }
    json_array_foreach(json_object_get(root, "captured"), i,
                       v) if (declare(secrets, login_word(vars, json_string_value(v)),
                                      json_pack("{s:{}}", "captured"), err) < 0) return -1;
    return 0;
}

/* A field that names a part which this entry has not is left out. */
static void declare_made(const struct login_use *u, const json_t *parts, const json_t *vars,
                         json_t *secrets)
{
    const char *key, *field;
    json_t *v, *f;
    void *next;
    json_object_foreach(json_object_get(u->format->root, "made"), key, v)
    {
        json_t *made = json_deep_copy(v);
        json_t *fields = json_object_iter_value(json_object_iter(made));
        json_object_foreach_safe(fields, next, field, f)
        {
            char part[NAME_MAX_BYTES];
            if (sscanf(json_string_value(f), "{{%60[a-z]}}", part) == 1 &&
                json_object_get(parts, part) == NULL)
                json_object_del(fields, field);
        }
        fill_value(made, vars);
        put(secrets, login_word(vars, key), made);
    }
}

/* `entry` of a rule: for this one only, or with "!" for every other. */
static bool is_for(json_t *rule, const char *entry)
{
    const char *only = login_word(rule, "entry");
    bool other = only && *only == '!', same = only && strcmp(only + other, entry) == 0;
    bool is = only == NULL || same != other;
    json_object_del(rule, "entry");
    return is;
}

int login_expand(const struct login_use *u, json_t *secrets, json_t *rules, struct err *err)
{
    const char *entry;
    json_t *parts, *rule;
    size_t i = 0, k;
    json_object_foreach(u->entries, entry, parts)
    {
        json_t *vars = variables(u, i++, entry, parts);
        int r = declare_all(u, entry, parts, vars, secrets, err);
        if (r == 0)
            declare_made(u, parts, vars, secrets);
        json_array_foreach(json_object_get(u->format->root, "rules"), k, rule)
        {
            json_t *own = json_deep_copy(rule);
            if (own && is_for(own, entry)) {
                fill_value(own, vars);
                json_array_append(rules, own);
            }
            json_decref(own);
        }
        json_decref(vars);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* A member whose text names what this file has not is left out. */
static void drop_unfilled(json_t *object)
{
    const char *key;
    json_t *v;
    void *next;
    json_object_foreach_safe(object, next, key, v)
    {
        if (json_is_string(v) && strstr(json_string_value(v), "{{"))
            json_object_del(object, key);
        else
            drop_unfilled(v);
    }
}

json_t *login_identity(const struct login_use *u)
{
    const json_t *given = json_object_get(u->format->root, "identity");
    void *first = json_object_iter(u->entries);
    if (given == NULL || first == NULL)
        return NULL;
    json_t *vars = variables(u, 0, json_object_iter_key(first), json_object_iter_value(first));
    json_t *ret = json_deep_copy(given);
    if (ret == NULL)
        abort(); /* memory is out */
    fill_value(ret, vars);
    drop_unfilled(ret);
    json_decref(vars);
    return ret;
}

/* ---- files inside ---- */

static int fill_entries(const struct login_use *u, const char *text, size_t n, struct buf *to)
{
    const char *entry;
    json_t *parts;
    size_t i = 0;
    int bad = 0;
    json_object_foreach(u->entries, entry, parts)
    {
        json_t *vars = variables(u, i++, entry, parts);
        bad |= fill_text(text, n, vars, to);
        json_decref(vars);
    }
    return bad;
}

/* {{each}} and {{end}} around what is written once an entry; how far the text was taken, or -1. */
static ssize_t fill_each(const struct login_use *u, const char *text, const json_t *vars,
                         struct buf *to)
{
    static const char each[] = "{{each}}", end[] = "{{end}}";
    const char *from = strstr(text, each), *till = from ? strstr(from, end) : NULL;
    if (till == NULL)
        return 0;
    int bad = fill_text(text, (size_t)(from - text), vars, to);
    from += sizeof each - 1;
    bad |= fill_entries(u, from, (size_t)(till - from), to);
    till += sizeof end - 1 + (till[sizeof end - 1] == '\n');
    return bad ? -1 : till - text;
}

/* What stands before {{each}}, each entry, what stands behind {{end}}; a text without them is of
 * the one entry that there is, or names lines alone. */
static int fill_whole(const struct login_use *u, const char *text, struct buf *to)
{
    time_t now = time(NULL);
    char when[32];
    struct tm tm;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S.000Z", gmtime_r(&now, &tm));
    const char *first = json_object_iter_key(json_object_iter(u->entries));
    json_t *vars = json_pack("{s:s, s:s, s:s}", "lines", u->lines ? u->lines : "", "now", when,
                             "first", first ? first : "");
    struct buf once;
    buf_init(&once, LOGIN_TEXT_MAX);
    int bad = vars ? 0 : -1;
    const char *at = text;
    for (ssize_t n = 1; n > 0 && !bad; at += n > 0 ? n : 0) {
        n = fill_each(u, at, vars, to);
        bad |= n < 0;
    }
    if (at > text || login_entries(u->format)) {
        bad |= fill_text(at, strlen(at), vars, to);
    } else {
        bad |= fill_text(text, strlen(text), vars, &once);
        bad |= fill_entries(u, (const char *)buf_data(&once), buf_len(&once), to);
    }
    buf_free(&once);
    json_decref(vars);
    return bad;
}

static ssize_t entry_number(const struct login_use *u, struct slice name)
{
    const char *entry;
    json_t *parts;
    ssize_t i = 0;
    json_object_foreach(u->entries, entry, parts)
    {
        if (slice_eq_str(name, entry))
            return i;
        i++;
    }
    return -1;
}

/* {{secret ENTRY PART}} of lines: where its placeholder goes. Of an entry that is not used nothing
 * stands there. */
static int fill_secrets(const struct login_use *u, struct slice text, struct buf *to)
{
    static const char open[] = "{{secret ";
    ssize_t at;
    int bad = 0;
    while ((at = slice_find_slice(text, slice_str(open))) >= 0) {
        char name[NAME_MAX_BYTES + 1], part[NAME_MAX_BYTES];
        struct slice rest = {text.p + at + sizeof open - 1, text.n - (size_t)at - sizeof open + 1};
        ssize_t blank = slice_find(rest, ' '), end = slice_find_slice(rest, SLICE("}}"));
        bad |= buf_append(to, text.p, (size_t)at);
        if (blank < 0 || end < blank || end - blank - 1 >= (ssize_t)sizeof part)
            return -1;
        snprintf(part, sizeof part, "%.*s", (int)(end - blank - 1), rest.p + blank + 1);
        ssize_t i = entry_number(u, (struct slice){rest.p, (size_t)blank});
        if (i >= 0) {
            secret_name(u, (size_t)i, part, name);
            bad |= buf_printf(to, "{{placeholder %s}}", name);
        }
        text = (struct slice){rest.p + end + 2, rest.n - (size_t)end - 2};
    }
    return bad | buf_append_slice(to, text);
}

/* {{jwt}}CLAIMS{{/jwt}}: a token without a signature that says so. */
static int fill_tokens(struct slice text, struct buf *to)
{
    static const char open[] = "{{jwt}}", shut[] = "{{/jwt}}";
    const char *from = memmem(text.p, text.n, open, sizeof open - 1);
    const char *till =
        from ? memmem(from, text.n - (size_t)(from - text.p), shut, sizeof shut - 1) : NULL;
    if (till == NULL)
        return buf_append_slice(to, text);
    size_t before = (size_t)(from - text.p), after = (size_t)(till - text.p) + sizeof shut - 1;
    from += sizeof open - 1;
    return buf_append(to, text.p, before) |
           fill_jwt((struct slice){from, (size_t)(till - from)}, to) |
           buf_append(to, text.p + after, text.n - after);
}

int login_file_inside(const struct login_use *u, size_t i, const char **path, struct buf *text,
                      struct err *err)
{
    json_t *files = json_object_get(u->format->root, "files");
    void *it = json_object_iter(files);
    while (it && i-- > 0)
        it = json_object_iter_next(files, it);
    if (it == NULL)
        return 0;
    struct buf filled, named;
    buf_init(&filled, LOGIN_TEXT_MAX);
    buf_init(&named, LOGIN_TEXT_MAX);
    *path = json_object_iter_key(it);
    int bad = fill_whole(u, json_string_value(json_object_iter_value(it)), &filled);
    bad |= fill_secrets(u, buf_slice(&filled), &named);
    bad |= fill_tokens(buf_slice(&named), text);
    buf_free(&filled);
    buf_free(&named);
    return bad ? err_set(err, ERR_LIMIT, "the login in %s: what stands for it inside is too long",
                         u->file)
               : 1;
}
