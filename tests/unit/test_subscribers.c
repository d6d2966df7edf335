/* Who watches the log: what is kept, what goes out, and how much a slow one misses. */
#include "subscribers.h"
#include "render.h"
#include "tap_main.h"
#include "wire.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bed {
    struct event_base *base;
    struct subscribers *subscribers;
    struct ipc *near, *far;
    uint64_t lines, kept, missed, ends;
    uint64_t last; /* seq */
    bool gap, bad;
    char key[64];
    size_t key_length;
};

static int on_near(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return -1;
}

static int on_far(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct bed *b = arg;
    struct watched w;
    struct slice key;
    uint64_t kinds[RECORD_KINDS] = {0}, n = 0, seq;
    if (m->type != W_WATCHED || subscribers_get(m, &w, &key) < 0) {
        b->bad = true;
        return -1;
    }
    subscribers_count(w.lines, kinds);
    for (size_t i = 0; i < RECORD_KINDS; i++)
        n += kinds[i];
    if (w.part == SUBSCRIBERS_LIVE)
        b->lines += n;
    else
        b->kept += n;
    b->missed = w.skipped[RECORD_DENIED];
    if (w.part == SUBSCRIBERS_KEPT_END) {
        b->ends++;
        memcpy(b->key, key.p, key.n);
        b->key_length = key.n;
    }
    for (struct slice s = w.lines; s.n;) {
        ssize_t nl = slice_find(s, '\n'), comma = slice_find(s, ',');
        b->bad |= nl < 0 || slice_u64((struct slice){s.p + 7, (size_t)comma - 7}, INT64_MAX, &seq);
        b->gap |= b->last && seq != b->last + 1;
        b->last = seq;
        s.p += nl + 1;
        s.n -= (size_t)nl + 1;
    }
    return 0;
}

static void on_closed(struct ipc *ch UNUSED, const char *why UNUSED, void *arg)
{
    ((struct bed *)arg)->bad = true;
}

static void put(struct bed *b, uint64_t from, uint64_t n, size_t length)
{
    size_t room = (n + 1) * (length + 200);
    char *text = malloc(room), *at = text;
    for (uint64_t i = 0; i < n; i++)
        at += snprintf(at, room - (size_t)(at - text),
                       "{\"seq\":%llu,\"prev\":\"%064d\",\"kind\":\"denied\",\"id\":\"1-1\","
                       "\"path\":\"%0*d\"}\n",
                       (unsigned long long)(from + i), 0, (int)length, 0);
    subscribers_lines(b->subscribers, (struct slice){text, (size_t)(at - text)});
    free(text);
}

static void turns(struct bed *b)
{
    for (int i = 0; i < 200; i++)
        event_base_loop(b->base, EVLOOP_NONBLOCK);
}

static void bed_open(struct bed *b)
{
    int fds[2];
    memset(b, 0, sizeof *b);
    b->base = event_base_new();
    b->subscribers = subscribers_new(SLICE("0123456789abcdef0123456789abcdef"));
    CU_ASSERT_FATAL(ipc_pair(fds, NULL) == 0);
    b->near = ipc_new(b->base, fds[0], on_near, on_closed, b);
    b->far = ipc_new(b->base, fds[1], on_far, on_closed, b);
}

static void bed_close(struct bed *b)
{
    CU_ASSERT_FALSE(b->bad);
    subscribers_free(b->subscribers);
    ipc_free(b->near);
    ipc_free(b->far);
    event_base_free(b->base);
}

static void follows(void)
{
    struct bed b;
    bed_open(&b);
    put(&b, 1, 100, 200);
    subscribers_watch(b.subscribers, b.near, true);
    turns(&b);
    CU_ASSERT_EQUAL(b.kept, 100);
    CU_ASSERT_EQUAL(b.ends, 1);
    CU_ASSERT_EQUAL(b.key_length, 32);
    put(&b, 101, 50, 200);
    turns(&b);
    CU_ASSERT_EQUAL(b.lines, 50);
    CU_ASSERT_FALSE(b.gap);
    put(&b, 151, 3, 60000); /* each a message of its own */
    turns(&b);
    CU_ASSERT_EQUAL(b.lines, 53);
    CU_ASSERT_FALSE(b.gap);
    subscribers_leave(b.subscribers, b.far); /* somebody else's */
    put(&b, 154, 1, 10);
    turns(&b);
    CU_ASSERT_EQUAL(b.lines, 54);
    subscribers_leave(b.subscribers, b.near);
    put(&b, 155, 1, 10);
    turns(&b);
    CU_ASSERT_EQUAL(b.lines, 54);
    bed_close(&b);
}

/* Old lines go, whole ones, and what is kept has no gap. */
static void keeps(void)
{
    struct bed b;
    bed_open(&b);
    for (uint64_t i = 0; i < 100; i++)
        put(&b, 1 + i * 200, 200, 300);
    subscribers_watch(b.subscribers, b.near, true);
    turns(&b);
    CU_ASSERT(b.kept > 2000 && b.kept < 6000);
    CU_ASSERT_FALSE(b.gap);
    CU_ASSERT_EQUAL(b.last, 20000);
    bed_close(&b);
}

/* The logger does not wait, its memory is bounded, and nothing is missed uncounted. */
static void passes_over(void)
{
    struct bed b;
    bed_open(&b);
    subscribers_watch(b.subscribers, b.near, true);
    turns(&b);
    ipc_pause(b.far);
    for (uint64_t i = 0; i < 200; i++)
        put(&b, 1 + i * 200, 200, 300);
    CU_ASSERT(ipc_queued(b.near) < 2 * SUBSCRIBERS_BEHIND);
    ipc_resume(b.far);
    for (int i = 0; i < 20; i++)
        turns(&b);
    put(&b, 40001, 1, 10);
    turns(&b);
    CU_ASSERT(b.missed > 10000);
    CU_ASSERT_EQUAL(b.lines + b.missed, 40001);
    CU_ASSERT_EQUAL(b.last, 40001);
    bed_close(&b);
}

static void cuts(void)
{
    struct slice all = SLICE("aa\nbbbb\ncc\n");
    CU_ASSERT_EQUAL(subscribers_cut(all, 100).n, 11);
    CU_ASSERT_EQUAL(subscribers_cut(all, 8).n, 8);
    CU_ASSERT_EQUAL(subscribers_cut(all, 7).n, 3);
    CU_ASSERT_EQUAL(subscribers_cut(all, 1).n, 3);
    uint64_t kinds[RECORD_KINDS] = {0};
    subscribers_count(
        SLICE("{\"seq\":1,\"kind\":\"dns\"}\nnothing\n{\"kind\":\"dns\"\n{\"kind\":\"x\"\n"),
        kinds);
    CU_ASSERT_EQUAL(kinds[RECORD_DNS], 2);
    CU_ASSERT_EQUAL(kinds[0], 2);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("audience", NULL, NULL);
    CU_add_test(s, "lines are cut whole and counted by kind", cuts);
    CU_add_test(s, "a watcher has what is kept, then what is written", follows);
    CU_add_test(s, "the last lines are kept, without a gap", keeps);
    CU_add_test(s, "a slow one is passed over, and told how much it missed", passes_over);
}
