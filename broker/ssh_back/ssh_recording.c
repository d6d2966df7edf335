/* Writes an asciicast of a session into the journal, a few lines to a record. */
#include "ssh_recording.h"

#include "back_request.h"
#include "detect_stream.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum {
    PIECE = 2000,     /* bytes in one record: below RECORD_FIELD_MAX */
    EVENT_MAX = 1900, /* of an event's line, its end left out */
    SIGN_MAX = 12,    /* of one character in it: \ud83d\ude00 */
    PART_MAX = 4,     /* of a character in UTF-8 */
    WIDTH = 80,       /* of what has no terminal */
    HEIGHT = 24,
    ROOM_MIN = 128 * 1024, /* of the journal: what is read at a time makes less */
    RETRY_MS = 20,         /* until the logger may have given more, */
    STARVED_SECONDS = 5,   /* and so long at most */
    FLUSH_SECONDS = 1,     /* so much is lost at most when this process dies */
};

/* A piece on its way to the log. */
struct piece {
    struct ssh_recording *of;
    struct journal_wait *wait;
    LIST_ENTRY(piece) link;
};

struct ssh_recording {
    void (*more)(void *arg);
    void *arg;
    LIST_HEAD(, piece) pieces;
    const struct back_request *of;
    struct timespec begun;
    struct event *timer, *retry;
    time_t starved; /* since when there is no room; 0: there is */
    EVP_MD_CTX *digest;
    struct buf lines;   /* whole ones, not on record yet */
    struct buf out, in; /* the beginning of a character each, between calls */
    uint64_t written, most;
    bool typed, full, lost, ended;
    struct detect_rules rules;
    struct detect_stream
        *look[2];    /* what comes and what is typed; NULL: it is not looked through */
    bool unreadable; /* nothing more can be */
    uint32_t found[DETECTORS];
    struct quota_part looking;
};

/* ---- records ---- */

static void on_recorded(void *arg, bool ok)
{
    struct piece *p = arg;
    struct ssh_recording *r = p->of;
    LIST_REMOVE(p, link);
    free(p);
    if (!ok)
        r->lost = true; /* a recording with a hole is none */
    if (LIST_EMPTY(&r->pieces))
        r->more(r->arg);
}

static void append(struct ssh_recording *r, const struct record *record)
{
    struct piece *p = calloc(1, sizeof *p);
    if (p == NULL) {
        r->lost = true;
        return;
    }
    p->of = r;
    LIST_INSERT_HEAD(&r->pieces, p, link);
    struct journal_wait *w = journal_append(r->of->back->journal, record, on_recorded, p);
    if (w)
        p->wait = w; /* else on_recorded ran, and it is gone */
}

static void put_piece(struct ssh_recording *r, const char *detail)
{
    struct record piece;
    char found[DETECT_FOUND_MAX];
    struct slice text = buf_slice(&r->lines);
    if (r->lost)
        return;
    record_init(&piece, RECORD_BODY, r->of->counter);
    record_put_str(&piece, RF_CODE, "recording");
    record_put_str(&piece, RF_SANDBOX, r->of->sandbox);
    record_put_u64(&piece, RF_OFFSET, r->written);
    record_put(&piece, RF_BODY, text);
    record_put_str(&piece, RF_DETAIL, detail);
    if (r->ended)
        record_put_str(&piece, RF_PATTERNS, detect_found_text(r->found, found));
    append(r, &piece);
    if (EVP_DigestUpdate(r->digest, text.p, text.n) != 1)
        r->lost = true;
    r->written += text.n;
    buf_clear(&r->lines);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct ssh_recording *r = arg;
    if (buf_len(&r->lines) > 0)
        put_piece(r, "");
}

static void on_retry(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
    struct ssh_recording *r = arg;
    r->more(r->arg);
}

