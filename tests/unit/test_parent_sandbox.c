/* What controller and builder say of sandboxes: it names local ones alone, a policy stays, nothing
 * of a message holds unless all of it was read; and who cannot be told what holds is ended. */
#include "parent.h"
#include "loop_bed.h"
#include "tap_main.h"
#include "wire.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char yaml[] = "version: 1\n"
                           "policies:\n"
                           "  narrow: { rules: [{ allow: a.example.com }] }\n"
                           "  wide: { rules: [{ allow: b.example.com }] }\n";

struct bed {
    struct parent p;
    struct sandbox bound, token; /* operator's listeners, which have no name */
};

static void bed_open(struct bed *b)
{
    struct err err = {0};
    memset(b, 0, sizeof *b);
    b->p.base = base;
    b->p.config = config_parse(slice_str(yaml), "/t/t.yaml", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->p.config);
    TAILQ_INIT(&b->p.wires);
    TAILQ_INIT(&b->p.children);
    TAILQ_INIT(&b->p.sandboxes);
    b->bound.mode = GATE_BOUND;
    snprintf(b->bound.policy, sizeof b->bound.policy, "narrow");
    b->token.mode = GATE_TOKEN;
    TAILQ_INSERT_TAIL(&b->p.sandboxes, &b->token, link);
    TAILQ_INSERT_TAIL(&b->p.sandboxes, &b->bound, link);
}

static size_t sandboxes(const struct bed *b)
{
    const struct sandbox *s;
    size_t n = 0;
    TAILQ_FOREACH(s, &b->p.sandboxes, link)
    n += s->mode == GATE_LOCAL;
    return n;
}

static void bed_close(struct bed *b)
{
    struct sandbox *s, *next;
    for (s = TAILQ_FIRST(&b->p.sandboxes); s; s = next) {
        next = TAILQ_NEXT(s, link);
        char id[65];
        snprintf(id, sizeof id, "%s", s->id);
        parent_sandbox_gone(&b->p, id);
    }
    CU_ASSERT_EQUAL(sandboxes(b), 0);
    CU_ASSERT_PTR_EQUAL(TAILQ_FIRST(&b->p.sandboxes), &b->token);
    CU_ASSERT_PTR_EQUAL(TAILQ_NEXT(&b->token, link), &b->bound);
    for (size_t i = 0; i < b->bound.n_placeholders; i++) {
        free(b->bound.placeholders[i].text);
        free(b->bound.placeholders[i].secret);
    }
    config_unref(b->p.config);
}

/* W_SANDBOX with one placeholder, or (`whole` 0) without its end. */
static int said(struct bed *b, const char *id, const char *policy, const char *placeholder,
                bool whole)
{
    struct msg m;
    msg_init(&m, W_SANDBOX);
    msg_put_str(&m, id);
    msg_put_str(&m, policy);
    msg_put_u32(&m, 1);
    msg_put_str(&m, placeholder);
    msg_put_str(&m, "secret");
    if (whole) {
        msg_put_bytes(&m, "key", 3);
        msg_put_u32(&m, 0);
    }
    int r = parent_sandbox_new(&b->p, &m);
    msg_done(&m);
    return r;
}

static void unchanged(const struct bed *b)
{
    CU_ASSERT_STRING_EQUAL(b->bound.policy, "narrow");
    CU_ASSERT_STRING_EQUAL(b->token.policy, "");
    CU_ASSERT(b->bound.n_placeholders == 0 && b->token.n_placeholders == 0);
}

/* A listener of the operator's has the name "", and the policy that the operator gave it. */
static void test_names(void)
{
    static const char *const names[] = {"", "x", "sb", "sb-", "SB-x", "rq-x", " sb-x"};
    struct bed b;
    bed_open(&b);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CU_ASSERT_EQUAL(said(&b, names[i], "wide", "p", true), -1);
    unchanged(&b);
    CU_ASSERT_EQUAL(sandboxes(&b), 0);
    CU_ASSERT_EQUAL(said(&b, "rt-x", "wide", "p", true), 0);
    unchanged(&b);
    CU_ASSERT_EQUAL(said(&b, "rp-x", "wide", "p", true), 0);
    unchanged(&b);
    CU_ASSERT_EQUAL(said(&b, "rp-x", "narrow", "p", true),
                    0); /* who reaches a listener bound to it */
    CU_ASSERT(b.bound.n_placeholders == 1 && b.token.n_placeholders == 0);
    bed_close(&b);
}

static const struct sandbox *only(const struct bed *b)
{
    CU_ASSERT_EQUAL_FATAL(sandboxes(b), 1);
    return TAILQ_LAST(&b->p.sandboxes, sandbox_list);
}

