/* The writer's side of a journal, against a logger played by the test. */
#include "tap_main.h"

#include "audit_fixture.h"
#include "backlog.h"
#include "body_capture.h"
#include "record_read.h"

#include <CUnit/CUnit.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

void suite_journal(void);

struct far_end { /* the logger, played */
    struct event_base *base;
    struct journal *j;
    int sock;
    char *dir, path[512];
    unsigned ready;
};

static void on_ready(void *arg)
{
    ((struct far_end *)arg)->ready++;
}

static void give_file(struct far_end *f, uint64_t credit, int flags)
{
    struct msg m;
    int fd = open(f->path, flags | O_CREAT | O_CLOEXEC, 0600);
    msg_init(&m, W_JOURNAL);
    msg_put_u32(&m, 31);
    msg_put_u64(&m, credit);
    msg_put_u64(&m, 1);
    msg_put_fd(&m, fd);
    CU_ASSERT_EQUAL(msg_send(f->sock, &m), 0);
    msg_done(&m);
    rig_turns(f->base, 10);
}

static void attach(struct far_end *f)
{
    int fds[2];
    ipc_pair(fds, NULL);
    f->sock = fds[0];
    journal_attach(f->j, fds[1], 1);
}

static void begin(struct far_end *f, bool synced, uint64_t credit)
{
    memset(f, 0, sizeof *f);
    f->base = event_base_new();
    f->dir = fixture_dir();
    snprintf(f->path, sizeof f->path, "%s/j", f->dir);
    f->j = journal_new(f->base, synced);
    journal_on_ready(f->j, on_ready, f);
    attach(f);
    if (credit)
        give_file(f, credit, O_WRONLY | O_APPEND);
}

static void finish(struct far_end *f)
{
    journal_free(f->j);
    close(f->sock);
    event_base_free(f->base);
    fixture_remove(f->dir);
}

/* The next message's type and count; 0 when there is none. */
static uint16_t hear(struct far_end *f, uint64_t *count)
{
    struct msg m;
    struct msghdr probe = {0};
    ssize_t there = -1;
    for (int i = 0; i < 30 && there < 0; i++) { /* in `written` the logger is told within 20 ms */
        rig_turns(f->base, 5);
        there = recvmsg(f->sock, &probe, MSG_PEEK | MSG_DONTWAIT);
    }
    if (there < 0)
        return 0;
    if (msg_recv(f->sock, &m) != 1)
        return 0;
    uint16_t type = m.type;
    CU_ASSERT_EQUAL(msg_get_u64(&m, count) | msg_end(&m), 0);
    msg_done(&m);
    return type;
}

static void say(struct far_end *f, uint16_t type, uint64_t count)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_u64(&m, count);
    CU_ASSERT_EQUAL(msg_send(f->sock, &m), 0);
    msg_done(&m);
    rig_turns(f->base, 10);
}

static off_t length(const struct far_end *f)
{
    struct stat st;
    return stat(f->path, &st) == 0 ? st.st_size : -1;
}

static void count(void *arg, bool ok)
{
    int *n = arg;
    *n += ok ? 1 : 100;
}

/* One turn of the loop, as far as nothing has to be waited for. */
static void turn(struct far_end *f)
{
    event_base_loop(f->base, EVLOOP_NONBLOCK);
}

/* A record that somebody waits for, and the turn's end: what it heard. */
static int append(struct far_end *f, uint64_t counter)
{
    struct record r;
    static int answers;
    answers = 0;
    record_init(&r, RECORD_ADMITTED, counter);
    if (journal_append(f->j, &r, count, &answers))
        turn(f);
    return answers;
}

static void test_without_file(void)
{
    struct far_end f;
    begin(&f, false, 0);
    CU_ASSERT_FALSE(journal_ready(f.j));
    CU_ASSERT_EQUAL(journal_next(f.j), 0);
    CU_ASSERT_EQUAL(append(&f, 1), 100);
    CU_ASSERT_EQUAL(f.ready, 0);
    give_file(&f, 1000, O_WRONLY | O_APPEND);
    CU_ASSERT_EQUAL(f.ready, 1);
    CU_ASSERT_TRUE(journal_ready(f.j));
    char id[32];
    CU_ASSERT_EQUAL(journal_next(f.j), 1);
    CU_ASSERT_EQUAL(journal_next(f.j), 2);
    CU_ASSERT_STRING_EQUAL(journal_id(f.j, 2, id, sizeof id), "31-2");
    CU_ASSERT_EQUAL(journal_channel(f.j), 31);
    finish(&f);
}

