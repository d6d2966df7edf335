#include "tap_main.h"

#include "audit_fixture.h"
#include "verify.h"

#include <CUnit/CUnit.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <inttypes.h>
#include <sys/statvfs.h>

void suite_logger(void);

static void note(struct journal *j, enum record_kind kind, uint64_t counter, const char *authority)
{
    struct record r;
    record_init(&r, kind, counter);
    record_put_str(&r, RF_AUTHORITY, authority);
    CU_ASSERT_EQUAL(journal_note(j, &r), 0);
}

static struct verify_result verify(const char *dir, const char *key_dir)
{
    struct verify_result v;
    struct err err = {0};
    int base = fixture_open(key_dir), fd = fixture_open(dir);
    struct signing_key *k = signing_key_public(base, "key.pub", &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    verify_dir(fd, k, NULL, &v);
    signing_key_free(k);
    close(base);
    close(fd);
    return v;
}

static size_t journals_left(const char *dir)
{
    char path[512];
    size_t n = 0;
    for (unsigned i = 1; i < 64; i++) {
        snprintf(path, sizeof path, "%s/journal/%u.j", dir, i);
        n += access(path, F_OK) == 0;
    }
    return n;
}

static void test_whole_life(void)
{
    static struct fixture_lines l;
    char *dir = fixture_dir();
    struct rig r;
    rig_start(&r, dir, false, "");
    CU_ASSERT_TRUE_FATAL(r.ready);
    struct journal *j = rig_journal(&r, ROLE_GATE, "box", false);
    CU_ASSERT_TRUE_FATAL(journal_ready(j));
    uint64_t a = journal_next(j), b = journal_next(j), c = journal_next(j);
    note(j, RECORD_ADMITTED, a, "api.example.com");
    note(j, RECORD_DENIED, b, "evil.example.com\n\"\x01\xff");
    note(j, RECORD_COMPLETED, a, "api.example.com");
    note(j, RECORD_ADMITTED, c, "left.example.com");
    journal_free(j); /* and c has no end */
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(l.n, 8); /* start, 4, aborted, stop, checkpoint */
    CU_ASSERT_EQUAL(fixture_count(&l, "kind", "admitted"), 2);
    CU_ASSERT_EQUAL(fixture_count2(&l, "kind", "aborted", "code", "writer_gone"), 1);
    CU_ASSERT_EQUAL(
        fixture_count2(&l, "kind", "denied", "authority", "evil.example.com\n\"\x01\xc3\xbf"), 1);
    CU_ASSERT_EQUAL(fixture_count2(&l, "sandbox", "box", "role", "gate"), 5);
    CU_ASSERT_EQUAL(fixture_count(&l, "policy", "coder"), 5);
    for (size_t i = 0; i < l.n; i++) {
        CU_ASSERT_PTR_NOT_NULL(l.json[i]);
        for (const char *p = l.text[i]; *p; p++)
            CU_ASSERT_TRUE(*p >= 0x20 && *p <= 0x7e);
    }
    fixture_lines_done(&l);
    struct verify_result v = verify(dir, dir);
    CU_ASSERT_TRUE(v.ok);
    CU_ASSERT_EQUAL(v.records, 8);
    CU_ASSERT_EQUAL(v.unsigned_records, 0);
    CU_ASSERT_EQUAL(journals_left(dir), 0);
    fixture_remove(dir);
}

static void test_files_are_private(void)
{
    static const char *const names[] = {"key", "head", "lock", "journal"};
    char *dir = fixture_dir(), path[512];
    struct stat st;
    struct rig r;
    rig_start(&r, dir, false, "");
    CU_ASSERT_TRUE(rig_stop(&r));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        CU_ASSERT_EQUAL_FATAL(stat(path, &st), 0);
        CU_ASSERT_EQUAL(st.st_mode & 077, 0);
    }
    fixture_remove(dir);
}

static void test_one_daemon_a_directory(void)
{
    char *dir = fixture_dir();
    struct rig r, second;
    rig_start(&r, dir, false, "");
    rig_start(&second, dir, false, "");
    CU_ASSERT_TRUE(r.ready);
    CU_ASSERT_FALSE(second.ready);
    CU_ASSERT_STRING_EQUAL(second.failed, "another daemon writes to this directory");
    rig_kill(&second);
    event_base_free(second.base);
    rig_start(&second, dir, false, "run-abc"); /* a run beside the daemon is fine */
    CU_ASSERT_TRUE(second.ready);
    CU_ASSERT_TRUE(rig_stop(&second));
    CU_ASSERT_TRUE(rig_stop(&r));
    char sub[512];
    snprintf(sub, sizeof sub, "%s/run-abc", dir);
    CU_ASSERT_TRUE(verify(sub, dir).ok); /* its chain is its own, the key is shared */
    CU_ASSERT_TRUE(verify(dir, dir).ok);
    rig_start(&second, dir, false, "../x");
    CU_ASSERT_FALSE(second.ready);
    rig_kill(&second);
    event_base_free(second.base);
    fixture_remove(dir);
}

