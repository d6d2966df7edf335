/* GET /metrics, in Prometheus' text format (0.0.4): on the API's socket and on the `metrics`
 * listener, which also answers /healthz and /readyz. Every label is of a bounded set: roles,
 * policies, kinds of records, and codes out of the logger's bounded table. */
#include "api_internal.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "counts.h"
#include "meter.h"
#include "proc.h"
#include "wire.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

struct role_line {
    uint8_t role;
    uint32_t processes;
    uint64_t starts, rss, cpu_ms;
    struct meters meters;
};

struct reading {
    uint32_t n, generation;
    struct role_line roles[ROLE_COUNT];
    struct counts counts;
};

static int read_all(struct msg *m, struct reading *v)
{
    if (msg_get_u32(m, &v->n) < 0 || v->n > ARRAY_LEN(v->roles))
        return -1;
    for (uint32_t i = 0; i < v->n; i++) {
        struct role_line *r = &v->roles[i];
        if (msg_get_u8(m, &r->role) < 0 || r->role == 0 || r->role >= ROLE_COUNT ||
            msg_get_u32(m, &r->processes) < 0 || msg_get_u64(m, &r->starts) < 0 ||
            msg_get_u64(m, &r->rss) < 0 || msg_get_u64(m, &r->cpu_ms) < 0 ||
            meters_get(m, &r->meters) < 0)
            return -1;
    }
    if (msg_get_u32(m, &v->generation) < 0 || counts_get(m, &v->counts) < 0)
        return -1;
    return msg_end(m);
}

/* ---- text ---- */

static void head(struct evbuffer *b, const char *name, const char *help, const char *type)
{
    evbuffer_add_printf(b, "# HELP durward_%s %s\n# TYPE durward_%s %s\n", name, help, name, type);
}

static void one(struct evbuffer *b, const char *name, const char *help, const char *type,
                uint64_t value)
{
    head(b, name, help, type);
    evbuffer_add_printf(b, "durward_%s %" PRIu64 "\n", name, value);
}

static const char *role_of(const struct role_line *r)
{
    return role_name((enum role)r->role);
}

static void put_meter(struct evbuffer *b, const struct reading *v, size_t which)
{
    const struct meter_about *a = &meter_about[which];
    head(b, a->name, a->help, a->gauge ? "gauge" : "counter");
    for (uint32_t i = 0; i < v->n; i++)
        if (v->roles[i].meters.count[which])
            evbuffer_add_printf(b, "durward_%s{role=\"%s\"} %" PRIu64 "\n", a->name,
                                role_of(&v->roles[i]), v->roles[i].meters.count[which]);
}

static void put_times(struct evbuffer *b, const char *name, const char *role,
                      const struct meter_times *t)
{
    uint64_t total = 0;
    for (size_t i = 0; i < METER_BUCKETS; i++) {
        char bound[32] = "+Inf";
        if (i < METER_BUCKETS - 1)
            snprintf(bound, sizeof bound, "%g", meter_bound_us[i] / 1e6);
        total += t->bucket[i];
        evbuffer_add_printf(b, "durward_%s_bucket{role=\"%s\",le=\"%s\"} %" PRIu64 "\n", name, role,
                            bound, total);
    }
    evbuffer_add_printf(b, "durward_%s_sum{role=\"%s\"} %.6f\n", name, role, (double)t->us / 1e6);
    evbuffer_add_printf(b, "durward_%s_count{role=\"%s\"} %" PRIu64 "\n", name, role, total);
}

static bool measured(const struct meter_times *t)
{
    for (size_t i = 0; i < METER_BUCKETS; i++)
        if (t->bucket[i])
            return true;
    return false;
}

static void put_span(struct evbuffer *b, const struct reading *v, size_t which)
{
    const struct meter_about *a = &meter_span_about[which];
    head(b, a->name, a->help, "histogram");
    for (uint32_t i = 0; i < v->n; i++)
        if (measured(&v->roles[i].meters.span[which]))
            put_times(b, a->name, role_of(&v->roles[i]), &v->roles[i].meters.span[which]);
}