static void test_written(void)
{
    struct far_end f;
    uint64_t n = 0;
    unsigned char bytes[256];
    begin(&f, false, 1000);
    CU_ASSERT_EQUAL(append(&f, 9), 1);
    CU_ASSERT_EQUAL(append(&f, 0), 1); /* takes the next counter */
    CU_ASSERT_EQUAL(length(&f), 42);
    CU_ASSERT_EQUAL(hear(&f, &n), W_TICK); /* one for both */
    CU_ASSERT_EQUAL(n, 42);
    CU_ASSERT_EQUAL(hear(&f, &n), 0);
    int fd = open(f.path, O_RDONLY);
    CU_ASSERT_EQUAL(read(fd, bytes, sizeof bytes), 42);
    close(fd);
    struct record_view v;
    const char *why;
    CU_ASSERT_EQUAL(record_read(&v, bytes, 42, &why), 21);
    CU_ASSERT_EQUAL(v.counter, 9);
    CU_ASSERT_EQUAL(record_read(&v, bytes + 21, 21, &why), 21);
    CU_ASSERT_EQUAL(v.counter, 1);
    finish(&f);
}

static bool answered(void *arg)
{
    return *(int *)arg != 0;
}

static struct journal_wait *append_of(struct far_end *f, const char *sandbox, int *answers)
{
    struct record r;
    record_init(&r, RECORD_ADMITTED, 0);
    record_put_str(&r, RF_SANDBOX, sandbox);
    return journal_append(f->j, &r, count, answers);
}

/* A logger whose disk rests for a while is waited for. One that has given nothing for 5 s may not
 * be able to: nobody is kept waiting then, only to be refused. */
static void test_credit(void)
{
    struct far_end f;
    int a = 0, b = 0;
    begin(&f, false, 50);
    CU_ASSERT_EQUAL(append(&f, 1), 1);
    CU_ASSERT_EQUAL(append(&f, 2), 1);
    CU_ASSERT_EQUAL(append(&f, 3), 100);
    CU_ASSERT_EQUAL(length(&f), 42);
    say(&f, W_CREDIT, 13);
    CU_ASSERT_EQUAL(append(&f, 3), 1);
    rig_turns(f.base, 3000);
    CU_ASSERT_PTR_NOT_NULL(append_of(&f, "", &a));
    rig_turns(f.base, 500);
    CU_ASSERT_EQUAL(a, 0);
    CU_ASSERT_PTR_NOT_NULL(append_of(&f, "", &b));
    say(&f, W_CREDIT, 21);
    CU_ASSERT_TRUE(a == 1 && b == 0);
    CU_ASSERT_TRUE(rig_until(f.base, answered, &b));
    CU_ASSERT_EQUAL(b, 100);
    rig_turns(f.base, 600);
    CU_ASSERT_EQUAL(append(&f, 4), 100);
    finish(&f);
}

static void pace(struct far_end *f, bool on, const char *sandbox)
{
    struct msg m;
    msg_init(&m, W_PACE);
    msg_put_u8(&m, on);
    msg_put_str(&m, sandbox);
    CU_ASSERT_EQUAL(msg_send(f->sock, &m), 0);
    msg_done(&m);
    rig_turns(f->base, 10);
}

/* Whom the logger tells to wait is not refused: it is on record as soon as there is credit, in its
 * order, or refused after 5 s; what is cancelled meanwhile was never there. */