/* SIGKILL of the logger: what was written is recorded once, ends are made, numbers go on. */
static void test_killed_logger(void)
{
    static struct fixture_lines l;
    char *dir = fixture_dir();
    struct rig r;
    rig_start(&r, dir, false, "");
    struct journal *j = rig_journal(&r, ROLE_GATE, "box", false);
    uint32_t first = journal_channel(j);
    uint64_t a = journal_next(j), b = journal_next(j);
    note(j, RECORD_ADMITTED, a, "one");
    rig_turns(r.base, 50);              /* copied */
    note(j, RECORD_ADMITTED, b, "two"); /* not copied */
    rig_kill(&r);
    struct rig again;
    rig_start_on(&again, r.base, dir, false, "");
    CU_ASSERT_TRUE(again.ready);
    journal_attach(j, rig_peer_fd(&again, ROLE_GATE, 2, "box", "coder"), 1);
    CU_ASSERT_TRUE(rig_until(r.base, rig_journal_ready, j));
    CU_ASSERT_TRUE(journal_channel(j) > first);
    struct record late;
    record_init(&late, RECORD_COMPLETED, a); /* that id is ended already */
    CU_ASSERT_EQUAL(journal_note(j, &late), -1);
    note(j, RECORD_DENIED, journal_next(j), "three");
    journal_free(j);
    CU_ASSERT_TRUE(rig_stop(&again));
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(fixture_count(&l, "authority", "one"), 1);
    CU_ASSERT_EQUAL(fixture_count(&l, "authority", "two"), 1);
    CU_ASSERT_EQUAL(fixture_count(&l, "authority", "three"), 1);
    CU_ASSERT_EQUAL(fixture_count(&l, "kind", "aborted"), 2);
    CU_ASSERT_EQUAL(fixture_count(&l, "event", "duplicate"), 0);
    fixture_lines_done(&l);
    CU_ASSERT_TRUE(verify(dir, dir).ok);
    CU_ASSERT_EQUAL(journals_left(dir), 0);
    fixture_remove(dir);
}

/* The writer that has not heard yet still appends to the old journal: nothing of it is lost. */
static void test_late_writer(void)
{
    static struct fixture_lines l;
    char *dir = fixture_dir();
    struct rig r, again;
    rig_start(&r, dir, false, "");
    struct event_base *apart = event_base_new(); /* so that the writer does not notice */
    struct journal *j = journal_new(apart, false);
    journal_attach(j, rig_peer_fd(&r, ROLE_GATE, 1, "box", "coder"), 1);
    for (int i = 0; i < 20 && !journal_ready(j); i++) {
        rig_turns(r.base, 10);
        event_base_loop(apart, EVLOOP_NONBLOCK);
    }
    CU_ASSERT_TRUE_FATAL(journal_ready(j));
    rig_kill(&r);
    rig_start_on(&again, r.base, dir, false, "");
    rig_turns(again.base, 500);
    note(j, RECORD_ADMITTED, journal_next(j), "late");
    rig_turns(again.base, 300);
    CU_ASSERT_EQUAL(journals_left(dir), 1); /* still held */
    note(j, RECORD_ADMITTED, journal_next(j), "later");
    journal_free(j);
    event_base_free(apart);
    rig_turns(again.base, 500);
    CU_ASSERT_EQUAL(journals_left(dir), 0);
    CU_ASSERT_TRUE(rig_stop(&again));
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(fixture_count(&l, "authority", "late"), 1);
    CU_ASSERT_EQUAL(fixture_count(&l, "authority", "later"), 1);
    CU_ASSERT_EQUAL(fixture_count(&l, "kind", "aborted"), 2);
    fixture_lines_done(&l);
    fixture_remove(dir);
}

