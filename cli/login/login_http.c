/* Connects, asks, and reads the answer to its end or to a bound. */
#include "login_http.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "http1_body.h"
#include "http1_head.h"
#include "io.h"
#include "reach.h"

enum {
    HEAD_MAX = 32 * 1024,
    PIECE = 16 * 1024,
    READ_SECONDS = 20,
    WHOLE_SECONDS = 40,
    REDIRECTS = 3
};

static const struct limits bounds = {.head_bytes = HEAD_MAX, .headers = 100, .target_bytes = 8192};

int login_net_open(struct login_net *n, const struct config *c, struct err *err)
{
    const char *const *more = c ? config_upstream_ca(c) : NULL;
    *n = (struct login_net){.config = c, .tls = io_tls_client_ctx()};
    if (n->tls == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (SSL_CTX_set_default_verify_paths(n->tls) != 1)
        return err_set(err, ERR_PARSE, "the system's roots cannot be read");
    for (; more && *more; more++)
        if (SSL_CTX_load_verify_locations(n->tls, *more, NULL) != 1)
            return err_set(err, ERR_PARSE, "%s: no certificates there", *more);
    return 0;
}

void login_net_close(struct login_net *n)
{
    SSL_CTX_free(n->tls);
    n->tls = NULL;
}

void login_answer_done(struct login_answer *a)
{
    json_decref(a->json);
    a->json = NULL;
}

/* ---- connecting ---- */

/* The address that upstream.resolve gives the host; NULL: none. */
static const char *fixed_address(const struct login_net *n, const struct authority *at)
{
    size_t count = 0;
    const struct config_resolve *r = n->config ? config_resolves(n->config, &count) : NULL;
    for (size_t i = 0; i < count; i++)
        if (r[i].port == at->port && strcmp(r[i].host, at->host) == 0)
            return r[i].address;
    return NULL;
}

/* What the user named may be anywhere; what a document of it names may not lead from outside to
 * where only this host can go. */
static int check_place(struct login_net *n, int fd, const struct login_url *at, struct err *err)
{
    struct sockaddr_storage who;
    socklen_t len = sizeof who;
    if (getpeername(fd, (struct sockaddr *)&who, &len) < 0)
        return err_sys(err, "getpeername");
    const char *why = address_blocked((const struct sockaddr *)&who);
    if (!n->asked)
        n->near = why != NULL;
    else if (why && !n->near)
        return err_set(err, ERR_DENIED,
                       "%s, which the server named, leads to an address of this network (%s)",
                       at->at.host, why);
    return 0;
}

static int connect_to(struct login_net *n, const struct login_url *at, struct err *err)
{
    struct authority where = at->at;
    const char *fixed = fixed_address(n, &at->at);
    if (fixed && authority_parse(&where, SCHEME_HTTPS, slice_str(fixed)) < 0)
        return err_set(err, ERR_PARSE, "upstream.resolve: '%s' is not an address", fixed);
    int fd = reach_tcp(&where, READ_SECONDS, "server", err);
    if (fd >= 0 && fixed == NULL && check_place(n, fd, at, err) < 0) {
        close(fd);
        return -1;
    }
    n->asked = true;
    return fd;
}

struct line {
    const struct login_url *at;
    int fd;
    SSL *ssl;
    struct buf in;
    time_t end;
    bool ended;
};

static int greet(struct login_net *n, struct line *l, struct err *err)
{
    l->ssl = SSL_new(n->tls);
    if (l->ssl == NULL)
        return err_set(err, ERR_INTERNAL, "out of memory");
    enum reach_tls got = reach_tls(l->ssl, l->fd, &l->at->at);
    if (got == REACH_TLS_GOOD)
        return 0;
    return got == REACH_TLS_UNTRUSTED
               ? err_set(err, ERR_DENIED, "the certificate of %s is not good: %s", l->at->at.host,
                         X509_verify_cert_error_string(SSL_get_verify_result(l->ssl)))
               : err_set(err, ERR_UNREADY, "%s does not speak TLS with us", l->at->at.host);
}

static time_t seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* ---- asking ---- */

static int push(struct line *l, struct slice s, struct err *err)
{
    while (s.n > 0) {
        int n = SSL_write(l->ssl, s.p, s.n > PIECE ? PIECE : (int)s.n);
        if (n <= 0)
            return err_set(err, ERR_UNREADY, "%s hung up", l->at->at.host);
        s.p += n;
        s.n -= (size_t)n;
    }
    return 0;
}

static int send_request(struct line *l, const struct login_ask *q, struct err *err)
{
    struct buf head;
    char host[HOST_TEXT_MAX + 16];
    const char *path = login_url_path(l->at), *slash = path[0] == '/' ? "" : "/";
    buf_init_wiped(&head, HEAD_MAX);
    int bad = buf_printf(&head,
                         "%s %s%s HTTP/1.1\r\nHost: %s\r\nAccept: application/json%s\r\n"
                         "User-Agent: durward\r\nConnection: close\r\n",
                         q->method, slash, path, authority_text(&l->at->at, host, sizeof host),
                         q->head_only ? ", text/event-stream" : "");
    if (q->authorization)
        bad |= buf_printf(&head, "Authorization: %s\r\n", q->authorization);
    if (q->type)
        bad |= buf_printf(&head, "Content-Type: %s\r\nContent-Length: %zu\r\n", q->type, q->body.n);
    bad |= buf_append_str(&head, "\r\n");
    int r =
        bad ? err_set(err, ERR_LIMIT, "the request is too long") : push(l, buf_slice(&head), err);
    buf_free(&head);
    return r == 0 && q->type ? push(l, q->body, err) : r;
}

/* ---- the answer ---- */

static int fill(struct line *l, struct err *err)
{
    unsigned char *to = buf_reserve(&l->in, PIECE);
    if (to == NULL)
        return err_set(err, ERR_LIMIT, "the answer of %s is longer than %d bytes", l->at->at.host,
                       LOGIN_ANSWER_MAX);
    ERR_clear_error();
    int n = seconds() < l->end ? SSL_read(l->ssl, to, PIECE) : 0;
    if (n > 0) {
        buf_commit(&l->in, (size_t)n);
        return 0;
    }
    if (seconds() >= l->end || SSL_get_error(l->ssl, n) == SSL_ERROR_WANT_READ)
        return err_set(err, ERR_UNREADY, "%s did not answer within its time", l->at->at.host);
    l->ended = true;
    return 0;
}

static int no_http(const struct line *l, const char *why, struct err *err)
{
    return err_set(err, ERR_UPSTREAM, "%s answers with no HTTP that can be read (%s)",
                   l->at->at.host, why);
}

/* The head of the final answer; those before it are dropped. */
static int read_head(struct line *l, const char *method, struct head *h, struct err *err)
{
    size_t scanned = 0;
    struct refusal why = {0, ""};
    for (;;) {
        ssize_t end = http1_head_end(buf_slice(&l->in), HEAD_MAX, &scanned);
        if (end < 0 || (end == 0 && l->ended))
            return no_http(l, end < 0 ? "its head" : "it ended early", err);
        if (end == 0) {
            if (fill(l, err) < 0)
                return -1;
            continue;
        }
        http_head_free(h);
        if (http1_parse_reply(h, (struct slice){(char *)buf_data(&l->in), (size_t)end},
                              slice_str(method), NULL, &bounds, &why) < 0)
            return no_http(l, why.code, err);
        buf_drain(&l->in, (size_t)end);
        if (h->status >= 200)
            return 0;
        scanned = 0;
    }
}

static int read_body(struct line *l, const struct head *h, struct buf *to, struct err *err)
{
    struct http1_body b;
    int r = 0;
    http1_body_init(&b, h->body, h->length);
    while (r == 0 && !b.done) {
        struct slice out;
        ssize_t used = http1_body_read(&b, buf_slice(&l->in), PIECE, &out);
        if (used < 0)
            r = no_http(l, "its body", err);
        else if (out.n > 0 && buf_append_slice(to, out) < 0)
            r = err_set(err, ERR_LIMIT, "the answer of %s is longer than %d bytes", l->at->at.host,
                        LOGIN_ANSWER_MAX);
        else if (used > 0)
            buf_drain(&l->in, (size_t)used);
        else if (l->ended && h->body == BODY_CLOSE)
            break;
        else if (l->ended)
            r = no_http(l, "it ended early", err);
        else
            r = b.done ? 0 : fill(l, err);
    }
    http1_body_free(&b);
    return r;
}

static void take_fields(const struct head *h, struct login_answer *a)
{
    size_t at = 0;
    const struct field *to = http_head_find(h, "location");
    for (size_t i = 0; i < h->n; i++)
        if (slice_eq_str(h->fields[i].name, "www-authenticate") &&
            at + h->fields[i].value.n + 3 < sizeof a->challenge)
            at += (size_t)snprintf(a->challenge + at, sizeof a->challenge - at, "%s%.*s",
                                   at ? ", " : "", SL(h->fields[i].value));
    if (to && to->value.n <= LOGIN_URL_MAX)
        snprintf(a->location, sizeof a->location, "%.*s", SL(to->value));
}

static int read_answer(struct line *l, const struct login_ask *q, struct login_answer *a,
                       struct err *err)
{
    struct head h;
    struct buf body;
    http_head_init(&h);
    buf_init_wiped(&body, LOGIN_ANSWER_MAX);
    int r = read_head(l, q->method, &h, err);
    if (r == 0) {
        a->status = h.status;
        take_fields(&h, a);
        r = q->head_only ? 0 : read_body(l, &h, &body, err);
    }
    if (r == 0 && buf_len(&body) > 0)
        a->json =
            json_loadb((const char *)buf_data(&body), buf_len(&body), JSON_REJECT_DUPLICATES, NULL);
    buf_free(&body);
    http_head_free(&h);
    return r;
}

int login_http(struct login_net *n, const struct login_ask *q, struct login_answer *ret,
               struct err *err)
{
    struct line l = {.at = q->at, .end = seconds() + WHOLE_SECONDS};
    memset(ret, 0, sizeof *ret);
    buf_init_wiped(&l.in, HEAD_MAX + LOGIN_ANSWER_MAX);
    l.fd = connect_to(n, q->at, err);
    int r = l.fd < 0 || greet(n, &l, err) < 0 || send_request(&l, q, err) < 0
                ? -1
                : read_answer(&l, q, ret, err);
    SSL_free(l.ssl);
    if (l.fd >= 0)
        close(l.fd);
    buf_free(&l.in);
    if (r < 0)
        login_answer_done(ret);
    return r;
}

/* Where a document's redirect leads: its own origin only. */
static int follow(struct login_url *to, const struct login_url *from, const char *location,
                  struct err *err)
{
    char whole[2 * LOGIN_URL_MAX];
    bool near = location[0] == '/' && location[1] != '/';
    snprintf(whole, sizeof whole, "%.*s%s", near ? (int)from->path : 0, from->text, location);
    if (login_url_read(to, whole, "a redirect", err) < 0)
        return -1;
    return login_url_same_origin(to, from)
               ? 0
               : err_set(err, ERR_DENIED,
                         "%s leads elsewhere, to %s: no redirect is followed there", from->text,
                         to->at.host);
}

int login_document(struct login_net *n, const struct login_url *at, json_t **ret, struct err *err)
{
    struct login_url here = *at, next;
    struct login_answer a;
    *ret = NULL;
    for (int followed = 0; followed <= REDIRECTS; followed++) {
        struct login_ask q = {.method = "GET", .at = &here};
        if (login_http(n, &q, &a, err) < 0)
            return -1;
        if (a.status / 100 == 3 && a.location[0]) {
            int r = follow(&next, &here, a.location, err);
            login_answer_done(&a);
            if (r < 0)
                return -1;
            here = next;
            continue;
        }
        if (a.status / 100 == 4) {
            login_answer_done(&a);
            return 0;
        }
        if (a.status == 200 && json_is_object(a.json)) {
            *ret = json_incref(a.json);
            login_answer_done(&a);
            return 1;
        }
        login_answer_done(&a);
        return err_set(err, ERR_UPSTREAM, "%s is not a JSON document: status %u", here.text,
                       a.status);
    }
    return err_set(err, ERR_UPSTREAM, "%s: more than %d redirects", at->text, REDIRECTS);
}
