/* Shows held requests one at a time, with the terminal out of raw mode and the sandbox's output
 * stopped, and reads a line as the answer. What was allowed for the sandbox is not asked again. */
#include "run_ask.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <termios.h>
#include <unistd.h>

#include "held.h"
#include "out.h"
#include "terminal.h"
#include "wire.h"

enum {
    ASK_ID = 32,
    ASK_URL = 4600,
    ASK_TEXT = 600,
    QUESTIONS_MAX = 256,
    GRANTED_MAX = 64,
    INJECTION_URL_MAX = 1000,
};

enum answer { ANSWER_NO, ANSWER_ONCE, ANSWER_SANDBOX, ANSWER_RULE, ANSWER_UNCLEAR };

struct question {
    char id[ASK_ID];
    char method[64], url[ASK_URL], query[ASK_TEXT], rule[ASK_TEXT], credential[160], type[ASK_TEXT];
    uint64_t length; /* UINT64_MAX: not known */
    uint32_t seconds;
    TAILQ_ENTRY(question) link;
};

/* What was allowed for as long as the sandbox lives: this request again, under this rule. Of its
 * query names and lengths are known, and so compared. */
struct granted_request {
    char method[64], url[INJECTION_URL_MAX], query[ASK_TEXT], rule[ASK_TEXT], credential[160];
};

struct run_ask {
    struct run_stdio *stdio;
    struct ipc *controller; /* of the latest message; borrowed */
    int tty;
    struct event *readable;
    bool standing; /* the first question is on the screen */
    bool raw;      /* what the terminal was before it */
    unsigned n;
    struct granted_request *granted; /* GRANTED_MAX of them; NULL: none yet */
    size_t n_granted;
    TAILQ_HEAD(, question) list;
};

static void on_line(evutil_socket_t fd, short what, void *arg);

