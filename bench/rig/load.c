/* A closed-loop load generator for bench/proxies: TLS connections through a CONNECT proxy, or
 * straight to a TLS proxy, each with one request under way, over one epoll. Prints one JSON object
 * when it is done.
 *
 * usage: load --to ADDRESS:PORT --host NAME --port PORT [--connect] [--ca FILE] [--path PATH]
 *             [--connections N] [--seconds S] [--warmup S] [--new] [--names FIRST] [--limit N]
 *             [--idle] [--events] [--body TEXT] [--pace S] [--trace FILE] [--any]
 *
 * --connect: ask the proxy at ADDRESS:PORT for NAME:PORT first (RFC 9110, section 9.3.6).
 * --ca: verify the leaf and its name; without it nothing is checked (timed runs: the check came
 * before).
 * --new: a new connection, without a session to resume, for each request. --names: to n<i>.NAME
 * each time.
 * --limit: stop after so many replies. --idle: one request a connection, then "idle" is printed and
 * the connections stay until standard input ends. --events: one reply of `data: <CLOCK_MONOTONIC
 * ns>` lines, or of `data: ` and JSON whose first number is that; the latencies are those of the
 * events. --body: it is posted as JSON. --pace: a connection asks at most once in so
 * long, else again at once. --trace: of each reply two 64-bit numbers are appended to FILE,
 * CLOCK_MONOTONIC when it was asked for and how long it took, in ns; errors have the time 2^63.
 * --any: any status counts as a reply. Latencies are in microseconds. Exit 1: an error was
 * counted. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNS_MAX = 4096,
    SAMPLES_MAX = 4000000,
    HEAD_MAX = 4096,
    READ_SIZE = 65536,
    NAME_SIZE = 256,
    IDLE_AT_ONCE = 16,
};

enum stage { DIALING, ASKING, SHAKING, SENDING, READING, RESTING, PACING };

struct conn {
    int fd;
    enum stage stage;
    SSL *ssl;
    uint64_t began; /* of the request, or with --new of the connection; ns */
    uint64_t due;   /* PACING: when the next request goes */
    char name[NAME_SIZE];
    char head[HEAD_MAX]; /* of the reply, until its empty line; with
                            --events the unfinished line */
    size_t head_len, out_len, out_sent;
    char out[2 * NAME_SIZE + 128];
    int64_t left; /* bytes of the body to come; -1: the head is not complete */
};