/* A whole line. What does not fit the rule's bytes is the end of it. */
static void put_line(struct ssh_recording *r, struct slice line)
{
    const struct timeval soon = {FLUSH_SECONDS, 0};
    if (r->full || r->lost || r->ended)
        return;
    if (r->written + buf_len(&r->lines) + line.n > r->most) {
        r->full = true;
        return;
    }
    if (buf_len(&r->lines) + line.n > PIECE)
        put_piece(r, "");
    if (buf_len(&r->lines) == 0)
        event_add(r->timer, &soon);
    if (buf_append_slice(&r->lines, line) < 0)
        r->lost = true;
}

/* ---- text ---- */

/* Bytes of the character at the beginning; 0: its end has not come; -1: it is none. */
static int character(const unsigned char *p, size_t n)
{
    size_t want = p[0] < 0x80                    ? 1
                  : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
                  : p[0] >= 0xe0 && p[0] <= 0xef ? 3
                  : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                                 : 0;
    if (want == 0)
        return -1;
    for (size_t i = 1; i < want && i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return -1;
    if (n > 1 && ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
                  (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f)))
        return -1;
    return n < want ? 0 : (int)want;
}

static uint32_t code_point(const unsigned char *p, int n)
{
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

/* As in a string of JSON, in ASCII alone. n: of one character, or -1 of what is none. */
static int put_sign(struct buf *to, const char *p, int n)
{
    uint32_t c = n < 0 ? 0xfffd : code_point((const unsigned char *)p, n);
    if (c == '"' || c == '\\')
        return buf_printf(to, "\\%c", (int)c);
    if (c >= 0x20 && c < 0x7f)
        return buf_append(to, p, 1);
    if (c <= 0xffff)
        return buf_printf(to, "\\u%04x", c);
    c -= 0x10000;
    return buf_printf(to, "\\u%04x\\u%04x", 0xd800 | c >> 10, 0xdc00 | (c & 0x3ff));
}

/* As much of the text as a line takes; returns how much that was. */
static size_t put_text(struct buf *to, struct slice s, bool whole)
{
    size_t at = 0;
    while (at < s.n && buf_len(to) + SIGN_MAX + 2 < EVENT_MAX) {
        int n = character((const unsigned char *)s.p + at, s.n - at);
        if (n == 0 && !whole)
            break;
        if (n == 0)
            n = -1;
        if (put_sign(to, s.p + at, n) < 0)
            break;
        at += n > 0 ? (size_t)n : 1;
    }
    return at;
}

static int begin_event(const struct ssh_recording *r, struct buf *line, char kind)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t us =
        (now.tv_sec - r->begun.tv_sec) * INT64_C(1000000) + (now.tv_nsec - r->begun.tv_nsec) / 1000;
    return buf_printf(line, "[%lld.%06lld, \"%c\", \"", (long long)(us / 1000000),
                      (long long)(us % 1000000), kind);
}

static void put_event(struct ssh_recording *r, char kind, struct slice *text, bool whole)
{
    struct buf line;
    buf_init(&line, PIECE);
    size_t n = begin_event(r, &line, kind) == 0 ? put_text(&line, *text, whole) : 0;
    if (n > 0 && buf_append_str(&line, "\"]\n") == 0)
        put_line(r, buf_slice(&line));
    *text = (struct slice){text->p + n, text->n - n};
    if (n == 0 && text->n >= PART_MAX)
        r->lost = true; /* memory */
    buf_free(&line);
}

/* What is left of a character waits for its end. */
static void put_part(struct ssh_recording *r, char kind, struct buf *waits, struct slice s,
                     bool whole)
{
    if (r->full || r->lost || r->ended)
        return;
    if (buf_append_slice(waits, s) < 0) {
        r->lost = true;
        return;
    }
    struct slice text = buf_slice(waits);
    for (size_t before = 0; text.n && text.n != before && !r->full && !r->lost;) {
        before = text.n;
        put_event(r, kind, &text, whole);
    }
    buf_drain(waits, buf_len(waits) - text.n);
}

/* ---- what is looked through first ---- */

static struct detect_stream **look_of(struct ssh_recording *r, char kind)
{
    return &r->look[kind == 'i'];
}