static void test_policy_stays(void)
{
    struct bed b;
    bed_open(&b);
    CU_ASSERT_EQUAL(said(&b, "sb-a", "", "p", true), -1); /* would be all of them */
    CU_ASSERT_EQUAL(sandboxes(&b), 0);
    CU_ASSERT_EQUAL(said(&b, "sb-a", "narrow", "p", true), 0);
    CU_ASSERT_EQUAL(said(&b, "sb-a", "wide", "q", true), -1);
    CU_ASSERT_STRING_EQUAL(only(&b)->policy, "narrow");
    CU_ASSERT_STRING_EQUAL(only(&b)->placeholders[0].text, "p");
    CU_ASSERT_EQUAL(said(&b, "sb-a", "narrow", "q", true), 0); /* taken over */
    CU_ASSERT_STRING_EQUAL(only(&b)->placeholders[0].text, "q");
    unchanged(&b);
    bed_close(&b);
}

static void test_whole(void)
{
    struct bed b;
    bed_open(&b);
    CU_ASSERT_EQUAL(said(&b, "sb-a", "narrow", "p", false), -1);
    CU_ASSERT_EQUAL(sandboxes(&b), 0);
    CU_ASSERT_EQUAL(said(&b, "sb-a", "narrow", "p", true), 0);
    CU_ASSERT_EQUAL(said(&b, "sb-a", "narrow", "q", false), -1);
    CU_ASSERT(only(&b)->n_placeholders == 1);
    CU_ASSERT_STRING_EQUAL(only(&b)->placeholders[0].text, "p");
    CU_ASSERT_EQUAL(said(&b, "rp-x", "narrow", "q", false), -1);
    unchanged(&b);
    bed_close(&b);
}

static int listens(struct bed *b, const char *id, uint32_t n, uint32_t fds)
{
    struct msg m;
    msg_init(&m, W_LISTENERS);
    msg_put_str(&m, id);
    msg_put_u32(&m, n);
    for (uint32_t i = 0; i < fds; i++) {
        msg_put_u8(&m, 1);
        msg_put_u32(&m, 80);
        msg_put_fd(&m, open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    int r = parent_sandbox_listeners(&b->p, &m);
    msg_done(&m);
    return r;
}

/* Listeners come of a local sandbox, all or none; what was read of none is closed. */
static void test_listeners(void)
{
    struct bed b;
    bed_open(&b);
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL(listens(&b, "", 1, 1), -1);
    CU_ASSERT_EQUAL(listens(&b, "x", 1, 1), -1);
    CU_ASSERT_EQUAL(sandboxes(&b), 0);
    unchanged(&b);
    CU_ASSERT_EQUAL(listens(&b, "sb-a", 3, 2), -1);
    CU_ASSERT_EQUAL(only(&b)->n_listeners, 0);
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL(after, before + 1);
    close(after);
    close(before);
    CU_ASSERT_EQUAL(listens(&b, "sb-a", 2, 2), 0);
    CU_ASSERT_EQUAL(only(&b)->n_listeners, 2);
    bed_close(&b);
}

/* ---- who cannot be told ---- */

static int none(struct ipc *ch UNUSED, struct msg *m UNUSED, void *arg UNUSED)
{
    return 0;
}

static void ended(struct ipc *ch, const char *why UNUSED, void *arg UNUSED)
{
    ipc_free(ch);
}

/* A process in the role's place, which waits until it is killed. */
static void role_open(struct child *c, int *far)
{
    int fds[2];
    memset(c, 0, sizeof *c);
    CU_ASSERT_EQUAL_FATAL(ipc_pair(fds, NULL), 0);
    c->role = ROLE_INJECTOR;
    c->state = CHILD_READY;
    c->ch = ipc_new(base, fds[0], none, ended, NULL);
    *far = fds[1];
    c->pid = fork();
    CU_ASSERT_FATAL(c->pid >= 0);
    if (c->pid == 0)
        for (;;)
            pause();
}

static void test_told(void)
{
    struct child c;
    struct msg m;
    int far, status = 0;
    role_open(&c, &far);
    msg_init(&m, W_POLICY);
    CU_ASSERT_EQUAL(parent_tell(&c, &m), 0);
    CU_ASSERT_EQUAL(waitpid(c.pid, &status, WNOHANG), 0);
    msg_init(&m, W_POLICY);
    msg_put_fd(&m, -1); /* there was no descriptor for it */
    CU_ASSERT_EQUAL(parent_tell(&c, &m), -1);
    CU_ASSERT_EQUAL(waitpid(c.pid, &status, 0), c.pid);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ipc_free(c.ch);
    close(far);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("parent_sandbox", setup, teardown);
    CU_add_test(s, "names of local sandboxes alone", test_names);
    CU_add_test(s, "a policy stays", test_policy_stays);
    CU_add_test(s, "a message holds whole or not at all", test_whole);
    CU_add_test(s, "listeners, all or none", test_listeners);
    CU_add_test(s, "who cannot be told is ended", test_told);
}
