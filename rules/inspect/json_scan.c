/* A pushdown automaton over the bytes of a JSON text: one state, a bit a level for arrays, and the
 * names of the outermost levels. */
#include "json_scan.h"

#include <string.h>

enum json_scan_state {
    SCAN_VALUE = 0,
    SCAN_VALUE_OR_END, /* behind "[" */
    SCAN_KEY,
    SCAN_KEY_OR_END, /* behind "{" */
    SCAN_COLON,
    SCAN_AFTER, /* a value: a comma or an end */
    SCAN_TEXT,
    SCAN_ESCAPE,
    SCAN_HEX,
    SCAN_NUMBER,
    SCAN_WORD
};

/* Where in a number. */
enum { NUM_MINUS = 0, NUM_ZERO, NUM_WHOLE, NUM_DOT, NUM_PART, NUM_E, NUM_SIGN, NUM_POWER, NUM_BAD };

void json_scan_begin(struct json_scan *s)
{
    memset(s, 0, offsetof(struct json_scan, text));
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool in_array(const struct json_scan *s)
{
    return s->depth > 0 && (s->arrays >> (s->depth - 1) & 1);
}

static void keep(struct json_scan *s, char c)
{
    if (s->n_text < sizeof s->text)
        s->text[s->n_text++] = c;
    else
        s->wide = true;
}

static void begin_text(struct json_scan *s, enum json_scan_state state)
{
    s->state = (unsigned char)state;
    s->n_text = 0;
    s->wide = false;
}

static void set_name(struct json_scan *s)
{
    unsigned at = s->depth - 1;
    if (at >= JSON_SCAN_NAMES)
        return;
    s->n_name[at] = s->wide ? 1 : (unsigned char)s->n_text;
    memcpy(s->name[at], s->wide ? "?" : s->text, s->n_name[at]);
}

/* A value is over that is neither object nor array. */
static void tell(struct json_scan *s, enum json_scan_kind kind, json_scan_fn told, void *arg)
{
    char path[JSON_SCAN_NAMES * (JSON_SCAN_NAME + 1) + 1];
    size_t n = 0;
    s->state = SCAN_AFTER;
    s->whole = s->depth == 0;
    if (s->depth > JSON_SCAN_NAMES || s->wide || s->n_text > JSON_SCAN_TEXT)
        return;
    for (unsigned i = 0; i < s->depth; i++) {
        if (i > 0)
            path[n++] = '.';
        memcpy(path + n, s->name[i], s->n_name[i]);
        n += s->n_name[i];
    }
    path[n] = 0;
    told(arg, path, kind, (struct slice){s->text, s->n_text});
}

/* ---- numbers ---- */

static unsigned char number_step(unsigned char at, char c)
{
    bool digit = c >= '0' && c <= '9', e = c == 'e' || c == 'E';
    switch (at) {
    case NUM_MINUS:
        return c == '0' ? NUM_ZERO : digit ? NUM_WHOLE : NUM_BAD;
    case NUM_ZERO:
        return c == '.' ? NUM_DOT : e ? NUM_E : NUM_BAD;
    case NUM_WHOLE:
        return digit ? NUM_WHOLE : c == '.' ? NUM_DOT : e ? NUM_E : NUM_BAD;
    case NUM_DOT:
        return digit ? NUM_PART : NUM_BAD;
    case NUM_PART:
        return digit ? NUM_PART : e ? NUM_E : NUM_BAD;
    case NUM_E:
        return digit ? NUM_POWER : c == '+' || c == '-' ? NUM_SIGN : NUM_BAD;
    default:
        return digit ? NUM_POWER : NUM_BAD;
    }
}

static bool number_whole(unsigned char at)
{
    return at == NUM_ZERO || at == NUM_WHOLE || at == NUM_PART || at == NUM_POWER;
}

/* ---- what may begin and end ---- */

static int open_level(struct json_scan *s, bool array)
{
    if (s->depth == JSON_SCAN_DEPTH)
        return -1;
    if (s->depth < JSON_SCAN_NAMES)
        s->n_name[s->depth] = 0;
    uint64_t bit = UINT64_C(1) << s->depth++;
    s->arrays = array ? s->arrays | bit : s->arrays & ~bit;
    s->state = array ? SCAN_VALUE_OR_END : SCAN_KEY_OR_END;
    return 0;
}

static int close_level(struct json_scan *s, bool array)
{
    if (s->depth == 0 || in_array(s) != array)
        return -1;
    s->depth--;
    s->state = SCAN_AFTER;
    s->whole = s->depth == 0;
    return 0;
}

/* Whether a text that begins here stands below one of the names that count. A list at the outside
 * is a list of such texts. */
static bool is_counted(const struct json_scan *s)
{
    unsigned at = s->arrays & 1;
    if (s->counted == NULL || s->depth <= at)
        return false;
    struct slice name = {s->name[at], s->n_name[at]};
    for (size_t i = 0; s->counted[i]; i++)
        if (slice_eq_str(name, s->counted[i]))
            return true;
    return false;
}

static int begin_word(struct json_scan *s, char c)
{
    s->word = c == 't' ? "true" : c == 'f' ? "false" : "null";
    s->expect = 1;
    begin_text(s, SCAN_WORD);
    keep(s, c);
    return 0;
}

static int begin_value(struct json_scan *s, char c)
{
    if (c == ']' && s->state == SCAN_VALUE_OR_END)
        return close_level(s, true);
    if (c == '{' || c == '[')
        return open_level(s, c == '[');
    if (c == 't' || c == 'f' || c == 'n')
        return begin_word(s, c);
    s->is_key = false;
    s->counting = c == '"' && is_counted(s);
    begin_text(s, c == '"' ? SCAN_TEXT : SCAN_NUMBER);
    if (c == '"')
        return 0;
    keep(s, c);
    s->number = c == '-' ? NUM_MINUS : number_step(NUM_MINUS, c);
    return s->number == NUM_BAD ? -1 : 0;
}

static int begin_key(struct json_scan *s, char c)
{
    if (c == '}' && s->state == SCAN_KEY_OR_END)
        return close_level(s, false);
    s->is_key = true;
    s->counting = false;
    begin_text(s, SCAN_TEXT);
    return c == '"' ? 0 : -1;
}

static int after(struct json_scan *s, char c)
{
    if (c == ']' || c == '}')
        return close_level(s, c == ']');
    if (c != ',' || s->depth == 0)
        return -1;
    s->state = in_array(s) ? SCAN_VALUE : SCAN_KEY;
    return 0;
}

static int between(struct json_scan *s, char c)
{
    if (is_blank(c))
        return 0;
    switch (s->state) {
    case SCAN_KEY:
    case SCAN_KEY_OR_END:
        return begin_key(s, c);
    case SCAN_COLON:
        s->state = SCAN_VALUE;
        return c == ':' ? 0 : -1;
    case SCAN_AFTER:
        return after(s, c);
    default:
        return begin_value(s, c);
    }
}

/* ---- inside of a value ---- */

static int in_text(struct json_scan *s, char c, json_scan_fn told, void *arg)
{
    if ((unsigned char)c < 0x20)
        return -1;
    s->said += s->counting && c != '"';
    if (c == '\\') {
        s->state = SCAN_ESCAPE;
        s->wide = true;
    } else if (c != '"') {
        keep(s, c);
    } else if (s->is_key) {
        set_name(s);
        s->state = SCAN_COLON;
    } else {
        tell(s, JSON_SCAN_STRING, told, arg);
    }
    return 0;
}

static int in_escape(struct json_scan *s, char c)
{
    s->said += s->counting;
    if (s->state == SCAN_ESCAPE) {
        s->hex = c == 'u' ? 4 : 0;
        s->state = s->hex ? SCAN_HEX : SCAN_TEXT;
        return strchr("\"\\/bfnrtu", c) && c ? 0 : -1;
    }
    bool digit = (c >= '0' && c <= '9') || (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'f');
    if (--s->hex == 0)
        s->state = SCAN_TEXT;
    return digit ? 0 : -1;
}

static int in_word(struct json_scan *s, char c, json_scan_fn told, void *arg)
{
    if (c != s->word[s->expect++])
        return -1;
    keep(s, c);
    if (s->word[s->expect] == 0)
        tell(s, JSON_SCAN_WORD, told, arg);
    return 0;
}

static int step(struct json_scan *s, char c, json_scan_fn told, void *arg)
{
    switch (s->state) {
    case SCAN_TEXT:
        return in_text(s, c, told, arg);
    case SCAN_ESCAPE:
    case SCAN_HEX:
        return in_escape(s, c);
    case SCAN_WORD:
        return in_word(s, c, told, arg);
    case SCAN_NUMBER:
        break;
    default:
        return between(s, c);
    }
    bool ends = is_blank(c) || c == ',' || c == ']' || c == '}';
    if (!ends) {
        keep(s, c);
        s->number = number_step(s->number, c);
        return s->number == NUM_BAD ? -1 : 0;
    }
    if (!number_whole(s->number))
        return -1;
    tell(s, JSON_SCAN_NUMBER, told, arg);
    return between(s, c);
}

/* Most of a reply is text of no interest. */
static size_t plain_run(const struct json_scan *s, struct slice in)
{
    size_t n = 0;
    if (s->state != SCAN_TEXT || !s->wide)
        return 0;
    while (n < in.n && in.p[n] != '"' && in.p[n] != '\\' && (unsigned char)in.p[n] >= 0x20)
        n++;
    return n;
}

int json_scan_feed(struct json_scan *s, struct slice in, json_scan_fn told, void *arg)
{
    for (size_t i = 0; i < in.n; i++) {
        size_t run = plain_run(s, (struct slice){in.p + i, in.n - i});
        s->said += s->counting ? run : 0;
        i += run;
        if (i < in.n && step(s, in.p[i], told, arg) < 0)
            return -1;
    }
    return 0;
}

int json_scan_end(struct json_scan *s, json_scan_fn told, void *arg)
{
    if (s->state == SCAN_NUMBER && s->depth == 0 && number_whole(s->number))
        tell(s, JSON_SCAN_NUMBER, told, arg);
    return s->whole && s->state == SCAN_AFTER ? 0 : -1;
}