static void test_second_records(void)
{
    static struct fixture_lines l;
    char *dir = fixture_dir();
    struct rig r;
    rig_start(&r, dir, false, "");
    struct journal *j = rig_journal(&r, ROLE_GATE, "box", false);
    uint64_t a = journal_next(j), b = journal_next(j);
    note(j, RECORD_ADMITTED, a, "x");
    note(j, RECORD_ADMITTED, a, "x");
    note(j, RECORD_COMPLETED, a, "x");
    note(j, RECORD_ABORTED, a, "x");
    note(j, RECORD_DENIED, a, "x");
    note(j, RECORD_COMPLETED, b, "x");
    journal_free(j);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(fixture_count(&l, "event", "duplicate"), 3);
    CU_ASSERT_EQUAL(fixture_count(&l, "event", "unmatched"), 1);
    CU_ASSERT_EQUAL(fixture_count2(&l, "kind", "lifecycle", "sandbox", "box"), 4);
    fixture_lines_done(&l);
    fixture_remove(dir);
}

/* A channel whose raw journal descriptor the test holds, as a conquered gate would. */
struct raw {
    struct ipc *ipc;
    int fd;
    bool closed;
};

static int raw_message(struct ipc *ch UNUSED, struct msg *m, void *arg)
{
    struct raw *w = arg;
    uint32_t channel;
    uint64_t credit, next;
    if (m->type != W_JOURNAL)
        return 0;
    return (msg_get_u32(m, &channel) | msg_get_u64(m, &credit) | msg_get_u64(m, &next) |
            msg_get_fd(m, &w->fd)) < 0
               ? -1
               : 0;
}

static void raw_closed(struct ipc *ch, const char *why UNUSED, void *arg)
{
    struct raw *w = arg;
    ipc_free(ch);
    w->ipc = NULL;
    w->closed = true;
}

static bool raw_has_fd(void *arg)
{
    return ((struct raw *)arg)->fd >= 0;
}

static bool raw_is_closed(void *arg)
{
    return ((struct raw *)arg)->closed;
}

static void raw_open(struct raw *w, struct rig *r, enum role role, const char *sandbox,
                     const char *policy)
{
    *w = (struct raw){.fd = -1};
    w->ipc = ipc_new(r->base, rig_peer_fd(r, role, 7, sandbox, policy), raw_message, raw_closed, w);
    CU_ASSERT_TRUE_FATAL(rig_until(r->base, raw_has_fd, w));
}

static void raw_tell(struct raw *w, uint16_t type, uint64_t count)
{
    struct msg m;
    msg_init(&m, type);
    msg_put_u64(&m, count);
    ipc_send(w->ipc, &m);
}

static void raw_record(struct raw *w, struct record *rec)
{
    unsigned char bytes[RECORD_MAX + 32];
    size_t n = record_encode(rec, 1, bytes, sizeof bytes);
    CU_ASSERT_EQUAL(write(w->fd, bytes, n), (ssize_t)n);
}

static void expect_corrupt(enum role role, const char *sandbox, const char *policy,
                           struct record *rec, const char *garbage, size_t n)
{
    static struct fixture_lines l;
    char *dir = fixture_dir();
    struct rig r;
    struct raw w;
    rig_start(&r, dir, false, "");
    raw_open(&w, &r, role, sandbox, policy);
    struct record good;
    record_init(&good, RECORD_ADMITTED, 5);
    raw_record(&w, &good);
    if (rec)
        raw_record(&w, rec);
    else
        CU_ASSERT_EQUAL(write(w.fd, garbage, n), (ssize_t)n);
    raw_tell(&w, W_TICK, 1);
    CU_ASSERT_TRUE(rig_until(r.base, raw_is_closed, &w));
    close(w.fd);
    CU_ASSERT_TRUE(r.logs > 0);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(sandbox[0] ? fixture_count2(&l, "event", "journal_corrupt", "sandbox", sandbox)
                               : fixture_count(&l, "event", "journal_corrupt"),
                    1);
    CU_ASSERT_EQUAL(fixture_count(&l, "kind", "admitted"), 1);
    CU_ASSERT_EQUAL(fixture_count(&l, "kind", "aborted"), 1);
    fixture_lines_done(&l);
    CU_ASSERT_TRUE(verify(dir, dir).ok);
    fixture_remove(dir);
}

/* What a gate may not write: its own sandbox's and policy's names come from its channel, and the
 * gate of a listener names whom its clients can be. Records count against whoever they name. */