static void test_held(void)
{
    struct far_end f;
    int a = 0, b = 0, c = 0;
    begin(&f, false, 42);
    pace(&f, true, "");
    CU_ASSERT_EQUAL(append(&f, 1), 1);
    CU_ASSERT_EQUAL(append(&f, 2), 1);
    CU_ASSERT_PTR_NOT_NULL(append_of(&f, "", &a));
    struct journal_wait *w = append_of(&f, "", &b);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    CU_ASSERT_PTR_NOT_NULL(append_of(&f, "", &c));
    CU_ASSERT_EQUAL(length(&f), 42);
    journal_cancel(w, "cancelled");
    say(&f, W_CREDIT, 30);
    CU_ASSERT_TRUE(a == 1 && b == 0 && c == 0);
    CU_ASSERT_EQUAL(length(&f), 63);
    uint64_t begun = fixture_ms();
    CU_ASSERT_TRUE(rig_until(f.base, answered, &c));
    CU_ASSERT_EQUAL(c, 100);
    CU_ASSERT_TRUE(fixture_ms() - begun > 4000);
    CU_ASSERT_EQUAL(length(&f), 63);
    CU_ASSERT_PTR_NOT_NULL(append_of(&f, "", &c));
    close(f.sock); /* the logger is gone: nothing is held for it */
    rig_turns(f.base, 20);
    CU_ASSERT_EQUAL(c, 200);
    finish(&f);
}

/* Of several sandboxes, the one whose share is used up waits, and nobody else. */
static void test_paced(void)
{
    struct far_end f;
    int a = 0, b = 0, more = 0;
    begin(&f, false, 1 << 20);
    pace(&f, true, "flood");
    CU_ASSERT_PTR_NOT_NULL(append_of(&f, "flood", &a));
    CU_ASSERT_PTR_NOT_NULL(append_of(&f, "quiet", &b));
    turn(&f);
    CU_ASSERT_EQUAL(b, 1);
    CU_ASSERT_EQUAL(a, 0);
    unsigned held = 1;
    while (append_of(&f, "flood", &more) && held < 100000)
        held++;
    CU_ASSERT_TRUE(held > 1000 && held < 20000); /* so many, then it is refused */
    CU_ASSERT_EQUAL(more, 100);
    pace(&f, false, "flood");
    CU_ASSERT_EQUAL(a, 1);
    CU_ASSERT_EQUAL((unsigned)more, 100 + held - 1);
    CU_ASSERT_PTR_NOT_NULL(append_of(&f, "flood", &b));
    turn(&f);
    CU_ASSERT_EQUAL(b, 2);
    finish(&f);
}

static void test_synced(void)
{
    struct far_end f;
    struct record r;
    int a = 0, b = 0;
    uint64_t n = 0;
    begin(&f, true, 1000);
    record_init(&r, RECORD_ADMITTED, 1);
    CU_ASSERT_PTR_NOT_NULL(journal_append(f.j, &r, count, &a));
    CU_ASSERT_EQUAL(hear(&f, &n), W_SYNC);
    CU_ASSERT_EQUAL(n, 21);
    CU_ASSERT_PTR_NOT_NULL(journal_append(f.j, &r, count, &b));
    CU_ASSERT_EQUAL(hear(&f, &n), W_SYNC);
    CU_ASSERT_EQUAL(n, 42);
    CU_ASSERT_EQUAL(a, 0);
    say(&f, W_SYNCED, 21);
    CU_ASSERT_EQUAL(a, 1);
    CU_ASSERT_EQUAL(b, 0);
    say(&f, W_SYNCED, 42);
    CU_ASSERT_EQUAL(b, 1);
    finish(&f);
}

/* No acknowledgement: refused after 2 s, and what was admitted gets its end. */
static void test_time_out(void)
{
    struct far_end f;
    struct record r;
    int a = 0;
    uint64_t begun = fixture_ms();
    begin(&f, true, 1000);
    record_init(&r, RECORD_ADMITTED, 1);
    CU_ASSERT_PTR_NOT_NULL(journal_append(f.j, &r, count, &a));
    CU_ASSERT_TRUE(rig_until(f.base, answered, &a));
    CU_ASSERT_EQUAL(a, 100);
    CU_ASSERT_TRUE(fixture_ms() - begun >= 1990);
    CU_ASSERT_TRUE(fixture_ms() - begun < 3000);
    CU_ASSERT_TRUE(length(&f) > 21);
    finish(&f);
}