struct run_ask *run_ask_new(struct event_base *base, struct run_stdio *stdio, struct err *err)
{
    struct run_ask *a = calloc(1, sizeof *a);
    if (a == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    TAILQ_INIT(&a->list);
    a->stdio = stdio;
    a->tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (a->tty < 0) {
        err_set(err, ERR_UNREADY, "--ask needs a terminal to ask on");
        free(a);
        return NULL;
    }
    a->readable = event_new(base, a->tty, EV_READ | EV_PERSIST, on_line, a);
    if (a->readable == NULL) {
        close(a->tty);
        free(a);
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    return a;
}

/* ---- one question ---- */

static void line(const struct run_ask *a, const char *what, const char *text)
{
    char clean[ASK_URL];
    if (text[0])
        dprintf(a->tty, "  %-11s %s\n", what, out_clean(text, clean, sizeof clean));
}

static void ask(const struct run_ask *a)
{
    dprintf(a->tty, "durward: y: once; s: for this sandbox; r: once, and show the rule for it\n"
                    "durward: allow it? [y/s/r/N] ");
}

static void show(const struct run_ask *a, const struct question *q)
{
    char body[ASK_TEXT + 64];
    if (q->length == UINT64_MAX)
        snprintf(body, sizeof body, "of unknown length  %s", q->type);
    else if (q->length > 0)
        snprintf(body, sizeof body, "%llu bytes  %s", (unsigned long long)q->length, q->type);
    else
        snprintf(body, sizeof body, "none");
    dprintf(a->tty, "\ndurward: the sandbox wants to send a request (%u s to decide)\n",
            q->seconds);
    line(a, q->method, q->url);
    line(a, "query:", q->query);
    line(a, "body:", body);
    line(a, "credential:", q->credential);
    line(a, "rule:", q->rule);
    ask(a);
}

static void stand(struct run_ask *a)
{
    const struct question *q = TAILQ_FIRST(&a->list);
    if (a->standing || q == NULL)
        return;
    a->standing = true;
    a->raw = terminal_is_raw();
    run_stdio_pause(a->stdio);
    terminal_restore();
    tcflush(a->tty, TCIFLUSH);
    show(a, q);
    event_add(a->readable, NULL);
}

/* The question is off the screen, whatever the answer: the terminal is the sandbox's again, unless
 * another one waits. */
static void sit(struct run_ask *a)
{
    struct question *q = TAILQ_FIRST(&a->list);
    TAILQ_REMOVE(&a->list, q, link);
    a->n--;
    free(q);
    a->standing = false;
    event_del(a->readable);
    if (a->raw)
        (void)terminal_raw(STDIN_FILENO, NULL);
    run_stdio_resume(a->stdio);
}

static void tell(struct run_ask *a, const struct question *q, bool allow)
{
    struct msg m;
    msg_init(&m, W_DECIDE);
    msg_put_str(&m, q->id);
    msg_put_u8(&m, allow);
    ipc_send(a->controller, &m);
}

/* ---- more than once ---- */

static bool was_granted(const struct run_ask *a, const struct question *q)
{
    for (size_t i = 0; i < a->n_granted; i++) {
        const struct granted_request *g = &a->granted[i];
        if (strcmp(g->method, q->method) == 0 && strcmp(g->url, q->url) == 0 &&
            strcmp(g->query, q->query) == 0 && strcmp(g->rule, q->rule) == 0 &&
            strcmp(g->credential, q->credential) == 0)
            return true;
    }
    return false;
}

/* A text that is not there in whole stands for others. */
static bool is_cut(const char *text)
{
    return strlen(text) >= PENDING_APPROVAL_TEXT_MAX || strstr(text, PENDING_APPROVAL_MARK);
}

/* false: it is only allowed this once. */
static bool keep_granted(struct run_ask *a, const struct question *q)
{
    if (a->granted == NULL)
        a->granted = calloc(GRANTED_MAX, sizeof *a->granted);
    if (a->granted == NULL || a->n_granted == GRANTED_MAX ||
        strlen(q->url) >= INJECTION_URL_MAX - 1 || is_cut(q->query) || is_cut(q->rule))
        return false;
    struct granted_request *g = &a->granted[a->n_granted++];
    snprintf(g->method, sizeof g->method, "%s", q->method);
    snprintf(g->url, sizeof g->url, "%s", q->url);
    snprintf(g->query, sizeof g->query, "%s", q->query);
    snprintf(g->rule, sizeof g->rule, "%s", q->rule);
    snprintf(g->credential, sizeof g->credential, "%s", q->credential);
    return true;
}

/* What would allow it without a question. "https://" goes without saying; a path that holds what a
 * pattern reads otherwise cannot be written. */
static void show_rule(const struct run_ask *a, const struct question *q)
{
    char clean[ASK_URL];
    const char *place = strncmp(q->url, "https://", 8) == 0 ? q->url + 8 : q->url;
    if (strpbrk(q->url, "*{}\"\\\n") || strlen(q->url) >= INJECTION_URL_MAX - 1) {
        dprintf(a->tty, "durward: no rule can name this path alone\n");
        return;
    }
    dprintf(a->tty, "durward: this rule, above '%s', allows it from now on:\n",
            out_clean(q->rule, clean, sizeof clean));
    dprintf(a->tty, "      - allow: \"%s\"\n", out_clean(place, clean, sizeof clean));
    dprintf(a->tty, "        methods: [%s]\n", out_clean(q->method, clean, sizeof clean));
    if (q->credential[0])
        dprintf(a->tty, "        with: ...  # as that rule has it, for '%s'\n",
                out_clean(q->credential, clean, sizeof clean));
}

static void decide(struct run_ask *a, enum answer answer)
{
    const struct question *q = TAILQ_FIRST(&a->list);
    tell(a, q, answer != ANSWER_NO);
    bool lasts = answer == ANSWER_SANDBOX && keep_granted(a, q);
    if (answer == ANSWER_RULE)
        show_rule(a, q);
    dprintf(a->tty, "durward: %s\n\n",
            answer == ANSWER_NO ? "denied"
            : lasts             ? "allowed for this sandbox"
                                : "allowed");
    sit(a);
    stand(a);
}

static enum answer answer_of(const char *text)
{
    static const struct {
        const char *letter, *word;
        enum answer answer;
    } answers[] = {{"y", "yes", ANSWER_ONCE},
                   {"s", "sandbox", ANSWER_SANDBOX},
                   {"r", "rule", ANSWER_RULE},
                   {"n", "no", ANSWER_NO},
                   {"", "", ANSWER_NO}};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        if (strcasecmp(text, answers[i].letter) == 0 || strcasecmp(text, answers[i].word) == 0)
            return answers[i].answer;
    return ANSWER_UNCLEAR;
}

/* What is no answer is asked again; meanwhile the request waits. */
static void on_line(evutil_socket_t fd, short what UNUSED, void *arg)
{
    char text[256];
    ssize_t n = read(fd, text, sizeof text - 1);
    size_t len = n > 0 ? (size_t)n : 0;
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == ' '))
        len--;
    text[len] = 0;
    enum answer answer = answer_of(text);
    if (answer == ANSWER_UNCLEAR)
        ask(arg);
    else
        decide(arg, answer);
}