static void test_bad_writers(void)
{
    static const char bad_kind[21] = {0, 0, 0, 17, 0x7f, [20] = 1};
    static const struct {
        const char *sandbox, *policy, *value;
        enum record_kind kind;
        enum record_field field;
    } bad[] = {{"box", "", "other", RECORD_DENIED, RF_SANDBOX},
               {"box", "", "stop", RECORD_LIFECYCLE, RF_EVENT},
               {"box", "", "ok", RECORD_CONNECTION, RF_CODE},
               {"", "coder", "other", RECORD_DENIED, RF_POLICY},
               {"", "coder", "sb-1", RECORD_DENIED, RF_SANDBOX},
               {"", "coder", "rt-1", RECORD_DENIED, RF_SANDBOX},
               {"", "", "sb-1", RECORD_DENIED, RF_SANDBOX},
               {"", "", "vercel:x", RECORD_DENIED, RF_SANDBOX}};
    struct record rec;
    expect_corrupt(ROLE_GATE, "box", "", NULL, bad_kind, sizeof bad_kind);
    expect_corrupt(ROLE_GATE, "box", "", NULL, "\xff\xff\xff\xff", 4);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        record_init(&rec, bad[i].kind, 6);
        record_put_str(&rec, bad[i].field, bad[i].value);
        expect_corrupt(ROLE_GATE, bad[i].sandbox, bad[i].policy, &rec, NULL, 0);
    }
}

/* Writing on past the credit ends the channel; the log keeps what had credit. */
static void test_overrun(void)
{
    static struct fixture_lines l;
    char *dir = fixture_dir();
    struct rig r;
    struct raw w;
    struct record rec;
    rig_start(&r, dir, false, "");
    raw_open(&w, &r, ROLE_GATE, "box", "");
    for (uint64_t i = 1; i <= 600; i++) {
        char big[2000];
        memset(big, 'a', sizeof big);
        record_init(&rec, RECORD_DENIED, i);
        record_put(&rec, RF_PATH, (struct slice){big, sizeof big});
        raw_record(&w, &rec);
    }
    raw_tell(&w, W_TICK, 1);
    CU_ASSERT_TRUE(rig_until(r.base, raw_is_closed, &w));
    close(w.fd);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(fixture_count(&l, "event", "journal_corrupt"), 1);
    CU_ASSERT_TRUE(fixture_count(&l, "kind", "denied") > 500);
    CU_ASSERT_TRUE(fixture_count(&l, "kind", "denied") < 600);
    fixture_lines_done(&l);
    fixture_remove(dir);
}

static bool raw_in_log_dir_gone(void *dir)
{
    return journals_left(dir) == 0;
}

/* Who writes on without a word is found all the same, its process ended, its journal removed. */
static void test_silent_overrun(void)
{
    static struct fixture_lines l;
    static const char garbage[4 << 20];
    char *dir = fixture_dir();
    struct rig r;
    struct raw w;
    rig_start(&r, dir, false, "");
    raw_open(&w, &r, ROLE_GATE, "box", "");
    CU_ASSERT_EQUAL(write(w.fd, garbage, sizeof garbage), (ssize_t)sizeof garbage);
    CU_ASSERT_TRUE(rig_until(r.base, raw_is_closed, &w));
    CU_ASSERT_TRUE(rig_until(r.base, raw_in_log_dir_gone, dir));
    rig_turns(r.base, 50);
    CU_ASSERT_EQUAL(r.corrupt, 1);
    close(w.fd);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(fixture_count(&l, "event", "journal_corrupt"), 1);
    fixture_lines_done(&l);
    fixture_remove(dir);
}

/* A journal whose writer rests, removed under the logger: it ends within its second, and not well.
 */
static void test_removed_at_rest(void)
{
    char *dir = fixture_dir(), path[512];
    struct rig r;
    rig_start(&r, dir, false, "");
    struct journal *rests = rig_journal(&r, ROLE_GATE, "box", false);
    struct journal *other = rig_journal(&r, ROLE_GATE, "other", false);
    rig_turns(r.base, 300);
    CU_ASSERT_FALSE(logger_finished(r.logger));
    snprintf(path, sizeof path, "%s/journal/%" PRIu32 ".j", dir, journal_channel(rests));
    CU_ASSERT_EQUAL_FATAL(unlink(path), 0);
    uint64_t removed = fixture_ms();
    CU_ASSERT_TRUE(rig_until(r.base, rig_ended, &r));
    CU_ASSERT_TRUE(fixture_ms() - removed < 4000);
    CU_ASSERT_FALSE(logger_ok(r.logger));
    rig_kill(&r);
    journal_free(rests);
    journal_free(other);
    event_base_free(r.base);
    fixture_remove(dir);
}

static uint64_t disk_taken; /* bytes, of what the logger sees of the disk: others write here, too */
static unsigned disk_looks;