static void test_cancel(void)
{
    struct far_end f;
    struct record r;
    int a = 0;
    begin(&f, true, 1000);
    record_init(&r, RECORD_ADMITTED, 1);
    struct journal_wait *w = journal_append(f.j, &r, count, &a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    journal_cancel(w, "cancelled");
    rig_turns(f.base, 1);
    off_t with_end = length(&f);
    CU_ASSERT_TRUE(with_end > 21);
    record_init(&r, RECORD_DENIED, 2);
    w = journal_append(f.j, &r, count, &a);
    journal_cancel(w, "cancelled");
    CU_ASSERT_EQUAL(length(&f), with_end + 21); /* denied needs none */
    say(&f, W_SYNCED, 21);
    CU_ASSERT_EQUAL(a, 0);
    finish(&f);
}

static void test_logger_gone(void)
{
    struct far_end f;
    struct record r;
    int a = 0;
    begin(&f, true, 1000);
    uint64_t old = journal_next(f.j);
    record_init(&r, RECORD_ADMITTED, old);
    CU_ASSERT_PTR_NOT_NULL(journal_append(f.j, &r, count, &a));
    close(f.sock);
    rig_turns(f.base, 20);
    CU_ASSERT_EQUAL(a, 100);
    CU_ASSERT_FALSE(journal_ready(f.j));
    CU_ASSERT_EQUAL(append(&f, 2), 100);
    attach(&f); /* the next logger */
    give_file(&f, 1000, O_WRONLY | O_APPEND);
    CU_ASSERT_EQUAL(f.ready, 2);
    CU_ASSERT_TRUE(journal_ready(f.j));
    off_t before = length(&f);
    record_init(&r, RECORD_COMPLETED, old); /* its beginning is in the file before */
    CU_ASSERT_EQUAL(journal_note(f.j, &r), -1);
    CU_ASSERT_EQUAL(length(&f), before);
    CU_ASSERT_EQUAL(journal_next(f.j), old + 1);
    finish(&f);
}

/* Ends wait for credit, and nothing is admitted before them; without it they wait on the timer. */
static void test_late_ends(void)
{
    struct far_end f;
    struct record end;
    struct rlimit old, small;
    begin(&f, false, 21);
    CU_ASSERT_EQUAL(append(&f, 1), 1);
    record_init(&end, RECORD_COMPLETED, 1);
    CU_ASSERT_EQUAL(journal_note(f.j, &end), 0);
    CU_ASSERT_EQUAL(length(&f), 21);
    CU_ASSERT_EQUAL(append(&f, 2), 100);
    say(&f, W_CREDIT, 50);
    CU_ASSERT_EQUAL(length(&f), 42);
    CU_ASSERT_EQUAL(append(&f, 2), 1);
    say(&f, W_CREDIT, 50);
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){63, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &small), 0); /* as a full disk: not a byte more */
    record_init(&end, RECORD_COMPLETED, 2);
    CU_ASSERT_EQUAL(journal_note(f.j, &end), 0);
    CU_ASSERT_TRUE(journal_ready(f.j));
    rig_turns(f.base, 300);
    CU_ASSERT_EQUAL(length(&f), 63);
    setrlimit(RLIMIT_FSIZE, &old);
    rig_turns(f.base, 400);
    CU_ASSERT_EQUAL(length(&f), 84);
    finish(&f);
}

/* Ends wait for the next record, or until the logger is told; a write that is cut inside them
 * leaves those before the cut on record, and the new record refused. */