/* What is decided of it. */
static void put_ready(struct ssh_recording *r, char kind, struct buf *waits)
{
    struct detect_stream *look = *look_of(r, kind);
    struct slice ready = detect_stream_ready(look);
    for (size_t at = 0, n; at < ready.n; at += n) {
        n = ready.n - at < BROKER_PACKET_MAX ? ready.n - at : BROKER_PACKET_MAX;
        put_part(r, kind, waits, (struct slice){ready.p + at, n}, false);
    }
    detect_stream_went(look, ready.n);
    if (detect_stream_state(look) != DETECT_PASSES)
        r->full = r->unreadable = true;
}

static void put_events(struct ssh_recording *r, char kind, struct buf *waits, struct slice s)
{
    struct detect_stream *look = *look_of(r, kind);
    if (look == NULL) {
        put_part(r, kind, waits, s, false);
        return;
    }
    while (s.n > 0 && !r->unreadable) {
        size_t room = detect_stream_room(look), n = s.n < room ? s.n : room;
        detect_stream_take(look, s.p, n);
        s = (struct slice){s.p + n, s.n - n};
        put_ready(r, kind, waits);
    }
}

static void end_events(struct ssh_recording *r, char kind, struct buf *waits)
{
    struct detect_stream *look = *look_of(r, kind);
    if (look && !r->unreadable) {
        detect_stream_end(look);
        put_ready(r, kind, waits);
    }
    for (unsigned k = 0; look && k < DETECTORS; k++)
        r->found[k] += detect_stream_counts(look)[k];
    put_part(r, kind, waits, SLICE(""), true);
}

/* -1: no memory for it. */
static int look_begin(struct ssh_recording *r, struct quota *looking)
{
    size_t n = 1 + (size_t)r->typed;
    r->rules.redact = r->of->rule->ssh->record_redact;
    if (r->rules.redact == 0)
        return 0;
    if (quota_take(looking, &r->looking, slice_str(r->of->sandbox), n * DETECT_STREAM_SIZE) !=
        QUOTA_TAKEN)
        return -1;
    for (size_t i = 0; i < n; i++)
        if ((r->look[i] = detect_stream_new(&r->rules, DETECT_PLAIN, NULL, NULL)) == NULL)
            return -1;
    return 0;
}

/* ---- the recording ---- */

static int put_header(struct ssh_recording *r, const struct ssh_facts *f)
{
    struct buf line;
    struct timespec now;
    struct slice command = slice_str(f->verb == SSH_EXEC ? f->text : "");
    clock_gettime(CLOCK_REALTIME, &now);
    buf_init(&line, PIECE);
    int n = buf_printf(&line, "{\"version\": 2, \"width\": %u, \"height\": %u, \"timestamp\": %lld",
                       f->columns ? f->columns : WIDTH, f->rows ? f->rows : HEIGHT,
                       (long long)now.tv_sec);
    if (n == 0)
        n = buf_printf(&line, ", \"title\": \"%s@%s\", \"env\": {\"TERM\": \"%s\"}", f->user,
                       r->of->at.host, f->term);
    if (n == 0 && command.n) {
        n = buf_append_str(&line, ", \"command\": \"");
        (void)put_text(&line, command, true); /* its whole text is in the request's record */
        n = n < 0 ? n : buf_append_str(&line, "\"");
    }
    if (n == 0 && (n = buf_append_str(&line, "}\n")) == 0)
        put_line(r, buf_slice(&line));
    buf_free(&line);
    return n;
}