int fstatvfs(int fd UNUSED, struct statvfs *st)
{
    disk_looks++;
    memset(st, 0, sizeof *st);
    st->f_frsize = 4096;
    st->f_blocks = 1 << 24;
    st->f_bavail = st->f_blocks - disk_taken / st->f_frsize;
    return 0;
}

static bool looked_at_disk(void *arg UNUSED)
{
    return disk_looks > 0;
}

/* It takes little of the disk: its turn comes within a second. */
static void test_small_overrun(void)
{
    static const char garbage[(1 << 20) + 4096];
    char *dir = fixture_dir();
    struct rig r;
    struct raw w;
    rig_start(&r, dir, false, "");
    raw_open(&w, &r, ROLE_GATE, "box", "");
    disk_looks = 0;
    CU_ASSERT_TRUE(rig_until(r.base, looked_at_disk, NULL)); /* in its first tick it looks at all */
    CU_ASSERT_EQUAL(write(w.fd, garbage, sizeof garbage), (ssize_t)sizeof garbage);
    CU_ASSERT_TRUE(rig_until(r.base, raw_is_closed, &w));
    CU_ASSERT_EQUAL(r.corrupt, 1);
    close(w.fd);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_remove(dir);
}

enum { WRITERS = 10 };

static bool raw_are_closed(void *writers)
{
    struct raw *w = writers;
    bool all = true;
    for (int i = 0; i < WRITERS; i++)
        all &= raw_is_closed(w + i);
    return all;
}

/* Ten that rest, whatever their turn is, and then take much of the disk: none of them goes on for
 * as long as it takes until each has had its turn. -> milliseconds until the last was found. */
static uint64_t large_overruns(void)
{
    static const char garbage[4 << 20];
    char *dir = fixture_dir();
    struct rig r;
    struct raw w[WRITERS];
    rig_start(&r, dir, false, "");
    for (int i = 0; i < WRITERS; i++)
        raw_open(w + i, &r, ROLE_GATE, "box", "");
    rig_turns(r.base, 30);
    uint64_t began = fixture_ms();
    for (int i = 0; i < WRITERS; i++)
        CU_ASSERT_EQUAL(write(w[i].fd, garbage, sizeof garbage), (ssize_t)sizeof garbage);
    disk_taken += WRITERS * sizeof garbage;
    CU_ASSERT_TRUE(rig_until(r.base, raw_are_closed, w));
    uint64_t took = fixture_ms() - began;
    for (int i = 0; i < WRITERS; i++)
        close(w[i].fd);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_remove(dir);
    return took;
}

static void test_large_overruns(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 3 && least >= 700; i++) { /* a machine that is busy may stand still */
        uint64_t took = large_overruns();
        least = took < least ? took : least;
    }
    CU_ASSERT(least < 700); /* by turns it is 900 and more */
}

struct flood {
    struct journal *j;
    const char *sandbox;
    unsigned waits, recorded, refused;
};

static void on_flood(void *arg, bool ok)
{
    struct flood *f = arg;
    f->waits--;
    *(ok ? &f->recorded : &f->refused) += 1;
}

/* As a role does it: so many at a time, at most so many that wait. */
static void flood_on(struct flood *f, unsigned times, unsigned most)
{
    char big[1000];
    struct record rec;
    memset(big, 'a', sizeof big);
    while (times-- && f->waits < most) {
        record_init(&rec, RECORD_DENIED, 0);
        record_put(&rec, RF_PATH, (struct slice){big, sizeof big});
        record_put_str(&rec, RF_SANDBOX, f->sandbox);
        f->waits++;
        journal_append(f->j, &rec, on_flood, f);
    }
}

/* One sandbox asks without end: it gets its share and then its rate, nothing of it is refused, and
 * what its neighbour asks is recorded at once, through a writer of its own or the same one. */