static void test_ends_together(void)
{
    struct far_end f;
    struct record end;
    struct rlimit old, small = {100, RLIM_INFINITY};
    uint64_t n = 0;
    begin(&f, false, 1000);
    for (uint64_t i = 1; i <= 3; i++)
        CU_ASSERT_EQUAL(append(&f, i), 1);
    record_init(&end, RECORD_COMPLETED, 1);
    CU_ASSERT_EQUAL(journal_note(f.j, &end), 0);
    CU_ASSERT_EQUAL(length(&f), 63); /* not yet */
    CU_ASSERT_EQUAL(append(&f, 4), 1);
    CU_ASSERT_EQUAL(length(&f), 105); /* with the next */
    CU_ASSERT_EQUAL(journal_note(f.j, &end), 0);
    rig_turns(f.base, 100);
    CU_ASSERT_EQUAL(length(&f), 126); /* or by itself */
    while (hear(&f, &n) == W_TICK && n < 126)
        ;
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){126 + 30, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    record_init(&end, RECORD_COMPLETED, 2);
    CU_ASSERT_EQUAL(journal_note(f.j, &end), 0);
    record_init(&end, RECORD_COMPLETED, 3);
    CU_ASSERT_EQUAL(journal_note(f.j, &end), 0);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &small), 0);
    CU_ASSERT_EQUAL(append(&f, 5), 100);
    setrlimit(RLIMIT_FSIZE, &old);
    CU_ASSERT_FALSE(journal_ready(f.j));
    n = 0;
    for (int i = 0; i < 5 && hear(&f, &n) != W_REPAIR; i++)
        ;
    CU_ASSERT_EQUAL(n, 147); /* the first end stands */
    CU_ASSERT_EQUAL(truncate(f.path, 147), 0);
    say(&f, W_REPAIR, 147);
    CU_ASSERT_EQUAL(length(&f), 168); /* the second came; the refused record did not */
    finish(&f);
    begin(&f, false, 1000); /* what a closing journal still holds */
    CU_ASSERT_EQUAL(append(&f, 1), 1);
    CU_ASSERT_EQUAL(journal_note(f.j, &end), 0);
    close(f.sock);
    rig_turns(f.base, 20);
    CU_ASSERT_EQUAL(length(&f), 42);
    finish(&f);
    begin(&f, false, 1000); /* and what a process that ends does */
    CU_ASSERT_EQUAL(append(&f, 1), 1);
    CU_ASSERT_EQUAL(journal_note(f.j, &end), 0);
    CU_ASSERT_EQUAL(length(&f), 21);
    journal_leave(f.j);
    CU_ASSERT_EQUAL(length(&f), 42);
    journal_leave(NULL);
    finish(&f);
}

struct turned { /* one of several records of a turn, and what its callback found */
    struct far_end *f;
    off_t found;
    int answer;
    struct turned *then;         /* is appended from there, */
    struct journal_wait *leaves; /* and this one is cancelled */
};

static unsigned n_writes(void)
{
    unsigned n = 0;
    FILE *f = fopen("/proc/self/io", "r");
    for (char line[64]; f && fgets(line, sizeof line, f);)
        sscanf(line, "syscw: %u", &n);
    if (f)
        fclose(f);
    return n;
}

static struct journal_wait *append_turned(struct turned *t, struct far_end *f, uint64_t counter);

static void on_turned(void *arg, bool ok)
{
    struct turned *t = arg;
    t->found = length(t->f);
    t->answer += ok ? 1 : 100;
    if (t->leaves)
        journal_cancel(t->leaves, "cancelled");
    if (t->then)
        append_turned(t->then, t->f, 9);
}

static struct journal_wait *append_turned(struct turned *t, struct far_end *f, uint64_t counter)
{
    struct record r;
    t->f = f;
    record_init(&r, RECORD_ADMITTED, counter);
    return journal_append(f->j, &r, on_turned, t);
}

/* All records of a turn leave in one write, the ends that wait with them, and nobody who waits for
 * one goes on before that write: what a callback sends follows its record. */
static void test_turn(void)
{
    struct far_end f;
    struct record end;
    struct turned t[3] = {{0}}, late = {0};
    uint64_t n = 0;
    begin(&f, false, 1000);
    CU_ASSERT_EQUAL(append(&f, 1), 1);
    CU_ASSERT_EQUAL(hear(&f, &n), W_TICK);
    record_init(&end, RECORD_COMPLETED, 1);
    CU_ASSERT_EQUAL(journal_note(f.j, &end), 0);
    for (uint64_t i = 0; i < 3; i++)
        CU_ASSERT_PTR_NOT_NULL(append_turned(&t[i], &f, 2 + i));
    t[2].then = &late;
    CU_ASSERT_TRUE(length(&f) == 21 && t[0].answer == 0);
    unsigned before = n_writes();
    turn(&f);
    CU_ASSERT_EQUAL(n_writes(), before + 2); /* what a callback appended is of the next turn */
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_TRUE(t[i].answer == 1 && t[i].found == 105);
    CU_ASSERT_TRUE(late.answer == 1 && late.found == 126);
    finish(&f);
}

/* Of a turn's records those that found room are on record and the others are refused, each by
 * itself. */
