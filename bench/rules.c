/* What a decision costs among 10,000 rules against one among 10: policy_decide, the entry point
 * that gate, injector, dialer and `explain` share; and what it costs a role to open the image of
 * such a policy and to decide once, beside compiling it. CPU time, the two policies in turn,
 * medians of rounds.
 *
 * usage: bench/rules [RULES] [ROUNDS]        exits 1 when a shape costs more than BAR times as much
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "buf.h"
#include "policy.h"

enum { FEW = 10, LAP = 2000, ROUNDS_MAX = 101 };
#define BAR 2.0

/* One rule (with its comma) and the request that is decided by rule i; "no rule" where want is
 * NULL. # is the number of the rule. */
struct shape {
    const char *name, *rule, *host, *path, *want;
};

static const struct shape shapes[] = {
    {"a host a rule", "{'allow':'h#.example.com/v1/**'}", "h#.example.com", "/v1/chat", "ok"},
    {"no rule", "{'allow':'h#.example.com/v1/**'}", "nobody#.example.net", "/v1/chat", NULL},
    {"under leading dots", "{'allow':'.z#.example.com'}", "a.b.z#.example.com", "/x", "ok"},
    {"one host, paths", "{'allow':'api.example.com/repos/acme/p#/**'}", "api.example.com",
     "/repos/acme/p#/pulls", "ok"},
    {"paths after a star", "{'allow':'api.example.com/repos/*/p#/**'}", "api.example.com",
     "/repos/acme/p#/pulls", "ok"},
    {"globs in a segment", "{'allow':'api.example.com/repos/p#-*/**'}", "api.example.com",
     "/repos/p#-one/x", "ok"},
    {"denies beside an allow", "{'deny':'api.example.com/p#/x'},{'allow':'api.example.com/p#/**'}",
     "api.example.com", "/p#/y", "ok"},
    {"methods",
     "{'allow':'h#.example.com','methods':['GET']},"
     "{'allow':'h#.example.com/w/**','methods':['PUT']}",
     "h#.example.com", "/w/x", "ok"},
};

static void die(const char *what)
{
    fprintf(stderr, "rules: %s\n", what);
    exit(2);
}

/* The text with i for each #. */
static void number(char *to, size_t size, const char *text, size_t i)
{
    char digits[SLICE_U64_TEXT + 1] = "";
    struct slice d = slice_of_u64(i, digits);
    size_t n = 0;
    for (; *text && n + d.n < size; text++) {
        struct slice part = *text == '#' ? d : (struct slice){text, 1};
        memcpy(to + n, part.p, part.n);
        n += part.n;
    }
    to[n] = 0;
}