static void flood_and_neighbour(enum role role, const char *flooder, const char *one,
                                const char *other)
{
    static const unsigned rate = 200 * 1000, burst = 1500 * 1000, seconds = 3;
    char *dir = fixture_dir();
    struct rig r;
    fixture_keep.share_burst = burst;
    fixture_keep.share_rate = rate;
    rig_start(&r, dir, false, "");
    struct flood f = {.sandbox = one}, n = {.sandbox = other};
    f.j = rig_journal(&r, role, flooder, false);
    n.j = flooder[0] ? rig_journal(&r, role, "quiet", false) : f.j;
    rig_turns(r.base, 50);
    uint64_t begun = fixture_ms(), told = 0, slowest = 0;
    unsigned asked = 0;
    while (fixture_ms() < begun + seconds * 1000) {
        flood_on(&f, 100, 50);
        if (n.waits == 0 && fixture_ms() - told > 50) {
            slowest = asked && fixture_ms() - told > slowest ? fixture_ms() - told : slowest;
            told = fixture_ms();
            flood_on(&n, 1, 1);
            asked++;
        }
        rig_turns(r.base, 5);
    }
    CU_ASSERT_EQUAL(f.refused, 0);
    CU_ASSERT_EQUAL(n.refused, 0);
    CU_ASSERT_TRUE(f.recorded > 1000); /* its share */
    CU_ASSERT_TRUE(f.recorded * 1300 < (burst + rate * (seconds + 1)) * 13 / 10 + (1 << 20));
    CU_ASSERT_TRUE(asked > 20);
    CU_ASSERT_TRUE(slowest < 400);
    CU_ASSERT_TRUE(n.recorded >= asked - 1);
    journal_free(f.j);
    if (n.j != f.j)
        journal_free(n.j);
    CU_ASSERT_TRUE(rig_stop(&r));
    CU_ASSERT_TRUE(verify(dir, dir).ok);
    fixture_keep.share_burst = UINT64_C(1) << 40;
    fixture_keep.share_rate = 1 << 30;
    fixture_remove(dir);
}

static void test_flood_of_a_gate(void)
{
    flood_and_neighbour(ROLE_GATE, "flood", "", "");
}

static void test_flood_of_a_sharer(void)
{
    flood_and_neighbour(ROLE_INJECTOR, "", "flood", "quiet");
}

/* A writer cannot have whole records cut off by saying that it is torn before them. */
static void test_repair_takes_no_record(void)
{
    static struct fixture_lines l;
    char *dir = fixture_dir();
    struct rig r;
    struct raw w;
    struct record rec;
    rig_start(&r, dir, false, "");
    raw_open(&w, &r, ROLE_GATE, "box", "");
    record_init(&rec, RECORD_ADMITTED, 1);
    raw_record(&w, &rec);
    raw_tell(&w, W_REPAIR, 0);
    CU_ASSERT_TRUE(rig_until(r.base, raw_is_closed, &w));
    close(w.fd);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(fixture_count(&l, "kind", "admitted"), 1);
    fixture_lines_done(&l);
    fixture_remove(dir);
}

static void test_torn_is_repaired(void)
{
    static struct fixture_lines l;
    char *dir = fixture_dir(), path[512];
    struct stat st;
    struct rig r;
    struct raw w;
    struct record rec;
    unsigned char bytes[RECORD_MAX + 32];
    rig_start(&r, dir, false, "");
    raw_open(&w, &r, ROLE_GATE, "box", "");
    record_init(&rec, RECORD_ADMITTED, 1);
    raw_record(&w, &rec);
    size_t n = record_encode(&rec, 1, bytes, sizeof bytes);
    CU_ASSERT_EQUAL(write(w.fd, bytes, n - 3), (ssize_t)n - 3);
    snprintf(path, sizeof path, "%s/journal/1.j", dir);
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    off_t before = st.st_size;
    raw_tell(&w, W_REPAIR, n);
    rig_turns(r.base, 100);
    CU_ASSERT_FALSE(w.closed);
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    CU_ASSERT_EQUAL(st.st_size, before - ((off_t)n - 3));
    record_init(&rec, RECORD_COMPLETED, 1);
    raw_record(&w, &rec);
    raw_tell(&w, W_TICK, n * 2);
    rig_turns(r.base, 50);
    ipc_free(w.ipc);
    close(w.fd);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(fixture_count(&l, "kind", "completed"), 1);
    CU_ASSERT_EQUAL(fixture_count(&l, "kind", "aborted"), 0);
    CU_ASSERT_EQUAL(fixture_count(&l, "event", "journal_torn"), 1);
    fixture_lines_done(&l);
    fixture_remove(dir);
}

static void count_ok(void *arg, bool ok)
{
    int *n = arg;
    *n += ok ? 1 : 1000;
}

static bool is_ten(void *arg)
{
    return *(int *)arg >= 10;
}

static void test_synced(void)
{
    static struct fixture_lines l;
    char *dir = fixture_dir();
    struct rig r;
    int acks = 0;
    rig_start(&r, dir, true, "");
    struct journal *j = rig_journal(&r, ROLE_INJECTOR, "", true);
    for (int i = 0; i < 10; i++) {
        struct record rec;
        record_init(&rec, RECORD_ADMITTED, 0);
        record_put_str(&rec, RF_SANDBOX, "box7");
        CU_ASSERT_PTR_NOT_NULL(journal_append(j, &rec, count_ok, &acks));
    }
    CU_ASSERT_EQUAL(acks, 0); /* not before the logger says so */
    CU_ASSERT_TRUE(rig_until(r.base, is_ten, &acks));
    CU_ASSERT_EQUAL(acks, 10);
    fixture_read(dir, &l); /* on disk already */
    CU_ASSERT_EQUAL(fixture_count2(&l, "kind", "admitted", "sandbox", "box7"), 10);
    fixture_lines_done(&l);
    journal_free(j);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_remove(dir);
}

