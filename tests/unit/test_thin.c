/* Retention takes the records of who filled the log, and leaves others': the file that remains,
 * what verify and proofs say of it, and what they say once somebody else had a hand in it. */
#include "tap_main.h"

#include "audit_fixture.h"
#include "checkpoint.h"
#include "gap.h"
#include "head.h"
#include "proof.h"
#include "prune.h"
#include "verify.h"

#include <CUnit/CUnit.h>
#include <dirent.h>
#include <sys/sendfile.h>

enum { ROUNDS = 4, REFUSED = 200, TEXT_MAX = 4 << 20 };

static char text[TEXT_MAX];

static void refuse(struct journal *j, const char *path)
{
    struct record r;
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_CODE, "no_rule");
    record_put_str(&r, RF_PATH, path);
    CU_ASSERT_EQUAL(journal_note(j, &r), 0);
}

static void serve(struct journal *j, const char *path)
{
    struct record r;
    uint64_t id = journal_next(j);
    record_init(&r, RECORD_ADMITTED, id);
    record_put_str(&r, RF_PATH, path);
    CU_ASSERT_EQUAL(journal_note(j, &r), 0);
    record_init(&r, RECORD_COMPLETED, id);
    CU_ASSERT_EQUAL(journal_note(j, &r), 0);
}

/* One sandbox is refused, and refused, others work. */
static void flood_into(const char *dir, bool admitted)
{
    char path[401];
    struct rig r;
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = 0;
    fixture_keep.rotate_bytes = 60000;
    rig_start(&r, dir, false, "");
    struct journal *flood = rig_journal(&r, ROLE_GATE, "flood", false),
                   *quiet = rig_journal(&r, ROLE_GATE, "quiet", false);
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < REFUSED; k++) {
            if (admitted)
                serve(flood, path);
            else
                refuse(flood, path);
            if (k % 40 == 20) {
                rig_turns(r.base, 20); /* or the quiet one's would all stand together */
                serve(quiet, "/mine");
                for (int n = 0; n < 8; n++) /* enough for a gap, were it taken out */
                    refuse(quiet, path);
                rig_turns(r.base, 20);
            }
        }
        rig_turns(r.base, 1200);
    }
    journal_free(flood);
    journal_free(quiet);
    CU_ASSERT_TRUE(rig_stop(&r));
}

static void copy_file(int from, int to, const char *name)
{
    int in = openat(from, name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    CU_ASSERT_EQUAL_FATAL(fstat(in, &st), 0);
    int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777);
    for (off_t left = st.st_size; left > 0;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        CU_ASSERT_TRUE_FATAL(n > 0);
        left -= n;
    }
    close(in);
    close(out);
}

static void copy_dir(const char *from, const char *to)
{
    int in = fixture_open(from), out = fixture_open(to);
    DIR *d = fdopendir(in);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        if (e->d_type == DT_REG)
            copy_file(in, out, e->d_name);
    closedir(d);
    close(out);
}

static char *made[2];

/* A log of some closed files, as flood_into writes it. It takes seconds of waiting, so each kind is
 * made once and copied. admitted: what the flood asks for is carried. */
static void fill(const char *dir, bool admitted)
{
    if (made[admitted] == NULL) {
        made[admitted] = fixture_dir();
        flood_into(made[admitted], admitted);
    }
    copy_dir(made[admitted], dir);
}

static int remove_made(void)
{
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        if (made[i])
            fixture_remove(made[i]);
    return 0;
}

static uint64_t size_of(const char *dir)
{
    struct log_dir d;
    int fd = fixture_open(dir);
    CU_ASSERT_EQUAL_FATAL(log_dir_list(fd, &d, NULL), 0);
    uint64_t n = prune_total(fd, &d);
    log_dir_done(&d);
    close(fd);
    return n;
}

/* A logger that keeps no more than bytes (0: any), until that is reached and a second more, and no
 * longer than ms. */