static void test_turn_cut(void)
{
    struct far_end f;
    struct turned t[3] = {{0}};
    struct rlimit old, small;
    uint64_t n = 0;
    begin(&f, false, 1000);
    for (uint64_t i = 0; i < 3; i++)
        CU_ASSERT_PTR_NOT_NULL(append_turned(&t[i], &f, 1 + i));
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){21 + 10, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &small), 0);
    turn(&f);
    setrlimit(RLIMIT_FSIZE, &old);
    CU_ASSERT_TRUE(t[0].answer == 1 && t[1].answer == 100 && t[2].answer == 100);
    CU_ASSERT_EQUAL(hear(&f, &n), W_REPAIR);
    CU_ASSERT_EQUAL(n, 21);
    CU_ASSERT_EQUAL(truncate(f.path, 21), 0);
    say(&f, W_REPAIR, 21);
    CU_ASSERT_EQUAL(length(&f), 21); /* neither comes late */
    finish(&f);
    begin(&f, false, 30); /* credit for one */
    memset(t, 0, sizeof t);
    for (uint64_t i = 0; i < 2; i++)
        CU_ASSERT_PTR_NOT_NULL(append_turned(&t[i], &f, 1 + i));
    turn(&f);
    CU_ASSERT_TRUE(t[0].answer == 1 && t[1].answer == 100);
    CU_ASSERT_EQUAL(length(&f), 21);
    finish(&f);
}

/* Who asks and leaves within a turn is on record, and an admission has its end; so has one that is
 * cancelled by another's callback. Nothing of a turn is written for a logger that is gone. */
static void test_turn_left(void)
{
    struct far_end f;
    struct record r;
    struct turned t[2] = {{0}};
    int a = 0;
    begin(&f, false, 1000);
    record_init(&r, RECORD_DENIED, 1);
    journal_cancel(journal_append(f.j, &r, count, &a), "cancelled");
    CU_ASSERT_EQUAL(length(&f), 21);
    record_init(&r, RECORD_ADMITTED, 2);
    journal_cancel(journal_append(f.j, &r, count, &a), "cancelled");
    CU_ASSERT_EQUAL(length(&f), 42);
    rig_turns(f.base, 100);
    off_t ended = length(&f);
    CU_ASSERT_TRUE(ended > 63 && a == 0);
    append_turned(&t[0], &f, 3);
    t[0].leaves = append_turned(&t[1], &f, 4);
    rig_turns(f.base, 100);
    CU_ASSERT_TRUE(t[0].answer == 1 && t[1].answer == 0);
    CU_ASSERT_EQUAL(length(&f), ended + 2 * 21 + ended - 42);
    append_turned(&t[1], &f, 5);
    CU_ASSERT_EQUAL(t[1].answer, 0);
    ended = length(&f);
    attach(&f); /* another logger: this one's journal is closed */
    CU_ASSERT_EQUAL(t[1].answer, 100);
    CU_ASSERT_EQUAL(length(&f), ended);
    finish(&f);
}

/* What a logger must not do ends its channel. */
/* So many bytes and more, in one turn. */
static void fill(struct far_end *f, uint64_t *counter, size_t bytes)
{
    char path[1001];
    struct record r;
    int answers = 0;
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = 0;
    for (size_t n = 0; n < bytes; n += sizeof path) {
        record_init(&r, RECORD_ADMITTED, ++*counter);
        record_put_str(&r, RF_PATH, path);
        journal_append(f->j, &r, count, &answers);
    }
    turn(f);
    CU_ASSERT_TRUE(answers > 0 && answers < 100);
}