static struct policy *policy_of(const struct shape *s, size_t n)
{
    struct buf text;
    struct err err = {0};
    char rule[200];
    buf_init(&text, n * sizeof rule + 100);
    if (buf_append_str(&text, "{'policy':'p','rules':[") < 0)
        die("memory");
    for (size_t i = 0; i < n; i++) {
        number(rule, sizeof rule, s->rule, i);
        if (buf_append_str(&text, i ? "," : "") < 0 || buf_append_str(&text, rule) < 0)
            die("memory");
    }
    if (buf_append_str(&text, "]}") < 0)
        die("memory");
    char *json = (char *)buf_data(&text);
    for (size_t i = 0; i < buf_len(&text); i++)
        json[i] = json[i] == '\'' ? '"' : json[i];
    struct policy *p = policy_parse(json, buf_len(&text), &err);
    if (p == NULL)
        die(err.text);
    buf_free(&text);
    return p;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Nanoseconds of a decision by the first, the middle and the last rule, in turn. */
static double lap(const struct shape *s, const struct policy *p, size_t n)
{
    struct authority a[3];
    struct policy_request r[3];
    struct decision d;
    char host[3][80], path[3][80];
    for (size_t k = 0; k < 3; k++) {
        size_t i = k * (n - 1) / 2;
        number(host[k], sizeof host[k], s->host, i);
        number(path[k], sizeof path[k], s->path, i);
        if (authority_parse(&a[k], SCHEME_HTTPS, slice_str(host[k])) < 0)
            die(host[k]);
        r[k] = (struct policy_request){&a[k], SLICE("GET"), slice_str(path[k])};
    }
    double start = now();
    for (size_t i = 0; i < LAP; i++) {
        policy_decide(p, &r[i % 3], &d);
        if ((d.verdict == VERDICT_ALLOW) != (s->want != NULL))
            die("another decision than expected");
    }
    return (now() - start) / LAP;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* Nanoseconds until a role that is given the image has decided; what it holds then. */
static double open_once(const struct shape *s, const struct policy *p, size_t *held)
{
    struct slice image = policy_image_bytes(p);
    struct err err = {0};
    struct authority a;
    struct decision d;
    char host[80], path[80];
    size_t before = in_use();
    number(host, sizeof host, s->host, 1);
    number(path, sizeof path, s->path, 1);
    if (authority_parse(&a, SCHEME_HTTPS, slice_str(host)) < 0)
        die(host);
    double start = now();
    struct policy *q = policy_open((void *)(uintptr_t)image.p, image.n, NULL, &err);
    if (q == NULL)
        die(err.text);
    policy_decide(q, &(struct policy_request){&a, SLICE("GET"), slice_str(path)}, &d);
    double ret = now() - start;
    *held = in_use() - before;
    policy_free(q);
    return ret;
}

static void run_open(const struct shape *s, size_t many, size_t rounds)
{
    struct policy *p[2] = {policy_of(s, FEW), policy_of(s, many)};
    double took[2][ROUNDS_MAX], compiled = now();
    size_t held[2];
    policy_free(policy_of(s, many));
    compiled = now() - compiled;
    for (size_t i = 0; i < rounds; i++)
        for (size_t k = 0; k < 2; k++)
            took[k][i] = open_once(s, p[k], &held[k]);
    for (size_t k = 0; k < 2; k++)
        qsort(took[k], rounds, sizeof took[k][0], by_size);
    printf("A role opens the image: %.3f ms of %d rules, %.3f ms of %zu (%zu bytes); to compile it "
           "takes %.1f ms\n",
           took[0][rounds / 2] / 1e6, FEW, took[1][rounds / 2] / 1e6, many,
           policy_image_bytes(p[1]).n, compiled / 1e6);
    printf("It holds beside the image: %zu bytes, %zu bytes; ratio %.2f\n", held[0], held[1],
           (double)held[1] / (double)held[0]);
    policy_free(p[0]);
    policy_free(p[1]);
}

static bool run(const struct shape *s, size_t many, size_t rounds)
{
    struct policy *p[2] = {policy_of(s, FEW), policy_of(s, many)};
    double took[2][ROUNDS_MAX];
    for (size_t i = 0; i < rounds; i++) {
        took[0][i] = lap(s, p[0], FEW);
        took[1][i] = lap(s, p[1], many);
    }
    for (size_t k = 0; k < 2; k++) {
        qsort(took[k], rounds, sizeof took[k][0], by_size);
        policy_free(p[k]);
    }
    double few = took[0][rounds / 2], lots = took[1][rounds / 2];
    bool met = lots <= few * BAR;
    printf("  %-24s %8.0f ns   %8.0f ns   ratio %6.2f   %s\n", s->name, few, lots, lots / few,
           met ? "met" : "missed");
    return met;
}

int main(int argc, char **argv)
{
    size_t many = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
    size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 21;
    bool met = true;
    if (many < FEW || rounds < 1 || rounds > ROUNDS_MAX)
        die("usage: rules [RULES] [ROUNDS]");
    printf("CPU of a decision among %d rules, among %zu; median of %zu rounds; bar %.1f\n", FEW,
           many, rounds, BAR);
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        met &= run(&shapes[i], many, rounds);
    run_open(&shapes[0], many, rounds);
    return met ? 0 : 1;
}