static void retain(const char *dir, uint64_t bytes, unsigned ms)
{
    struct rig r;
    fixture_keep.keep_bytes = bytes;
    rig_start(&r, dir, false, "");
    CU_ASSERT_TRUE(r.ready);
    uint64_t end = fixture_ms() + ms;
    while (fixture_ms() < end && (bytes == 0 || size_of(dir) > bytes))
        rig_turns(r.base, 50);
    if (bytes > 0 && fixture_ms() < end)
        rig_turns(r.base, 1000);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_keep.keep_bytes = 0;
    fixture_keep.compress = false;
    fixture_keep.rotate_bytes = 64 << 20;
}

static struct verify_result check(const char *dir)
{
    struct verify_result v;
    struct err err = {0};
    int fd = fixture_open(dir);
    struct signing_key *k = signing_key_public(fd, "key.pub", &err);
    verify_dir(fd, k, NULL, &v);
    if (!v.ok)
        printf("# %s:%llu %s\n", v.file, (unsigned long long)v.line, v.why);
    signing_key_free(k);
    close(fd);
    return v;
}

static size_t of(const struct fixture_lines *l, const char *sandbox, const char *kind)
{
    return fixture_count2(l, "sandbox", sandbox, "kind", kind);
}

/* Of the quiet one's requests one, that stands between gaps: still proven. */
static void prove(const char *dir)
{
    static struct fixture_lines l;
    struct err err = {0};
    uint64_t seq = 0, said = 0;
    bool gap = false;
    fixture_read(dir, &l);
    for (size_t i = 0; i < l.n; i++) {
        gap |= strcmp(fixture_text(&l, i, "kind"), "gap") == 0;
        if (gap && strcmp(fixture_text(&l, i, "path"), "/mine") == 0)
            seq = (uint64_t)json_integer_value(json_object_get(l.json[i], "seq"));
    }
    fixture_lines_done(&l);
    int fd = fixture_open(dir);
    struct signing_key *k = signing_key_public(fd, "key.pub", &err);
    json_t *proof = proof_make(fd, seq, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(proof);
    CU_ASSERT_EQUAL(proof_check(proof, k, &said, &err), 0);
    CU_ASSERT_EQUAL(said, seq);
    json_decref(proof);
    signing_key_free(k);
    close(fd);
}

static void thinned(bool compress)
{
    static struct fixture_lines l;
    char *dir = fixture_dir();
    fixture_keep.compress = compress;
    fill(dir, false);
    fixture_read(dir, &l);
    size_t flood = of(&l, "flood", "denied"), mine = of(&l, "quiet", "admitted"),
           ends = of(&l, "quiet", "completed"), not_mine = of(&l, "quiet", "denied");
    CU_ASSERT_TRUE(flood == (size_t)ROUNDS * REFUSED && mine == ROUNDS * 5 && not_mine == 8 * mine);
    fixture_lines_done(&l);
    fixture_keep.compress = compress;
    retain(dir, compress ? size_of(dir) / 10 * 8 : 300000, 2000 + 1500 * ROUNDS);
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(of(&l, "quiet", "admitted"), mine);
    CU_ASSERT_EQUAL(of(&l, "quiet", "completed"), ends);
    CU_ASSERT_EQUAL(of(&l, "quiet", "denied"), not_mine);
    CU_ASSERT_EQUAL(fixture_count(&l, "event", "log_pruned"), 0);
    CU_ASSERT_TRUE(fixture_count2(&l, "event", "log_thinned", "sandbox", "flood") >=
                   (compress ? 1 : 2)); /* packed it is soon little enough */
    CU_ASSERT_EQUAL(fixture_count2(&l, "event", "log_thinned", "sandbox", "quiet"), 0);
    struct verify_result v = check(dir);
    CU_ASSERT_TRUE(v.ok && v.first_seq == 1);
    CU_ASSERT_EQUAL(v.n_gaps, 1);
    CU_ASSERT_STRING_EQUAL(v.gap[0].sandbox, "flood");
    CU_ASSERT_TRUE(v.removed > (compress ? REFUSED / 2 : flood / 2));
    CU_ASSERT_EQUAL(v.gap[0].records, v.removed);
    CU_ASSERT_EQUAL(of(&l, "flood", "denied") + v.removed, flood);
    fixture_lines_done(&l);
    prove(dir);
    retain(dir, 0, 300); /* and the next logger goes on from it */
    v = check(dir);
    CU_ASSERT_TRUE(v.ok);
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(fixture_count(&l, "event", "chain_broken"), 0);
    fixture_lines_done(&l);
    fixture_remove(dir);
}

static void test_thinned(void)
{
    thinned(false);
}

static void test_thinned_packed(void)
{
    thinned(true);
}

/* Where nothing was refused the one who filled it loses its requests, not its neighbour. */
static void test_carried(void)
{
    static struct fixture_lines l;
    char *dir = fixture_dir();
    fill(dir, true);
    retain(dir, 300000, 3000 + 3000 * ROUNDS);
    fixture_read(dir, &l);
    CU_ASSERT_EQUAL(of(&l, "quiet", "admitted"), ROUNDS * 5);
    CU_ASSERT_EQUAL(of(&l, "quiet", "denied"), ROUNDS * 5 * 8);
    CU_ASSERT_EQUAL(fixture_count(&l, "event", "log_pruned"), 0);
    struct verify_result v = check(dir);
    CU_ASSERT_TRUE(v.ok && v.removed > REFUSED);
    CU_ASSERT_STRING_EQUAL(v.gap[0].sandbox, "flood");
    fixture_lines_done(&l);
    fixture_remove(dir);
}

/* ---- forgeries ---- */

static size_t first_with(const char *dir, const char *what, char path[512])
{
    struct log_dir d;
    int fd = fixture_open(dir);
    size_t n = 0;
    CU_ASSERT_EQUAL_FATAL(log_dir_list(fd, &d, NULL), 0);
    for (size_t i = 0; i < d.n; i++) {
        snprintf(path, 512, "%s/%s", dir, d.name[i]);
        FILE *f = fopen(path, "r");
        n = fread(text, 1, TEXT_MAX - 1, f);
        text[n] = 0;
        fclose(f);
        if (strstr(text, what))
            break;
        n = 0;
    }
    log_dir_done(&d);
    close(fd);
    return n;
}

static void put(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "w");
    CU_ASSERT_EQUAL(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* What a gap says cannot be changed: neither whose it is, nor how many, nor what is behind. */
static void test_forged(void)
{
    static const struct {
        const char *key;
        size_t skip;
    } places[] = {{"\"sandbox\":\"", 0}, {"\"count\":", 0},  {"\"last\":\"", 5},
                  {"\"nodes\":\"", 9},   {"\"time\":\"", 3}, {"\"signature\":\"", 7}};
    static char good[TEXT_MAX];
    char *dir = fixture_dir(), path[512];
    fill(dir, false);
    retain(dir, 300000, 2000 + 1500 * ROUNDS);
    size_t n = first_with(dir, "\"kind\":\"gap\"", path);
    CU_ASSERT_TRUE_FATAL(n > 0);
    memcpy(good, text, n + 1);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        memcpy(text, good, n + 1);
        char *at = strstr(strstr(text, "\"kind\":\"gap\""), places[i].key);
        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        at += strlen(places[i].key) + places[i].skip;
        *at = *at == '1' ? '2' : '1';
        put(path, text, n);
        CU_ASSERT_FALSE(check(dir).ok);
    }
    put(path, good, n);
    CU_ASSERT_TRUE(check(dir).ok);
    fixture_remove(dir);
}

/* A record that somebody changed is not taken out under the logger's own signature. */
static void test_no_laundering(void)
{
    char *dir = fixture_dir(), path[512];
    fill(dir, false);
    size_t n = first_with(dir, "\"code\":\"no_rule\"", path);
    CU_ASSERT_TRUE_FATAL(n > 0);
    char *at = strstr(text, "\"code\":\"no_rule\"");
    at[9] = 'N';
    put(path, text, n);
    retain(dir, 450000, 2000 + 1500 * ROUNDS);
    CU_ASSERT_FALSE(check(dir).ok);
    FILE *f = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_EQUAL(fread(text, 1, TEXT_MAX - 1, f), n); /* it is as it was */
    fclose(f);
    fixture_remove(dir);
}

/* A checkpoint whose signature is good, over another root than its lines have: as from a logger
 * that lies about what it wrote. */
static void test_wrong_root(void)
{
    char *dir = fixture_dir(), path[512], said[1024];
    struct rig r;
    struct err err = {0};
    struct checkpoint c;
    struct head h;
    rig_start(&r, dir, false, "");
    struct journal *j = rig_journal(&r, ROLE_GATE, "box", false);
    for (int i = 0; i < 5; i++)
        refuse(j, "/x");
    journal_free(j);
    CU_ASSERT_TRUE(rig_stop(&r));
    CU_ASSERT_TRUE(check(dir).ok);
    size_t n = first_with(dir, "\"kind\":\"checkpoint\"", path);
    size_t begin = n - 1;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    struct slice line = {text + begin, n - 1 - begin};
    CU_ASSERT_EQUAL_FATAL(checkpoint_parse(line, &c), 0);
    int fd = fixture_open(dir);
    struct signing_key *k = signing_key_open(fd, &err);
    char root[CHAIN_HEX], prev[CHAIN_HEX], sig[CHECKPOINT_SIGNATURE_HEX];
    c.root[0] ^= 1;
    int m = snprintf(said, sizeof said, "durward audit checkpoint 1\n%llu\n%llu\n%s\n%s\n%s\n",
                     (unsigned long long)c.first, (unsigned long long)c.last,
                     chain_hex(c.root, root), chain_hex(c.prev, prev), c.time);
    CU_ASSERT_EQUAL(signing_key_sign(k, (struct slice){said, (size_t)m}, c.signature), 0);
    checkpoint_signature_hex(c.signature, sig);
    memcpy(strstr(text + begin, "\"root\":\"") + 8, root, strlen(root));
    memcpy(strstr(text + begin, "\"signature\":\"") + 13, sig, strlen(sig));
    put(path, text, n);
    CU_ASSERT_EQUAL(head_read(fd, &h, k, &err), 1);
    CU_ASSERT_EQUAL(chain_hash(line, h.tip.hash), 0);
    CU_ASSERT_EQUAL(head_write(fd, &h, k, &err), 0);
    signing_key_free(k);
    close(fd);
    struct verify_result v = check(dir);
    CU_ASSERT_FALSE(v.ok);
    CU_ASSERT_PTR_NOT_NULL(strstr(v.why, "not one over records"));
    fixture_remove(dir);
}

/* Retention that cannot look says so: it is no answer that nothing is due. */
static void test_unreadable(void)
{
    struct prune_limits limits = {1, 0}, none = {0, 0};
    struct prune p;
    struct err err = {0};
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CU_ASSERT(file >= 0);
    CU_ASSERT_EQUAL(prune_pick(file, &limits, 0, &p, &err), -1);
    CU_ASSERT(err.text[0] != 0);
    CU_ASSERT_EQUAL(prune_pick(file, &none, 0, &p, &err), 0); /* nothing to look for */
    close(file);
}

void tap_suites(void)
{
    CU_pSuite s = CU_add_suite("thin", NULL, remove_made);
    CU_add_test(s, "what was refused to who filled the log goes first", test_thinned);
    CU_add_test(s, "the same of compressed files", test_thinned_packed);
    CU_add_test(s, "then what was carried for it", test_carried);
    CU_add_test(s, "a gap says what the logger signed", test_forged);
    CU_add_test(s, "nothing is taken out of a file that was changed", test_no_laundering);
    CU_add_test(s, "a signed checkpoint over another root", test_wrong_root);
    CU_add_test(s, "a folder that cannot be read", test_unreadable);
}