struct ssh_recording *ssh_recording_new(const struct back_request *of, const struct ssh_facts *f,
                                        struct quota *looking, void (*more)(void *arg), void *arg,
                                        bool *failed)
{
    const struct ssh_terms *t = of->rule->ssh;
    *failed = false;
    if (t->record_bytes == 0 || (f->verb != SSH_EXEC && f->verb != SSH_SHELL))
        return NULL;
    struct ssh_recording *r = calloc(1, sizeof *r);
    *failed = r == NULL;
    if (r == NULL)
        return NULL;
    r->of = of;
    r->more = more;
    r->arg = arg;
    LIST_INIT(&r->pieces);
    clock_gettime(CLOCK_MONOTONIC, &r->begun);
    r->most = t->record_bytes;
    r->typed = t->record_typed;
    buf_init_wiped(&r->lines, PIECE);
    buf_init_wiped(&r->out, BROKER_PACKET_MAX + PART_MAX);
    buf_init_wiped(&r->in, BROKER_PACKET_MAX + PART_MAX);
    r->timer = event_new(of->back->base, -1, 0, on_timer, r);
    r->digest = EVP_MD_CTX_new();
    r->retry = event_new(of->back->base, -1, 0, on_retry, r);
    *failed = r->timer == NULL || r->retry == NULL || r->digest == NULL ||
              EVP_DigestInit_ex(r->digest, EVP_sha256(), NULL) != 1 || put_header(r, f) < 0 ||
              look_begin(r, looking) < 0;
    if (!*failed)
        return r;
    ssh_recording_free(r);
    return NULL;
}

void ssh_recording_output(struct ssh_recording *r, struct slice bytes)
{
    if (r)
        put_events(r, 'o', &r->out, bytes);
}

void ssh_recording_input(struct ssh_recording *r, struct slice bytes)
{
    if (r && r->typed)
        put_events(r, 'i', &r->in, bytes);
}

void ssh_recording_window(struct ssh_recording *r, uint32_t columns, uint32_t rows)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%ux%u", columns, rows);
    struct slice s = {text, (size_t)n};
    if (r && columns && rows && !ssh_recording_waits(r)) /* sizes have no share of what waits */
        put_event(r, 'r', &s, true);
}

/* The logger is behind: what comes waits with the server, and nothing is lost. */
static bool is_starved(struct ssh_recording *r)
{
    const struct timeval later = {0, RETRY_MS * 1000};
    struct timespec now;
    if (r->full || r->lost || r->ended || journal_room(r->of->back->journal) >= ROOM_MIN) {
        r->starved = 0;
        return false;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (r->starved == 0)
        r->starved = now.tv_sec;
    if (now.tv_sec - r->starved > STARVED_SECONDS)
        return false;
    event_add(r->retry, &later);
    return true;
}

bool ssh_recording_waits(struct ssh_recording *r)
{
    return r && (!LIST_EMPTY(&r->pieces) || is_starved(r));
}

/* The last piece says what all of them make. */
static void put_end(struct ssh_recording *r)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    char detail[200], hex[2 * 32 + 1] = "";
    end_events(r, 'o', &r->out);
    end_events(r, 'i', &r->in);
    if (buf_len(&r->lines) > 0)
        put_piece(r, "");
    if (EVP_DigestFinal_ex(r->digest, sum, NULL) == 1)
        for (size_t i = 0; i < 32; i++)
            snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    snprintf(detail, sizeof detail, "%llu bytes, sha256:%s%s", (unsigned long long)r->written, hex,
             r->unreadable ? "; the session went on with what cannot be looked through"
             : r->full     ? "; the session went on beyond record_megabytes"
                           : "");
    r->ended = true;
    put_piece(r, detail);
}

bool ssh_recording_end(struct ssh_recording *r)
{
    if (r && !r->ended)
        put_end(r);
    return r == NULL || LIST_EMPTY(&r->pieces);
}

const char *ssh_recording_note(const struct ssh_recording *r)
{
    return r && r->lost ? "the recording could not be written whole" : "";
}

void ssh_recording_free(struct ssh_recording *r)
{
    struct piece *p;
    if (r == NULL)
        return;
    while ((p = LIST_FIRST(&r->pieces)) != NULL) {
        journal_cancel(p->wait, "");
        LIST_REMOVE(p, link);
        free(p);
    }
    if (r->timer)
        event_free(r->timer);
    if (r->retry)
        event_free(r->retry);
    EVP_MD_CTX_free(r->digest);
    for (size_t i = 0; i < ARRAY_LEN(r->look); i++)
        detect_stream_free(r->look[i]);
    quota_leave(&r->looking);
    buf_free(&r->out);
    buf_free(&r->in);
    buf_free(&r->lines);
    free(r);
}