static unsigned looks; /* at files, by this whole program, the logger in it included */

int statx(int dirfd, const char *restrict path, int flags, unsigned mask, struct statx *restrict st)
{
    looks++;
    return (int)syscall(SYS_statx, dirfd, path, flags, mask, st);
}

struct one_at_a_time {
    struct journal *j;
    unsigned left;
    bool done;
};

static void next_record(void *arg, bool ok)
{
    struct one_at_a_time *t = arg;
    struct record rec;
    t->done = !ok || t->left == 0;
    if (t->done)
        return;
    t->left--;
    record_init(&rec, RECORD_DENIED, 0);
    CU_ASSERT_PTR_NOT_NULL(journal_append(t->j, &rec, next_record, t));
}

static bool is_done(void *arg)
{
    return ((struct one_at_a_time *)arg)->done;
}

/* What a record costs the logger does not grow with the writers that say nothing: only the clock
 * makes it look at those. */
static void test_idle_writers(void)
{
    enum { IDLE = 60, RECORDS = 300 };
    struct journal *idle[IDLE];
    char *dir = fixture_dir();
    struct rig r;
    rig_start(&r, dir, true, "");
    for (size_t i = 0; i < IDLE; i++)
        idle[i] = rig_journal(&r, ROLE_GATE, "idle", true);
    struct one_at_a_time t = {.j = rig_journal(&r, ROLE_GATE, "busy", true), .left = RECORDS};
    rig_turns(r.base, 300);
    uint64_t begun = fixture_ms();
    looks = 0;
    next_record(&t, true);
    CU_ASSERT_TRUE(rig_until(r.base, is_done, &t));
    CU_ASSERT_EQUAL(t.left, 0);
    unsigned seconds = (unsigned)(fixture_ms() - begun) / 1000 + 2; /* one look a second at each */
    CU_ASSERT_TRUE(looks >= RECORDS);
    CU_ASSERT_TRUE(looks < RECORDS * 8 + seconds * (IDLE + 40));
    for (size_t i = 0; i < IDLE; i++)
        journal_free(idle[i]);
    journal_free(t.j);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_remove(dir);
}

/* Credit comes back as records are copied: many times the first credit goes through. */
static void test_credit_flows(void)
{
    char *dir = fixture_dir(), big[2000];
    struct rig r;
    struct record rec;
    rig_start(&r, dir, false, "");
    struct journal *j = rig_journal(&r, ROLE_GATE, "box", false);
    unsigned refused = 0, done = 0;
    memset(big, 'a', sizeof big);
    record_init(&rec, RECORD_DNS, 0);
    record_put(&rec, RF_TARGET, (struct slice){big, sizeof big});
    for (uint64_t end = fixture_ms() + 8000; done < 2000 && fixture_ms() < end;) {
        if (journal_note(j, &rec) == 0) {
            done++;
        } else {
            refused++;
            rig_turns(r.base, 5);
        }
    }
    CU_ASSERT_EQUAL(done, 2000); /* 4 MB: without a turn of the loop it stops at 1 MiB */
    CU_ASSERT_TRUE(refused > 0);
    journal_free(j);
    CU_ASSERT_TRUE(rig_stop(&r));
    struct verify_result v = verify(dir, dir);
    CU_ASSERT_TRUE(v.ok);
    CU_ASSERT_EQUAL(v.records, 2003);
    fixture_remove(dir);
}

/* Lines removed while no daemon ran stay visible after the next one has signed. */
static void test_shortened_between_runs(void)
{
    char *dir = fixture_dir(), path[768];
    struct rig r;
    struct log_dir d;
    rig_start(&r, dir, false, "");
    CU_ASSERT_TRUE(rig_stop(&r));
    int fd = fixture_open(dir);
    CU_ASSERT_EQUAL(log_dir_list(fd, &d, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(d.n, 1);
    snprintf(path, sizeof path, "%s/%s", dir, d.name[0]);
    FILE *f = fopen(path, "r+");
    char line[4096];
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof line, f));
    CU_ASSERT_EQUAL(ftruncate(fileno(f), (off_t)strlen(line)), 0);
    fclose(f);
    log_dir_done(&d);
    close(fd);
    rig_start(&r, dir, false, "");
    CU_ASSERT_TRUE(r.ready);
    CU_ASSERT_TRUE(rig_stop(&r));
    struct verify_result v = verify(dir, dir);
    CU_ASSERT_FALSE(v.ok);
    CU_ASSERT_EQUAL(v.line, 1);
    fixture_remove(dir);
}

