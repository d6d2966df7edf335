/* The console: a page for people, on a loopback port of this host.
 *
 * `durward console` asks on the unix socket for a link with a token that is good once and for five
 * minutes; it stands behind '#', which a browser sends to nobody. The page trades it for a session
 * and shows that in an Authorization header. No cookie: one would go to every port of this host,
 * also to one that a sandbox publishes. Hosts other than loopback names, and other origins, are
 * refused, so that a page elsewhere that was led here (by a name that changed) gets nothing. What
 * it may ask is in api_routes.c. */
#include "api_internal.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "console_assets.h"

enum {
    TOKEN_BYTES = 32,
    TOKEN_TEXT = 2 * TOKEN_BYTES,
    TICKETS_MAX = 16,
    SESSIONS_MAX = 64,
    TICKET_SECONDS = 300,
    SESSION_SECONDS = 12 * 3600,
    BODY_MAX = 64 * 1024,
};

struct pass {
    char text[TOKEN_TEXT + 1];
    time_t ends; /* monotonic; 0: free */
};

struct console {
    struct api *api;
    struct evhttp *http;
    struct pass tickets[TICKETS_MAX];
    struct pass sessions[SESSIONS_MAX];
};

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

/* ---- passes ---- */

static time_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* A fresh one in the free place, or in that which ends first. NULL: no random bytes. */
static const char *issue(struct pass *list, size_t n, time_t seconds)
{
    unsigned char raw[TOKEN_BYTES];
    struct pass *p = list;
    if (getrandom(raw, sizeof raw, 0) != sizeof raw)
        return NULL;
    for (size_t i = 1; i < n; i++)
        if (list[i].ends < p->ends)
            p = &list[i];
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(p->text + 2 * i, 3, "%02x", (unsigned)raw[i]);
    p->ends = now() + seconds;
    return p->text;
}

static struct pass *find(struct pass *list, size_t n, const char *text)
{
    struct pass *found = NULL;
    if (text == NULL || strlen(text) != TOKEN_TEXT)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (list[i].ends > now() && CRYPTO_memcmp(list[i].text, text, TOKEN_TEXT) == 0)
            found = &list[i];
    return found;
}

/* ---- who asks ---- */

/* "127.0.0.1", "localhost" or "[::1]", any port (it may be reached through a tunnel of ssh). */
static bool is_here(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; host && i < ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        if (strncasecmp(host, names[i], n) == 0 && (host[n] == 0 || host[n] == ':') &&
            strspn(host + n, ":0123456789") == strlen(host + n))
            return true;
    }
    return false;
}

static bool from_its_page(struct evhttp_request *req)
{
    struct evkeyvalq *h = evhttp_request_get_input_headers(req);
    const char *host = evhttp_find_header(h, "Host"), *origin = evhttp_find_header(h, "Origin");
    const char *site = evhttp_find_header(h, "Sec-Fetch-Site");
    if (!is_here(host))
        return false;
    if (origin && (strncmp(origin, "http://", 7) != 0 || strcasecmp(origin + 7, host) != 0))
        return false;
    return site == NULL || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

static struct pass *session_of(struct console *c, struct evhttp_request *req)
{
    const char *said = evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization");
    if (said == NULL || strncmp(said, "Bearer ", 7) != 0)
        return NULL;
    return find(c->sessions, SESSIONS_MAX, said + 7);
}

/* ---- answers ---- */

static void guard(struct evhttp_request *req)
{
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    evhttp_add_header(h, "Content-Security-Policy", policy);
    evhttp_add_header(h, "X-Frame-Options", "DENY");
    evhttp_add_header(h, "Referrer-Policy", "no-referrer");
    evhttp_add_header(h, "Cross-Origin-Opener-Policy", "same-origin");
    evhttp_add_header(h, "Cross-Origin-Resource-Policy", "same-origin");
    evhttp_add_header(h, "Permissions-Policy", "camera=(), geolocation=(), microphone=()");
}

static bool send_asset(struct evhttp_request *req, const char *path)
{
    for (const struct console_asset *a = console_assets; a->path; a++)
        if (strcmp(a->path, path) == 0) {
            api_send(req, 200, a->type, a->bytes, a->n);
            return true;
        }
    return false;
}

static void login(struct console *c, struct evhttp_request *req)
{
    struct err err = {0};
    const char *token = NULL;
    json_t *body = asked_body(req, "token", &err);
    struct pass *ticket = NULL;
    if (body && asked_text(body, "token", TOKEN_TEXT, &token, &err) == 0)
        ticket = find(c->tickets, TICKETS_MAX, token);
    const char *session = ticket ? issue(c->sessions, SESSIONS_MAX, SESSION_SECONDS) : NULL;
    if (ticket)
        *ticket = (struct pass){.ends = 0};
    if (session)
        api_reply(req, 200, json_pack("{s:s}", "session", session));
    else
        api_refuse(req, 401, "login", "this link was used or is too old; run 'durward console'");
    json_decref(body);
}

static void on_request(struct evhttp_request *req, void *arg)
{
    struct console *c = arg;
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    enum evhttp_cmd_type method = evhttp_request_get_command(req);
    guard(req);
    if (!api_head_clear(req))
        return;
    if (path == NULL || !from_its_page(req))
        api_refuse(req, 403, "forbidden", "this is for its own page on this host");
    else if (method == EVHTTP_REQ_GET && send_asset(req, path))
        return;
    else if (method == EVHTTP_REQ_POST && strcmp(path, "/login") == 0)
        login(c, req);
    else if (strncmp(path, "/v1/", 4) != 0)
        api_refuse(req, 404, "not_found", "there is no such path");
    else if (session_of(c, req) == NULL)
        api_refuse(req, 401, "login", "run 'durward console' for a link");
    else
        api_route(c->api, req, LISTENER_CONSOLE);
}

/* ---- the listener ---- */

int api_serve_console(struct api *a, int fd, struct err *err)
{
    struct console *c = calloc(1, sizeof *c);
    if (c)
        c->http = evhttp_new(a->controller->base);
    if (c == NULL || c->http == NULL || evhttp_accept_socket(c->http, fd) < 0) {
        close(fd);
        console_free(c);
        return err_set(err, ERR_INTERNAL, "cannot serve the console");
    }
    c->api = a;
    a->console = c;
    evhttp_set_max_body_size(c->http, BODY_MAX);
    evhttp_set_max_headers_size(c->http, API_HEAD_MAX);
    evhttp_set_timeout(c->http, API_IDLE_SECONDS);
    evhttp_set_gencb(c->http, on_request, c);
    return 0;
}

void console_free(struct console *c)
{
    if (c == NULL)
        return;
    if (c->http)
        evhttp_free(c->http);
    OPENSSL_cleanse(c, sizeof *c);
    free(c);
}

/* POST /v1/console, on the unix socket only. */
void api_console(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    char url[256];
    const char *at = config_console(a->controller->config), *ticket;
    if (a->console == NULL || at == NULL) {
        api_refuse(req, 404, "no_console",
                   "there is no console: add '- { console: 127.0.0.1:9465 }' to 'listen'");
        return;
    }
    ticket = issue(a->console->tickets, TICKETS_MAX, TICKET_SECONDS);
    if (ticket == NULL) {
        api_refuse(req, 500, "internal", "no random bytes");
        return;
    }
    snprintf(url, sizeof url, "http://%s/#%s", at, ticket);
    api_reply(req, 201, json_pack("{s:s, s:i}", "url", url, "expires_in", TICKET_SECONDS));
    OPENSSL_cleanse(url, sizeof url);
}