/* ---- messages ---- */

static int on_held(struct run_ask *a, struct msg *m)
{
    struct question *q = a->n < QUESTIONS_MAX ? calloc(1, sizeof *q) : NULL;
    if (q == NULL)
        return 0; /* it is denied when its time is over */
    if (msg_get_str(m, q->id, sizeof q->id) < 0 ||
        msg_get_str(m, q->method, sizeof q->method) < 0 ||
        msg_get_str(m, q->url, sizeof q->url) < 0 ||
        msg_get_str(m, q->query, sizeof q->query) < 0 ||
        msg_get_str(m, q->rule, sizeof q->rule) < 0 ||
        msg_get_str(m, q->credential, sizeof q->credential) < 0 ||
        msg_get_str(m, q->type, sizeof q->type) < 0 || msg_get_u64(m, &q->length) < 0 ||
        msg_get_u32(m, &q->seconds) < 0 || msg_end(m) < 0) {
        free(q);
        return -1;
    }
    if (was_granted(a, q)) {
        tell(a, q, true);
        free(q);
        return 0;
    }
    TAILQ_INSERT_TAIL(&a->list, q, link);
    a->n++;
    stand(a);
    return 0;
}

static int on_over(struct run_ask *a, struct msg *m)
{
    struct question *q;
    char id[ASK_ID];
    if (msg_get_str(m, id, sizeof id) < 0 || msg_end(m) < 0)
        return -1;
    TAILQ_FOREACH(q, &a->list, link)
    if (strcmp(q->id, id) == 0)
        break;
    if (q == NULL)
        return 0;
    if (a->standing && q == TAILQ_FIRST(&a->list)) {
        dprintf(a->tty, "\ndurward: over: its time is up, or its client has left\n\n");
        sit(a);
        stand(a);
        return 0;
    }
    TAILQ_REMOVE(&a->list, q, link);
    a->n--;
    free(q);
    return 0;
}

int run_ask_message(struct run_ask *a, struct ipc *controller, struct msg *m)
{
    a->controller = controller;
    return m->type == W_HELD ? on_held(a, m) : m->type == W_HELD_OVER ? on_over(a, m) : -1;
}

void run_ask_free(struct run_ask *a)
{
    struct question *q;
    if (a == NULL)
        return;
    if (a->standing) {
        dprintf(a->tty, "\n");
        sit(a);
    }
    while ((q = TAILQ_FIRST(&a->list)) != NULL) {
        TAILQ_REMOVE(&a->list, q, link);
        free(q);
    }
    event_free(a->readable);
    close(a->tty);
    free(a->granted);
    free(a);
}