struct load {
    struct sockaddr_in to;
    const char *host, *port, *path, *ca, *body;
    int connect, fresh, idle, events, any;
    uint64_t pace; /* ns */
    FILE *trace;
    long names; /* the next one's number; -1: all are the host itself */
    long connections, limit;
    double seconds, warmup;
    SSL_CTX *tls;
    int epoll;
    uint64_t measure_at, end_at, measured_ns;
    uint64_t replies, errors, bytes, opened;
    uint32_t *samples;
    size_t n_samples;
    long resting, ended;
    long streaming; /* with --events: replies that have begun */
    long begun;     /* with --idle: connections opened, IDLE_AT_ONCE under way */
    char why[700];  /* of the first error */
    struct conn *conns;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Whole records only, so that the file can be read while it grows. */
static void trace(struct load *l, uint64_t began, uint64_t ns)
{
    uint64_t pair[2] = {began, ns};
    if (l->trace == NULL)
        return;
    fwrite(pair, sizeof(pair), 1, l->trace);
    fflush(l->trace);
}

static void sample(struct load *l, uint64_t ns, uint64_t now)
{
    if (!l->events)
        trace(l, now - ns, ns);
    if (now >= l->measure_at && l->n_samples < SAMPLES_MAX)
        l->samples[l->n_samples++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static void watch(struct load *l, struct conn *c, int op, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = c};
    if (epoll_ctl(l->epoll, op, c->fd, &e) < 0)
        abort();
}

static void conn_close(struct conn *c)
{
    if (c->ssl != NULL)
        SSL_free(c->ssl);
    c->ssl = NULL;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

static void conn_open(struct load *l, struct conn *c)
{
    static const int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        perror("load: socket");
        exit(2);
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (l->names >= 0)
        snprintf(c->name, sizeof(c->name), "n%ld.%s", l->names++, l->host);
    else
        snprintf(c->name, sizeof(c->name), "%s", l->host);
    l->opened++;
    c->stage = DIALING;
    c->began = now_ns();
    c->head_len = 0;
    watch(l, c, EPOLL_CTL_ADD, EPOLLOUT);
    if (connect(c->fd, (struct sockaddr *)&l->to, sizeof(l->to)) < 0 && errno != EINPROGRESS) {
        perror("load: connect");
        exit(2);
    }
}

static void fail(struct load *l, struct conn *c, const char *why)
{
    trace(l, c->began, UINT64_C(1) << 63);
    if (l->errors++ == 0)
        snprintf(l->why, sizeof(l->why), "%s (%s)", why, strerror(errno));
    for (char *p = l->why; *p != '\0'; p++)
        if (*p < ' ' || *p == '"' || *p == '\\')
            *p = '.';
    conn_close(c);
    if ((l->errors > 100 && l->trace == NULL) || l->events || l->idle)
        l->end_at = 0;
    else
        conn_open(l, c);
}

static void start_tls(struct load *l, struct conn *c)
{
    c->ssl = SSL_new(l->tls);
    if (c->ssl == NULL || SSL_set_fd(c->ssl, c->fd) != 1 ||
        SSL_set_tlsext_host_name(c->ssl, c->name) != 1 || SSL_set1_host(c->ssl, c->name) != 1)
        abort();
    SSL_set_connect_state(c->ssl);
    c->stage = SHAKING;
}

static void prepare_request(struct load *l, struct conn *c)
{
    int n =
        snprintf(c->out, sizeof(c->out), "%s %s HTTP/1.1\r\nHost: %s:%s\r\nUser-Agent: load\r\n%s",
                 l->body ? "POST" : "GET", l->path, c->name, l->port, l->body ? "" : "\r\n");
    if (l->body)
        n += snprintf(c->out + n, sizeof(c->out) - (size_t)n,
                      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                      strlen(l->body), l->body);
    c->out_len = (size_t)n;
    c->out_sent = 0;
    c->head_len = 0;
    c->left = -1;
    c->stage = SENDING;
    if (!l->fresh)
        c->began = now_ns();
}

/* The reply's body length, once its head is whole; -1: not yet; -2: not a reply to count. */
static int64_t head_length(struct load *l, struct conn *c, size_t *head_size)
{
    char *end = memmem(c->head, c->head_len, "\r\n\r\n", 4);
    if (end == NULL)
        return c->head_len == sizeof(c->head) ? -2 : -1;
    *head_size = (size_t)(end - c->head) + 4;
    if (c->head_len < 12 || memcmp(c->head, "HTTP/1.1 200", l->any ? 9 : 12) != 0)
        return -2;
    if (l->events)
        return INT64_MAX;
    for (char *p = c->head; p < end;) {
        char *line = memmem(p, (size_t)(end + 2 - p), "\r\n", 2);
        if (strncasecmp(p, "content-length:", 15) == 0)
            return strtoll(p + 15, NULL, 10);
        p = line + 2;
    }
    return -2;
}

static void reply_done(struct load *l, struct conn *c)
{
    uint64_t now = now_ns();
    sample(l, now - c->began, now);
    if (now >= l->measure_at)
        l->replies++;
    l->ended++;
    if (l->limit > 0 && l->ended >= l->limit)
        l->end_at = 0;
    if (l->idle) {
        c->stage = RESTING;
        l->resting++;
        if (l->begun < l->connections)
            conn_open(l, &l->conns[l->begun++]);
    } else if (l->fresh) {
        conn_close(c);
        conn_open(l, c);
    } else if (l->pace > 0) {
        /* They start together, and should not go on so: each has its place within the pace, and who
         * was held up leaves out the turns that it missed. Were it to ask at once, all that one
         * stall held up would ask together from then on. */
        uint64_t first = c->began + l->pace * (uint64_t)(c - l->conns) / (uint64_t)l->connections;
        c->stage = PACING;
        c->due = (c->due > 0 ? c->due : first) + l->pace;
        if (c->due < now)
            c->due += (now - c->due + l->pace - 1) / l->pace * l->pace;
    } else {
        prepare_request(l, c);
    }
}

/* Complete lines of `data: <ns>` among the bytes; chunk sizes between them are passed over. */
static void take_events(struct load *l, struct conn *c, const char *p, size_t n)
{
    uint64_t now = now_ns();
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '\n') {
            if (c->head_len < sizeof(c->head) - 1)
                c->head[c->head_len++] = p[i];
            continue;
        }
        c->head[c->head_len] = '\0';
        if (strncmp(c->head, "data: ", 6) == 0) {
            const char *digits = c->head + 6 + strcspn(c->head + 6, "0123456789");
            sample(l, now - strtoull(digits, NULL, 10), now);
            l->replies++;
            if (l->limit > 0 && (long)l->replies >= l->limit)
                l->end_at = 0;
        }
        c->head_len = 0;
    }
}

/* --warmup of events counts from when all of the streams are there, or from a minute on. */
static void measure_from(struct load *l, uint64_t when)
{
    l->measure_at = when + (uint64_t)(l->warmup * 1e9);
    l->end_at = l->measure_at + (uint64_t)(l->seconds * 1e9);
}

/* What was read of the reply. False: the connection is no longer as it was (closed, or the next
 * request). */
static int take(struct load *l, struct conn *c, const char *p, size_t n)
{
    l->bytes += n;
    if (c->left == -1) {
        size_t had = c->head_len, head_size = 0;
        size_t some = n < sizeof(c->head) - had ? n : sizeof(c->head) - had;
        memcpy(c->head + had, p, some);
        c->head_len += some;
        int64_t length = head_length(l, c, &head_size);
        if (length == -1)
            return 1;
        if (length == -2) {
            errno = 0;
            char why[640];
            snprintf(why, sizeof(why), "the reply is no 200 with a length: %.600s", c->head);
            fail(l, c, why);
            return 0;
        }
        c->left = length;
        c->head_len = 0;
        if (l->events && ++l->streaming == l->connections)
            measure_from(l, now_ns());
        p += head_size - had;
        n -= head_size - had;
    }
    if (l->events) {
        take_events(l, c, p, n);
        return 1;
    }
    c->left -= (int64_t)n;
    if (c->left > 0)
        return 1;
    reply_done(l, c);
    return 0;
}

static void on_tls_error(struct load *l, struct conn *c, int r, const char *what)
{
    int e = SSL_get_error(c->ssl, r);
    if (e == SSL_ERROR_WANT_READ)
        watch(l, c, EPOLL_CTL_MOD, EPOLLIN);
    else if (e == SSL_ERROR_WANT_WRITE)
        watch(l, c, EPOLL_CTL_MOD, EPOLLOUT);
    else
        fail(l, c, what);
    ERR_clear_error();
}

static void advance_tls(struct load *l, struct conn *c)
{
    static char buf[READ_SIZE];
    if (c->stage == SHAKING) {
        int r = SSL_do_handshake(c->ssl);
        if (r != 1) {
            on_tls_error(l, c, r, "TLS handshake");
            return;
        }
        prepare_request(l, c);
    }
    while (c->fd >= 0 && l->end_at != 0) {
        if (c->stage == SENDING) {
            int r = SSL_write(c->ssl, c->out, (int)c->out_len);
            if (r <= 0) {
                on_tls_error(l, c, r, "writing");
                return;
            }
            c->stage = READING;
            watch(l, c, EPOLL_CTL_MOD, EPOLLIN);
        }
        if (c->stage == RESTING || c->ssl == NULL)
            return;
        int r = SSL_read(c->ssl, buf, sizeof(buf));
        if (r <= 0) {
            on_tls_error(l, c, r, "reading");
            return;
        }
        if (c->stage == PACING) {
            fail(l, c, "bytes that nobody asked for");
            return;
        }
        if (!take(l, c, buf, (size_t)r) && c->stage != SENDING)
            return;
    }
}

static void ask(struct load *l, struct conn *c)
{
    char line[2 * NAME_SIZE + 64];
    int n = snprintf(line, sizeof(line), "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", c->name,
                     l->port, c->name, l->port);
    if (write(c->fd, line, (size_t)n) != n) {
        fail(l, c, "CONNECT");
        return;
    }
    c->stage = ASKING;
    watch(l, c, EPOLL_CTL_MOD, EPOLLIN);
}

static void advance(struct load *l, struct conn *c)
{
    if (c->stage == DIALING && l->connect) {
        ask(l, c);
        return;
    }
    if (c->stage == ASKING) {
        ssize_t n = read(c->fd, c->head + c->head_len, sizeof(c->head) - c->head_len);
        if (n <= 0) {
            fail(l, c, "the answer to CONNECT");
            return;
        }
        c->head_len += (size_t)n;
        if (memmem(c->head, c->head_len, "\r\n\r\n", 4) == NULL)
            return;
        if (c->head_len < 12 || memcmp(c->head + 8, " 200", 4) != 0) {
            fail(l, c, "CONNECT refused");
            return;
        }
    }
    if (c->stage == DIALING || c->stage == ASKING)
        start_tls(l, c);
    advance_tls(l, c);
}

/* Connections whose time it is ask. -> ms until the next of them. */
static int keep_pace(struct load *l)
{
    int wait = 100;
    uint64_t now = now_ns();
    for (long i = 0; l->pace > 0 && i < l->begun; i++) {
        struct conn *c = &l->conns[i];
        if (c->fd < 0 || c->stage != PACING)
            continue;
        if (c->due <= now) {
            prepare_request(l, c);
            advance_tls(l, c);
        } else if ((c->due - now) / 1000000 < (uint64_t)wait) {
            wait = (int)((c->due - now) / 1000000) + 1;
        }
    }
    return wait;
}

static void run(struct load *l)
{
    struct epoll_event events[256];
    measure_from(l, now_ns() + (l->events ? UINT64_C(60000000000) : 0));
    while (l->begun < l->connections && !(l->idle && l->begun == IDLE_AT_ONCE))
        conn_open(l, &l->conns[l->begun++]);
    while (l->end_at != 0 && now_ns() < l->end_at && !(l->idle && l->resting == l->connections)) {
        int n = epoll_wait(l->epoll, events, 256, keep_pace(l));
        for (int i = 0; i < n && l->end_at != 0; i++)
            advance(l, events[i].data.ptr);
    }
    uint64_t end = now_ns();
    l->measured_ns = end > l->measure_at ? end - l->measure_at : 0;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double quantile(const struct load *l, double q)
{
    return l->n_samples == 0 ? 0 : l->samples[(size_t)(q * (double)(l->n_samples - 1))] / 1000.0;
}

static void report(struct load *l)
{
    qsort(l->samples, l->n_samples, sizeof(*l->samples), by_size);
    printf("{\"replies\":%llu,\"errors\":%llu,\"seconds\":%.4f,\"bytes\":%llu,\"opened\":%llu,"
           "\"ended\":%ld,"
           "\"resting\":%ld,"
           "\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f,\"why\":\"%s\"}\n",
           (unsigned long long)l->replies, (unsigned long long)l->errors,
           (double)l->measured_ns / 1e9, (unsigned long long)l->bytes,
           (unsigned long long)l->opened, l->ended, l->resting, quantile(l, 0.5), quantile(l, 0.9),
           quantile(l, 0.99), quantile(l, 0.999), l->why);
    fflush(stdout);
}

static void usage(const char *why)
{
    fprintf(stderr, "load: %s (the head of load.c says how it is used)\n", why);
    exit(2);
}

static void parse_to(struct load *l, char *text)
{
    char *colon = strrchr(text, ':');
    if (colon == NULL)
        usage("--to wants ADDRESS:PORT");
    *colon = '\0';
    l->to.sin_family = AF_INET;
    l->to.sin_port = htons((uint16_t)atoi(colon + 1));
    if (inet_pton(AF_INET, text, &l->to.sin_addr) != 1)
        usage("--to wants an IPv4 address");
}

enum kind { FLAG, TEXT, COUNT, SECONDS, NANOSECONDS, ADDRESS, APPENDED };

static const struct {
    const char *name;
    enum kind kind;
    size_t at; /* in struct load */
} options[] = {
    {"to", ADDRESS, offsetof(struct load, to)},
    {"host", TEXT, offsetof(struct load, host)},
    {"port", TEXT, offsetof(struct load, port)},
    {"path", TEXT, offsetof(struct load, path)},
    {"body", TEXT, offsetof(struct load, body)},
    {"ca", TEXT, offsetof(struct load, ca)},
    {"connect", FLAG, offsetof(struct load, connect)},
    {"new", FLAG, offsetof(struct load, fresh)},
    {"names", COUNT, offsetof(struct load, names)},
    {"idle", FLAG, offsetof(struct load, idle)},
    {"events", FLAG, offsetof(struct load, events)},
    {"limit", COUNT, offsetof(struct load, limit)},
    {"connections", COUNT, offsetof(struct load, connections)},
    {"seconds", SECONDS, offsetof(struct load, seconds)},
    {"warmup", SECONDS, offsetof(struct load, warmup)},
    {"pace", NANOSECONDS, offsetof(struct load, pace)},
    {"trace", APPENDED, offsetof(struct load, trace)},
    {"any", FLAG, offsetof(struct load, any)},
};
enum { N_OPTIONS = sizeof options / sizeof *options };

static void take_option(struct load *l, enum kind kind, void *to)
{
    switch (kind) {
    case FLAG:
        *(int *)to = 1;
        break;
    case TEXT:
        *(const char **)to = optarg;
        break;
    case COUNT:
        *(long *)to = atol(optarg);
        break;
    case SECONDS:
        *(double *)to = atof(optarg);
        break;
    case NANOSECONDS:
        *(uint64_t *)to = (uint64_t)(atof(optarg) * 1e9);
        break;
    case ADDRESS:
        parse_to(l, optarg);
        break;
    case APPENDED:
        if ((*(FILE **)to = fopen(optarg, "ab")) == NULL)
            usage("--trace cannot be written");
    }
}

static void parse(struct load *l, int argc, char **argv)
{
    struct option longs[N_OPTIONS + 1] = {0};
    for (int i = 0; i < N_OPTIONS; i++)
        longs[i] = (struct option){options[i].name, options[i].kind != FLAG, NULL, i};
    for (int o; (o = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (o >= N_OPTIONS)
            usage("an option it does not know");
        take_option(l, options[o].kind, (char *)l + options[o].at);
    }
    if (l->host == NULL || l->port == NULL || l->to.sin_port == 0)
        usage("--to, --host and --port are wanted");
    if (l->body != NULL && strlen(l->body) > NAME_SIZE)
        usage("--body is too long");
    if (l->connections < 1 || l->connections > CONNS_MAX)
        usage("--connections wants 1 to 4096");
}

int main(int argc, char **argv)
{
    static struct load l = {.path = "/", .connections = 1, .seconds = 2, .names = -1};
    parse(&l, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    l.tls = SSL_CTX_new(TLS_client_method());
    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    l.conns = calloc((size_t)l.connections, sizeof(*l.conns));
    l.samples = malloc(SAMPLES_MAX * sizeof(*l.samples));
    if (l.tls == NULL || l.epoll < 0 || l.conns == NULL || l.samples == NULL)
        usage("out of memory");
    SSL_CTX_set_session_cache_mode(l.tls, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(l.tls, SSL_MODE_RELEASE_BUFFERS);
    if (l.ca != NULL) {
        SSL_CTX_set_verify(l.tls, SSL_VERIFY_PEER, NULL);
        if (SSL_CTX_load_verify_locations(l.tls, l.ca, NULL) != 1)
            usage("--ca cannot be read");
    }
    run(&l);
    report(&l);
    char byte;
    if (l.idle && l.errors == 0)
        while (read(0, &byte, 1) > 0)
            ;
    for (long i = 0; i < l.begun; i++)
        conn_close(&l.conns[i]);
    free(l.conns);
    free(l.samples);
    SSL_CTX_free(l.tls);
    return l.errors != 0;
}