static void put_roles(struct evbuffer *b, const struct reading *v)
{
    head(b, "role_processes", "Processes of a role", "gauge");
    for (uint32_t i = 0; i < v->n; i++)
        evbuffer_add_printf(b, "durward_role_processes{role=\"%s\"} %" PRIu32 "\n",
                            role_of(&v->roles[i]), v->roles[i].processes);
    head(b, "role_starts_total", "Times a process of a role was started", "counter");
    for (uint32_t i = 0; i < v->n; i++)
        evbuffer_add_printf(b, "durward_role_starts_total{role=\"%s\"} %" PRIu64 "\n",
                            role_of(&v->roles[i]), v->roles[i].starts);
    head(b, "role_memory_bytes", "Resident memory of a role's processes", "gauge");
    for (uint32_t i = 0; i < v->n; i++)
        evbuffer_add_printf(b, "durward_role_memory_bytes{role=\"%s\"} %" PRIu64 "\n",
                            role_of(&v->roles[i]), v->roles[i].rss);
    head(b, "role_cpu_seconds", "Processor time of a role's processes that are there now", "gauge");
    for (uint32_t i = 0; i < v->n; i++)
        evbuffer_add_printf(b, "durward_role_cpu_seconds{role=\"%s\"} %.3f\n",
                            role_of(&v->roles[i]), (double)v->roles[i].cpu_ms / 1e3);
}

static bool is_request(enum record_kind k)
{
    return k == RECORD_ADMITTED || k == RECORD_DENIED;
}

static bool is_end(enum record_kind k)
{
    return k == RECORD_COMPLETED || k == RECORD_ABORTED;
}

static bool is_other(enum record_kind k)
{
    return !is_request(k) && !is_end(k);
}

static void put_counts(struct evbuffer *b, const struct counts *c, const char *name,
                       const char *help, const char *label, bool (*pick)(enum record_kind))
{
    head(b, name, help, "counter");
    for (size_t i = 0; i < c->n; i++) {
        const struct count *e = &c->list[i];
        if (pick(e->kind))
            evbuffer_add_printf(b, "durward_%s{policy=\"%s\",%s=\"%s\",code=\"%s\"} %" PRIu64 "\n",
                                name, e->policy, label, record_kind_name(e->kind), e->code,
                                e->records);
    }
}

/* What the records of DNS names and refused packets add up to: each stands for many. */
static void put_summed(struct evbuffer *b, const struct counts *c)
{
    head(b, "refused_total", "Names asked for and packets, as counted by their records", "counter");
    for (size_t i = 0; i < c->n; i++) {
        const struct count *e = &c->list[i];
        if (e->kind == RECORD_DNS || e->kind == RECORD_PACKET)
            evbuffer_add_printf(
                b, "durward_refused_total{policy=\"%s\",kind=\"%s\",code=\"%s\"} %" PRIu64 "\n",
                e->policy, record_kind_name(e->kind), e->code, e->count);
    }
}

static bool same_policy_before(const struct counts *c, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_end(c->list[i].kind) && strcmp(c->list[i].policy, c->list[at].policy) == 0)
            return true;
    return false;
}

static void put_bytes(struct evbuffer *b, const struct counts *c)
{
    head(b, "request_bytes_total", "Bytes of bodies, out of sandboxes (up) and in (down)",
         "counter");
    for (size_t i = 0; i < c->n; i++) {
        uint64_t up = 0, down = 0;
        if (!is_end(c->list[i].kind) || same_policy_before(c, i))
            continue;
        for (size_t j = i; j < c->n; j++)
            if (is_end(c->list[j].kind) && strcmp(c->list[i].policy, c->list[j].policy) == 0) {
                up += c->list[j].up;
                down += c->list[j].down;
            }
        evbuffer_add_printf(
            b, "durward_request_bytes_total{policy=\"%s\",direction=\"up\"} %" PRIu64 "\n",
            c->list[i].policy, up);
        evbuffer_add_printf(
            b, "durward_request_bytes_total{policy=\"%s\",direction=\"down\"} %" PRIu64 "\n",
            c->list[i].policy, down);
    }
}