/* Whether there is something for the logger to hear, without waiting. */
static bool is_told(struct far_end *f)
{
    char byte;
    turn(f);
    return recv(f->sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

/* Of a busy writer the logger hears in each fifth turn of telling, or as soon as there is much. */
static void test_busy(void)
{
    struct far_end f;
    uint64_t n = 0, upto = 0;
    begin(&f, false, 1 << 20);
    uint64_t began = fixture_ms();
    fill(&f, &n, 20 * 1024);
    CU_ASSERT_EQUAL(hear(&f, &upto), W_TICK);
    CU_ASSERT_TRUE(fixture_ms() - began >= 80);
    CU_ASSERT_EQUAL((off_t)upto, length(&f));
    began = fixture_ms();
    fill(&f, &n, 60 * 1024);
    CU_ASSERT_TRUE(!is_told(&f) || fixture_ms() - began >= 80);
    fill(&f, &n, 65 * 1024);
    CU_ASSERT_TRUE(is_told(&f));
    finish(&f);
}

static void test_bad_logger(void)
{
    static const struct {
        uint16_t type;
        uint64_t count;
    } bad[] = {{W_SYNCED, 1}, {W_REPAIR, 0}, {W_TICK, 0}, {W_CREDIT, UINT64_MAX}};
    struct far_end f;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        begin(&f, false, 100);
        say(&f, bad[i].type, bad[i].count);
        CU_ASSERT_FALSE(journal_ready(f.j));
        finish(&f);
    }
    begin(&f, false, 0);
    give_file(&f, 100, O_RDWR | O_APPEND);
    CU_ASSERT_FALSE(journal_ready(f.j));
    finish(&f);
    begin(&f, false, 0);
    give_file(&f, 100, O_WRONLY);
    CU_ASSERT_FALSE(journal_ready(f.j));
    finish(&f);
    begin(&f, false, 100);
    give_file(&f, 100, O_WRONLY | O_APPEND); /* a second one */
    CU_ASSERT_FALSE(journal_ready(f.j));
    finish(&f);
}

/* A file-size limit makes the second write short. */
static void test_short_write(void)
{
    struct far_end f;
    struct record end, dns;
    struct rlimit old, small = {30, RLIM_INFINITY};
    uint64_t n = 0;
    begin(&f, false, 1000);
    CU_ASSERT_EQUAL(append(&f, 1), 1);
    CU_ASSERT_EQUAL(hear(&f, &n), W_TICK);
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &small), 0);
    CU_ASSERT_EQUAL(append(&f, 2), 100);
    setrlimit(RLIMIT_FSIZE, &old);
    CU_ASSERT_EQUAL(length(&f), 30);
    CU_ASSERT_FALSE(journal_ready(f.j));
    CU_ASSERT_EQUAL(append(&f, 3), 100);
    record_init(&end, RECORD_COMPLETED, 1);
    CU_ASSERT_EQUAL(journal_note(f.j, &end), 0); /* kept */
    record_init(&dns, RECORD_DNS, 0);
    CU_ASSERT_EQUAL(journal_note(f.j, &dns), -1);
    CU_ASSERT_EQUAL(hear(&f, &n), W_REPAIR);
    CU_ASSERT_EQUAL(n, 21);
    CU_ASSERT_EQUAL(truncate(f.path, 21), 0);
    say(&f, W_REPAIR, 21);
    CU_ASSERT_TRUE(journal_ready(f.j));
    CU_ASSERT_EQUAL(length(&f), 42); /* the end came first */
    CU_ASSERT_EQUAL(append(&f, 4), 1);
    CU_ASSERT_EQUAL(length(&f), 63);
    finish(&f);
}

static int keep(struct backlog *b, const char *what)
{
    struct record r;
    record_init(&r, RECORD_LIFECYCLE, 0);
    record_put_str(&r, RF_EVENT, what);
    return backlog_note(b, &r);
}

/* The events in the file, each ended by a space. */
static const char *events(const struct far_end *f, uint64_t *lost)
{
    static char text[64 * 1024];
    static unsigned char bytes[512 * 1024];
    struct record_view v;
    const char *why;
    size_t n = 0;
    int fd = open(f->path, O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof bytes), at = 0, r;
    close(fd);
    while (at < size && (r = record_read(&v, bytes + at, (size_t)(size - at), &why)) > 0) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s ", (int)v.field[RF_EVENT].n,
                              v.field[RF_EVENT].p);
        if (v.field[RF_COUNT].n)
            slice_u64(v.field[RF_COUNT], UINT64_MAX, lost);
        at += r;
    }
    text[n] = 0;
    return text;
}

/* What happens while there is no journal waits for it; so does what finds no credit. */
static void test_backlog(void)
{
    struct far_end f;
    uint64_t lost = 0;
    begin(&f, false, 0);
    struct backlog *b = backlog_new(f.base, f.j);
    CU_ASSERT_EQUAL(keep(b, "one"), 0);
    CU_ASSERT_EQUAL(keep(b, "two"), 0);
    CU_ASSERT_EQUAL(length(&f), -1);
    give_file(&f, 60, O_WRONLY | O_APPEND); /* for two of them */
    backlog_write(b);
    CU_ASSERT_EQUAL(keep(b, "three"), 0);
    CU_ASSERT_STRING_EQUAL(events(&f, &lost), "one two ");
    say(&f, W_CREDIT, 1000);
    rig_turns(f.base, 300);
    CU_ASSERT_STRING_EQUAL(events(&f, &lost), "one two three ");
    close(f.sock); /* the logger is replaced */
    rig_turns(f.base, 20);
    CU_ASSERT_EQUAL(keep(b, "four"), 0);
    unlink(f.path);
    attach(&f);
    give_file(&f, 1000, O_WRONLY | O_APPEND);
    CU_ASSERT_EQUAL(keep(b, "five"), 0);
    CU_ASSERT_STRING_EQUAL(events(&f, &lost), "four five ");
    CU_ASSERT_EQUAL(lost, 0);
    backlog_free(b);
    finish(&f);
}

