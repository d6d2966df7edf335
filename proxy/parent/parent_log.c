/* W_LOG_ASK: what the log holds, or a part of it with its proofs, found by `durward audit query` or
 * `durward audit case` in a process of its own (log_command.h). Some at once, each bounded. */
#include "parent.h"

#include "log_command.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOG_ASK_SECONDS = 120,
    LOG_ASK_OPTION = 24,                                /* "--credential=" and the like */
    LOG_ASK_WORDS = 3 + 2 + WIRE_LOG_ASK_FIELDS + 1 + 1 /* and the NULL */
};

struct log_ask {
    struct parent *parent;
    uint32_t req;
};

/* ok: as W_LOG_SAID says. */
static void answer(struct parent *p, uint32_t req, unsigned ok, const char *text,
                   const struct buf *said)
{
    struct child *c = p->controller;
    struct err err = {0};
    struct msg m;
    int fd = -1;
    if (c == NULL || c->ch == NULL)
        return; /* whoever asked is gone with it */
    if (ok == WIRE_LOG_GOOD) {
        struct slice s = buf_slice(said);
        fd = ipc_memfd("log", s.p, s.n, &err);
        if (fd < 0) {
            ok = WIRE_LOG_FAILED;
            text = err.text;
        }
    }
    msg_init(&m, W_LOG_SAID);
    msg_put_u32(&m, req);
    msg_put_u8(&m, (uint8_t)ok);
    msg_put_str(&m, text);
    if (ok == WIRE_LOG_GOOD)
        msg_put_fd(&m, fd);
    ipc_send(c->ch, &m);
}

static void on_ended(void *arg, int code, const char *failed, const struct buf *said)
{
    struct log_ask *a = arg;
    a->parent->n_log_asks--;
    if (failed)
        answer(a->parent, a->req, WIRE_LOG_FAILED, failed, NULL);
    else if (code == 2)
        answer(a->parent, a->req, WIRE_LOG_BAD, "", NULL);
    else if (code != 0)
        answer(a->parent, a->req, WIRE_LOG_FAILED,
               "the log could not be read: see the daemon's diagnostics", NULL);
    else
        answer(a->parent, a->req, WIRE_LOG_GOOD, "", said);
    free(a);
}

/* Every value is part of its option's own word: none can be taken for another option. */
struct words {
    char text[WIRE_LOG_ASK_FIELDS + 1][WIRE_LOG_ASK_TEXT + LOG_ASK_OPTION];
    const char *argv[LOG_ASK_WORDS];
    size_t n;
};

static int read_words(struct msg *m, struct words *w, uint32_t *req)
{
    static const char *const names[] = WIRE_LOG_ASK_NAMES;
    static const char *const verbs[] = {"query", "case"};
    uint8_t verb;
    uint32_t limit;
    if (msg_get_u32(m, req) < 0 || msg_get_u8(m, &verb) < 0 || verb >= ARRAY_LEN(verbs) ||
        msg_get_u32(m, &limit) < 0 || limit == 0 || limit > WIRE_LOG_ASK_ROWS)
        return -1;
    w->n = 0;
    w->argv[w->n++] = "durward";
    w->argv[w->n++] = "audit";
    w->argv[w->n++] = verbs[verb];
    w->argv[w->n++] = "--json";
    snprintf(w->text[WIRE_LOG_ASK_FIELDS], sizeof w->text[0], "--limit=%u", (unsigned)limit);
    w->argv[w->n++] = w->text[WIRE_LOG_ASK_FIELDS];
    for (size_t i = 0; i < WIRE_LOG_ASK_FIELDS; i++) {
        char value[WIRE_LOG_ASK_TEXT];
        if (msg_get_str(m, value, sizeof value) < 0)
            return -1;
        if (value[0] == 0)
            continue;
        snprintf(w->text[i], sizeof w->text[i], "--%s=%s", names[i], value);
        w->argv[w->n++] = w->text[i];
    }
    w->argv[w->n++] = LOG_COMMAND_DIR;
    w->argv[w->n] = NULL;
    return msg_end(m);
}

int parent_log_ask(struct child *controller, struct msg *m)
{
    struct parent *p = controller->parent;
    struct words *w = malloc(sizeof *w);
    struct log_ask *a = calloc(1, sizeof *a);
    struct err err = {0};
    int r = w && a ? read_words(m, w, &a->req) : 0;
    if (w == NULL || a == NULL || r < 0 || p->n_log_asks >= WIRE_LOG_ASKS) {
        if (r == 0 && w && a)
            answer(p, a->req, WIRE_LOG_FAILED, "too much is asked of the log at once", NULL);
        free(w);
        free(a);
        return r;
    }
    a->parent = p;
    struct log_command_order o = {.argv = w->argv,
                                  .most = WIRE_LOG_SAID_MAX,
                                  .seconds = LOG_ASK_SECONDS,
                                  .ended = on_ended,
                                  .arg = a};
    p->n_log_asks++;
    if (log_command_start(p, &o, &err) == NULL) {
        p->n_log_asks--;
        answer(p, a->req, WIRE_LOG_FAILED, err.text, NULL);
        free(a);
    }
    free(w);
    return 0;
}