static void put_controller(struct evbuffer *b, struct controller *c)
{
    struct timespec now;
    size_t states[MANAGED_SANDBOX_STATES] = {0};
    struct managed_sandbox *r;
    clock_gettime(CLOCK_MONOTONIC, &now);
    head(b, "build_info", "Which build this is", "gauge");
    evbuffer_add_printf(b, "durward_build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
    one(b, "uptime_seconds", "Since the controller was started", "gauge",
        (uint64_t)(now.tv_sec - c->started));
    one(b, "policies", "Policies of the configuration", "gauge", config_policies(c->config));
    TAILQ_FOREACH(r, &c->managed_sandboxes, link)
    states[r->state]++;
    head(b, "sandboxes", "Sandboxes by state", "gauge");
    for (int s = MANAGED_SANDBOX_CREATING; s < MANAGED_SANDBOX_STATES; s++)
        evbuffer_add_printf(b, "durward_sandboxes{state=\"%s\"} %zu\n",
                            managed_sandbox_state_name((enum managed_sandbox_state)s), states[s]);
}

static void put_all(struct evbuffer *b, struct controller *c, const struct reading *v)
{
    put_controller(b, c);
    one(b, "config_generation", "Goes up by one with each reload", "gauge", v->generation);
    put_roles(b, v);
    put_counts(b, &v->counts, "requests_total", "Requests, by decision", "decision", is_request);
    put_counts(b, &v->counts, "request_ends_total", "How admitted requests ended", "end", is_end);
    put_counts(b, &v->counts, "events_total", "Other audit records", "kind", is_other);
    put_summed(b, &v->counts);
    put_bytes(b, &v->counts);
    for (size_t i = 0; i < METER_COUNT; i++)
        put_meter(b, v, i);
    for (size_t i = 0; i < SPAN_COUNT; i++)
        put_span(b, v, i);
}

/* ---- asking and answering ---- */

void api_metrics(struct api *a, struct evhttp_request *req, struct asked *q UNUSED)
{
    api_ask_parent(a, req, &a->metrics, W_METERS_ALL);
}

int api_answer_metrics(struct api *a, struct msg *m)
{
    struct evhttp_request *req = api_first_waiting(&a->metrics);
    struct reading *v = req ? calloc(1, sizeof *v) : NULL;
    struct evbuffer *b = v ? evbuffer_new() : NULL;
    int r = b ? read_all(m, v) : -1;
    if (r == 0) {
        put_all(b, a->controller, v);
        struct evkeyvalq *h = evhttp_request_get_output_headers(req);
        evhttp_add_header(h, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
        evhttp_add_header(h, "Cache-Control", "no-store");
        evhttp_add_header(h, "X-Content-Type-Options", "nosniff");
        evhttp_send_reply(req, 200, NULL, b);
    } else if (req) {
        api_refuse(req, 500, "internal", "the parent's answer is malformed");
    }
    if (b)
        evbuffer_free(b);
    free(v);
    return r;
}

/* ---- the listener ---- */

static void answer_text(struct evhttp_request *req, int status, const char *text)
{
    api_send(req, status, "text/plain; charset=utf-8", text, strlen(text));
}

static bool is_ready(const struct controller *c)
{
    return c->owner.parent && c->owner.builder && c->owner.recording;
}

static void on_request(struct evhttp_request *req, void *arg)
{
    struct api *a = arg;
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
    struct evkeyvalq *in = evhttp_request_get_input_headers(req);
    enum evhttp_cmd_type method = evhttp_request_get_command(req);
    if (!api_head_clear(req))
        return;
    if (path == NULL || (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD))
        answer_text(req, 405, "GET only\n");
    else if (evhttp_find_header(in, "Origin") || evhttp_find_header(in, "Sec-Fetch-Mode"))
        answer_text(req, 403, "not for browsers\n");
    else if (strcmp(path, "/metrics") == 0)
        api_metrics(a, req, NULL);
    else if (strcmp(path, "/healthz") == 0)
        answer_text(req, 200, "ok\n");
    else if (strcmp(path, "/readyz") == 0)
        answer_text(req, is_ready(a->controller) ? 200 : 503,
                    is_ready(a->controller) ? "ready\n" : "not ready\n");
    else
        answer_text(req, 404, "not found\n");
}

int api_serve_metrics(struct api *a, int fd, struct err *err)
{
    a->metrics_http = evhttp_new(a->controller->base);
    if (a->metrics_http == NULL || evhttp_accept_socket(a->metrics_http, fd) < 0) {
        close(fd);
        return err_set(err, ERR_INTERNAL, "cannot serve the metrics");
    }
    evhttp_set_max_body_size(a->metrics_http, 0);
    evhttp_set_max_headers_size(a->metrics_http, API_HEAD_MAX);
    evhttp_set_timeout(a->metrics_http, API_IDLE_SECONDS);
    evhttp_set_gencb(a->metrics_http, on_request, a);
    return 0;
}