static bool is_logged(void *arg)
{
    return ((struct rig *)arg)->logs > 0;
}

/* A full disk: refused, bounded, and by itself well again. */
static void test_full_disk(void)
{
    static struct fixture_lines l;
    char *dir = fixture_dir(), path[512], big[1500];
    struct rig r;
    struct record rec;
    if (mount("tmpfs", dir, "tmpfs", 0, "size=512k,mode=0700") < 0) {
        tap_skip("needs root: mounts a small tmpfs");
        fixture_remove(dir);
        return;
    }
    rig_start(&r, dir, false, "");
    CU_ASSERT_TRUE(r.ready);
    struct journal *j = rig_journal(&r, ROLE_GATE, "box", false);
    memset(big, 'a', sizeof big);
    size_t taken = 0, refused = 0;
    for (int i = 0; i < 600 && refused < 20; i++) {
        record_init(&rec, RECORD_DENIED, journal_next(j));
        record_put(&rec, RF_PATH, (struct slice){big, sizeof big});
        if (journal_note(j, &rec) == 0)
            taken++;
        else
            refused++;
        rig_turns(r.base, 2);
    }
    CU_ASSERT_TRUE(refused >= 20);
    CU_ASSERT_TRUE(rig_until(r.base, is_logged, &r));
    snprintf(path, sizeof path, "size=8m,mode=0700");
    CU_ASSERT_EQUAL(mount("tmpfs", dir, "tmpfs", MS_REMOUNT, path), 0);
    CU_ASSERT_TRUE(rig_until(r.base, rig_journal_ready, j));
    rig_turns(r.base, 500);
    record_init(&rec, RECORD_DENIED, journal_next(j));
    record_put_str(&rec, RF_AUTHORITY, "after.example.com");
    CU_ASSERT_EQUAL(journal_note(j, &rec), 0);
    journal_free(j);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(fixture_count(&l, "kind", "denied"), taken + 1);
    CU_ASSERT_EQUAL(fixture_count(&l, "authority", "after.example.com"), 1);
    CU_ASSERT_EQUAL(fixture_count(&l, "event", "journal_corrupt"), 0);
    fixture_lines_done(&l);
    CU_ASSERT_TRUE(verify(dir, dir).ok);
    umount2(dir, MNT_DETACH);
    fixture_remove(dir);
}

void suite_logger(void)
{
    CU_pSuite s = CU_add_suite("logger", NULL, NULL);
    CU_add_test(s, "records, ends and signature of a whole life", test_whole_life);
    CU_add_test(s, "files are private", test_files_are_private);
    CU_add_test(s, "one daemon a directory", test_one_daemon_a_directory);
    CU_add_test(s, "a killed logger loses and doubles nothing", test_killed_logger);
    CU_add_test(s, "a late writer's records are kept", test_late_writer);
    CU_add_test(s, "second records of an id are reported", test_second_records);
    CU_add_test(s, "bad records end the channel", test_bad_writers);
    CU_add_test(s, "an overrun ends the channel", test_overrun);
    CU_add_test(s, "a silent overrun is found", test_silent_overrun);
    CU_add_test(s, "a small one, too", test_small_overrun);
    CU_add_test(s, "a journal at rest is removed", test_removed_at_rest);
    CU_add_test(s, "large ones at once", test_large_overruns);
    CU_add_test(s, "one sandbox floods its gate", test_flood_of_a_gate);
    CU_add_test(s, "one sandbox floods a writer of several", test_flood_of_a_sharer);
    CU_add_test(s, "repair takes no whole record", test_repair_takes_no_record);
    CU_add_test(s, "a torn journal is repaired", test_torn_is_repaired);
    CU_add_test(s, "synced: acknowledged from disk", test_synced);
    CU_add_test(s, "credit flows", test_credit_flows);
    CU_add_test(s, "writers that say nothing cost nothing", test_idle_writers);
    CU_add_test(s, "a log shortened between runs stays broken", test_shortened_between_runs);
    CU_add_test(s, "full disk and recovery", test_full_disk);
}

void tap_suites(void)
{
    suite_logger();
}