/* It is bounded, and what finds no room is counted on record. */
static void test_backlog_full(void)
{
    struct far_end f;
    struct record r;
    static char long_text[RECORD_FIELD_MAX];
    uint64_t lost = 0, kept = 0, refused = 0;
    begin(&f, false, 0);
    struct backlog *b = backlog_new(f.base, f.j);
    memset(long_text, 'x', sizeof long_text - 1);
    record_init(&r, RECORD_LIFECYCLE, 0);
    record_put_str(&r, RF_EVENT, "e");
    record_put_str(&r, RF_DETAIL, long_text);
    while (refused < 3)
        if (backlog_note(b, &r) == 0)
            kept++;
        else
            refused++;
    CU_ASSERT_TRUE(kept > 100 && kept * sizeof long_text <= BACKLOG_BYTES);
    give_file(&f, 1 << 20, O_WRONLY | O_APPEND);
    backlog_write(b);
    CU_ASSERT_TRUE(strstr(events(&f, &lost), "e e records_lost ") != NULL);
    CU_ASSERT_EQUAL(lost, 3);
    CU_ASSERT_EQUAL(keep(b, "after"), 0);
    CU_ASSERT_TRUE(strstr(events(&f, &lost), "records_lost after ") != NULL);
    backlog_free(b);
    finish(&f);
}

/* Pieces of a body (capture_body) that find no room are counted: their request's end says so. */
static void test_bodies(void)
{
    struct far_end f;
    static const char body[5000];
    struct body_capture *c = body_capture_new(sizeof body);
    body_capture_take(c, BODY_REQUEST, body, sizeof body);
    begin(&f, false, 2100);
    CU_ASSERT_EQUAL(body_capture_record(c, f.j, 1, NULL, NULL), 2);
    CU_ASSERT_TRUE(length(&f) > 2000);
    say(&f, W_CREDIT, 10000);
    CU_ASSERT_EQUAL(body_capture_record(c, f.j, 1, NULL, NULL), 0);
    finish(&f);
    body_capture_free(c);
}

void suite_journal(void)
{
    CU_pSuite s = CU_add_suite("journal", NULL, NULL);
    CU_add_test(s, "without a file every append fails", test_without_file);
    CU_add_test(s, "written: the write is the record", test_written);
    CU_add_test(s, "nothing beyond the credit", test_credit);
    CU_add_test(s, "held until there is credit", test_held);
    CU_add_test(s, "paced by sandbox", test_paced);
    CU_add_test(s, "synced: the acknowledgement is the record", test_synced);
    CU_add_test(s, "synced: refused after two seconds", test_time_out);
    CU_add_test(s, "a cancelled admission is ended", test_cancel);
    CU_add_test(s, "the logger ends and comes back", test_logger_gone);
    CU_add_test(s, "a bad logger is cut off", test_bad_logger);
    CU_add_test(s, "ends that find no room come late, but first", test_late_ends);
    CU_add_test(s, "ends of a turn go together", test_ends_together);
    CU_add_test(s, "a turn's records leave in one write", test_turn);
    CU_add_test(s, "a turn's write that is cut", test_turn_cut);
    CU_add_test(s, "who leaves within a turn", test_turn_left);
    CU_add_test(s, "who is busy tells the logger less often", test_busy);
    CU_add_test(s, "what happens without a journal waits for it", test_backlog);
    CU_add_test(s, "what waits is bounded, what is lost is counted", test_backlog_full);
    CU_add_test(s, "pieces of bodies that find no room", test_bodies);
    CU_add_test(s, "a short write waits for its repair", test_short_write);
}

void tap_suites(void)
{
    suite_journal();
}
