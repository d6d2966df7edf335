/* Checkpoints: what the chain alone does not show. A log whose chain was made anew, one that was
 * put back to an older state together with its head, one record proven without the rest; and what
 * becomes of old files. */
#include "audit_fixture.h"
#include "case.h"
#include "checkpoint.h"
#include "head.h"
#include "merkle.h"
#include "proof.h"
#include "tap_main.h"
#include "verify.h"

#include <sys/stat.h>

void suite_checkpoint(void);

enum { LOG_MAX = 1 << 20, LEAVES = 70 };

static char text[LOG_MAX], changed[LOG_MAX];
static char anchors[16384];

/* Into `text`; i counts from the oldest, UINT32_MAX is the latest. */
static size_t read_log(const char *dir, unsigned i, char path[512]);

/* One life of a logger with n denials; its checkpoint goes to `anchors`. */
static void live(const char *dir, unsigned n)
{
    struct rig r;
    rig_start(&r, dir, false, "");
    CU_ASSERT_TRUE_FATAL(r.ready);
    struct journal *j = rig_journal(&r, ROLE_GATE, "box", false);
    for (unsigned i = 0; i < n; i++) {
        struct record rec;
        record_init(&rec, RECORD_DENIED, 0);
        record_put_u64(&rec, RF_STATUS, 400 + i % 100);
        CU_ASSERT_EQUAL(journal_note(j, &rec), 0);
    }
    journal_free(j);
    CU_ASSERT_TRUE(rig_stop(&r));
    char path[512];
    read_log(dir, UINT32_MAX, path);
    char *line = strstr(text, "\"kind\":\"checkpoint\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(line);
    while (line > text && line[-1] != '\n')
        line--;
    size_t len = (size_t)(strchr(line, '\n') - line) + 1, have = strlen(anchors);
    CU_ASSERT_FATAL(have + len < sizeof anchors);
    memcpy(anchors + have, line, len);
    anchors[have + len] = 0;
}

static size_t read_log(const char *dir, unsigned i, char path[512])
{
    struct log_dir d;
    int fd = fixture_open(dir);
    CU_ASSERT_EQUAL_FATAL(log_dir_list(fd, &d, NULL), 0);
    if (i == UINT32_MAX)
        i = (unsigned)d.n - 1;
    CU_ASSERT_FATAL(i < d.n);
    snprintf(path, 512, "%s/%s", dir, d.name[i]);
    log_dir_done(&d);
    close(fd);
    FILE *f = fopen(path, "r");
    size_t n = fread(text, 1, LOG_MAX - 1, f);
    fclose(f);
    text[n] = 0;
    return n;
}

static void put(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "w");
    CU_ASSERT_EQUAL(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static struct verify_result check(const char *dir, const char *anchor_text)
{
    struct verify_result v = {0};
    struct err err = {0};
    struct verify_anchor *a = NULL;
    int fd = fixture_open(dir);
    struct signing_key *k = signing_key_public(fd, "key.pub", &err);
    if (anchor_text) {
        char path[512];
        snprintf(path, sizeof path, "%s/anchor", dir);
        put(path, anchor_text, strlen(anchor_text));
        int at = open(path, O_RDONLY);
        a = verify_anchor_read(at, k, &err);
        CU_ASSERT_PTR_NOT_NULL(a);
        close(at);
    }
    verify_dir(fd, k, a, &v);
    if (a)
        verify_settle(a, "", &v);
    verify_anchor_free(a);
    signing_key_free(k);
    close(fd);
    return v;
}

/* ---- the tree ---- */

static void test_tree(void)
{
    static unsigned char leaf[LEAVES][CHAIN_HASH];
    static struct merkle_part part[LEAVES];
    struct merkle m = {0};
    static struct merkle_want want[LEAVES], one[1];
    unsigned char root[CHAIN_HASH], climbed[CHAIN_HASH];
    CU_ASSERT_EQUAL(merkle_root(&m, root), -1);
    for (unsigned n = 1; n <= LEAVES; n++) {
        memset(leaf[n - 1], (int)n, CHAIN_HASH);
        CU_ASSERT_EQUAL(merkle_add(&m, leaf[n - 1]), 0);
        part[n - 1].at = n - 1;
        CU_ASSERT_EQUAL(merkle_leaf(leaf[n - 1], part[n - 1].hash), 0);
        CU_ASSERT_EQUAL(merkle_root(&m, root), 0);
        for (unsigned i = 0; i < n; i++) {
            want[i].index = i;
            one[0].index = i;
            CU_ASSERT_EQUAL(merkle_paths(part, n, one, 1), 0);
            CU_ASSERT_EQUAL(merkle_climb(leaf[i], one[0].path, one[0].n, climbed), 0);
            CU_ASSERT_EQUAL(memcmp(root, climbed, CHAIN_HASH), 0);
        }
        CU_ASSERT_EQUAL(merkle_paths(part, n, want, n), 0);
        for (unsigned i = 0; i < n; i++) {
            CU_ASSERT_TRUE(want[i].n >= 0 && want[i].n <= 7);
            CU_ASSERT_EQUAL(merkle_climb(leaf[i], want[i].path, want[i].n, climbed), 0);
            CU_ASSERT_EQUAL(memcmp(root, climbed, CHAIN_HASH), 0);
            CU_ASSERT_EQUAL(merkle_climb(leaf[(i + 1) % LEAVES], want[i].path, want[i].n, climbed),
                            0);
            CU_ASSERT_NOT_EQUAL(memcmp(root, climbed, CHAIN_HASH), 0);
        }
    }
    one[0].index = 3;
    CU_ASSERT_EQUAL(merkle_paths(part, 3, one, 1), -1);
}

/* ---- forgeries ---- */

/* Every line's prev made right again, from the first on. */
static size_t rechain(const char *from, size_t n)
{
    struct chain c;
    char hex[CHAIN_HEX];
    size_t out = 0;
    chain_genesis(&c);
    for (const char *at = from, *end; at < from + n; at = end + 1) {
        end = memchr(at, '\n', (size_t)(from + n - at));
        const char *rest = strstr(at, "\",\"kind\"");
        int k = snprintf(changed + out, LOG_MAX - out, "{\"seq\":%llu,\"prev\":\"%s%.*s\n",
                         (unsigned long long)c.seq + 1, chain_hex(c.hash, hex), (int)(end - rest),
                         rest);
        CU_ASSERT_EQUAL(chain_step(&c, (struct slice){changed + out, (size_t)k - 1}), 0);
        out += (size_t)k;
    }
    return out;
}

static void test_rechained(void)
{
    char *dir = fixture_dir(), path[512];
    anchors[0] = 0;
    live(dir, 5);
    size_t n = read_log(dir, 0, path);
    CU_ASSERT_EQUAL(rechain(text, n), n);
    CU_ASSERT_EQUAL(memcmp(text, changed, n), 0); /* the forger can do it right */
    char *status = strstr(text, "\"status\":402");
    CU_ASSERT_PTR_NOT_NULL_FATAL(status);
    status[11] = '9';
    put(path, changed, rechain(text, n));
    struct verify_result v = check(dir, NULL);
    CU_ASSERT_FALSE(v.ok);
    CU_ASSERT_STRING_EQUAL(v.why, "this checkpoint is not signed by this key");
    fixture_remove(dir);
}

/* The forger makes chain, checkpoints and head anew with a key of his own. */
static void test_resigned(void)
{
    char *dir = fixture_dir(), *other = fixture_dir(), path[512];
    struct err err = {0};
    struct verify_result v = {0};
    anchors[0] = 0;
    live(dir, 5);
    live(other, 5);
    snprintf(path, sizeof path, "%s/key.pub", dir);
    int fd = fixture_open(other);
    struct signing_key *k = signing_key_public(AT_FDCWD, path, &err);
    verify_dir(fd, k, NULL, &v);
    CU_ASSERT_FALSE(v.ok);
    signing_key_free(k);
    close(fd);
    fixture_remove(dir);
    fixture_remove(other);
}

/* An older log with its own, honest, older head: only the anchor knows of the newer checkpoint. */
static void test_rollback(void)
{
    char *dir = fixture_dir(), path[512], head[512], old_head[1024] = "";
    anchors[0] = 0;
    live(dir, 5);
    snprintf(head, sizeof head, "%s/head", dir);
    FILE *f = fopen(head, "r");
    size_t n = fread(old_head, 1, sizeof old_head - 1, f);
    fclose(f);
    live(dir, 3);
    CU_ASSERT_TRUE(check(dir, anchors).ok);
    CU_ASSERT_EQUAL(check(dir, anchors).anchored, 2);
    read_log(dir, 1, path);
    CU_ASSERT_EQUAL(unlink(path), 0);
    put(head, old_head, n);
    CU_ASSERT_TRUE(check(dir, NULL).ok);
    struct verify_result v = check(dir, anchors);
    CU_ASSERT_FALSE(v.ok);
    CU_ASSERT_PTR_NOT_NULL(strstr(v.why, "anchor"));
    live(dir, 4); /* and another future does not make up for it */
    CU_ASSERT_TRUE(check(dir, NULL).ok);
    char two[sizeof anchors];
    snprintf(two, sizeof two, "%s", anchors);
    CU_ASSERT_FALSE(check(dir, two).ok);
    fixture_remove(dir);
}

static struct verify_anchor *anchor_of(const char *dir, const char *bytes, struct err *err)
{
    char path[512];
    snprintf(path, sizeof path, "%s/anchor", dir);
    put(path, bytes, strlen(bytes));
    int fd = fixture_open(dir), at = open(path, O_RDONLY);
    struct signing_key *k = signing_key_public(fd, "key.pub", err);
    err->text[0] = 0;
    struct verify_anchor *a = verify_anchor_read(at, k, err);
    signing_key_free(k);
    close(at);
    close(fd);
    return a;
}

/* An anchor is a file that others keep: text before a line and other lines do no harm, and nothing
 * but checkpoints of this key is one. */
static void test_anchors(void)
{
    char *dir = fixture_dir(), *other = fixture_dir(), foreign[sizeof anchors];
    static char mixed[3 * sizeof anchors];
    struct err err = {0};
    anchors[0] = 0;
    live(other, 2);
    snprintf(foreign, sizeof foreign, "%s", anchors);
    anchors[0] = 0;
    live(dir, 2);
    live(dir, 2);
    snprintf(mixed, sizeof mixed,
             "no line of it\n{}\n{\"kind\":\"checkpoint\"}\nhost durward: %s%s", anchors, anchors);
    CU_ASSERT_EQUAL(check(dir, mixed).anchored, 2);
    struct verify_anchor *a = anchor_of(dir, mixed, &err);
    uint64_t missing = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT(verify_anchor_missing(a, "", 0, &missing) && missing > 0);
    CU_ASSERT_EQUAL(verify_anchor_seen(a, missing + 1000, SLICE("x")), 0);
    CU_ASSERT_EQUAL(verify_anchor_seen(a, missing, SLICE("another line")), 0);
    CU_ASSERT(verify_anchor_missing(a, "", 0, &missing));
    CU_ASSERT_FALSE(verify_anchor_missing(a, "", UINT64_MAX, &missing));
    verify_anchor_free(a);
    static const char *const none[] = {"", "nothing\n", "{\n", "{}\n{\"kind\":\"denied\"}\n"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        CU_ASSERT_PTR_NULL(anchor_of(dir, none[i], &err));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "holds no checkpoint"));
    }
    snprintf(mixed, sizeof mixed, "%s%s", anchors, foreign);
    CU_ASSERT_PTR_NULL(anchor_of(dir, mixed, &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is not signed by this key"));
    char *digit = strstr(anchors, "\"root\":\"");
    CU_ASSERT_PTR_NOT_NULL_FATAL(digit);
    digit[8] = digit[8] == '0' ? '1' : '0'; /* one digit of what it vouches for */
    CU_ASSERT_PTR_NULL(anchor_of(dir, anchors, &err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "is not signed by this key"));
    fixture_remove(dir);
    fixture_remove(other);
}

/* The log that a line is of is the word before it, if that names a run. */
static void test_anchor_names(void)
{
    char *dir = fixture_dir();
    static char mixed[16 * sizeof anchors];
    struct err err = {0};
    uint64_t seq = 0;
    size_t n = 0;
    anchors[0] = 0;
    live(dir, 2);
    anchors[strcspn(anchors, "\n")] = 0;
    static const char *const before[] = {
        "run-b ",       "",
        "run-a ",       "Nov 30 host durward[1]: checkpoint ",
        "run-b  ",      "Nov 30 host durward[1]: checkpoint run-a ",
        "host run-c: ", "xrun-d "};
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        n += (size_t)snprintf(mixed + n, sizeof mixed - n, "%s%s\n", before[i], anchors);
    static const char *const within[] = {"run-a", "run-e", "other"};
    for (size_t i = 0; i < ARRAY_LEN(within); i++) /* what https gets */
        n += (size_t)snprintf(mixed + n, sizeof mixed - n, "{\"log\":\"%s\",%s\n", within[i],
                              anchors + 1);
    struct verify_anchor *a = anchor_of(dir, mixed, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT_EQUAL(verify_anchor_of(a, ""), 5);
    CU_ASSERT_EQUAL(verify_anchor_of(a, "run-a"), 3);
    CU_ASSERT_EQUAL(verify_anchor_of(a, "run-e"), 1);
    CU_ASSERT_EQUAL(verify_anchor_of(a, "run-b"), 2);
    CU_ASSERT_EQUAL(verify_anchor_of(a, "run-"), 0);
    CU_ASSERT_TRUE(verify_anchor_missing(a, "run-a", 0, &seq)); /* told */
    const char *absent = verify_anchor_absent(a, &seq);
    CU_ASSERT_PTR_NOT_NULL_FATAL(absent);
    CU_ASSERT_STRING_EQUAL(absent, "");
    absent = verify_anchor_absent(a, &seq);
    CU_ASSERT_PTR_NOT_NULL_FATAL(absent);
    CU_ASSERT_STRING_EQUAL(absent, "run-b");
    absent = verify_anchor_absent(a, &seq);
    CU_ASSERT(absent && strcmp(absent, "run-e") == 0);
    CU_ASSERT_EQUAL(verify_anchor_seen(a, seq, slice_str(anchors)),
                    1);                                /* the line as it was signed */
    CU_ASSERT_PTR_NULL(verify_anchor_absent(a, &seq)); /* each once */
    verify_anchor_free(a);
    fixture_remove(dir);
}

/* ---- proofs ---- */

static void test_proof(void)
{
    char *dir = fixture_dir();
    struct err err = {0};
    uint64_t seq;
    anchors[0] = 0;
    live(dir, 9);
    live(dir, 9);
    int fd = fixture_open(dir);
    struct signing_key *k = signing_key_public(fd, "key.pub", &err);
    for (uint64_t s = 1; s < 24;
         s++) { /* start, 9, stop, checkpoint, twice; the last is uncovered */
        json_t *p = proof_make(fd, s, &err);
        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        CU_ASSERT_EQUAL(proof_check(p, k, &seq, &err), 0);
        CU_ASSERT_EQUAL(seq, s);
        const char *line = json_string_value(json_object_get(p, "line"));
        char *forged = strdup(line);
        forged[strlen(forged) - 3] ^= 1;
        json_object_set_new(p, "line", json_string(forged));
        CU_ASSERT_EQUAL(proof_check(p, k, &seq, &err), -1);
        free(forged);
        json_decref(p);
    }
    CU_ASSERT_PTR_NULL(proof_make(fd, 24, &err));
    CU_ASSERT_EQUAL(err.code, ERR_UNREADY);
    CU_ASSERT_PTR_NULL(proof_make(fd, 99, &err));
    signing_key_free(k);
    close(fd);
    fixture_remove(dir);
}

/* Records of two lives, with an unsigned one: all of it holds, and nothing of it may change. */
static void test_case(void)
{
    char *dir = fixture_dir();
    struct err err = {0};
    struct case_result r;
    static const uint64_t seqs[] = {2, 3, 11, 12, 14, 20, 24}, gone[] = {2, 99};
    anchors[0] = 0;
    live(dir, 9);
    live(dir, 9);
    int fd = fixture_open(dir);
    struct signing_key *k = signing_key_public(fd, "key.pub", &err);
    json_t *c = case_make(fd, seqs, ARRAY_LEN(seqs), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    CU_ASSERT_EQUAL(case_check(c, k, &r, &err), 0);
    CU_ASSERT_EQUAL(r.records, 6);
    CU_ASSERT_EQUAL(r.not_signed, 1);
    CU_ASSERT_EQUAL(json_array_size(json_object_get(c, "checkpoints")), 2);
    json_t *records = json_object_get(c, "records"), *last = json_object_get(c, "unsigned");
    json_array_append(last, json_array_get(last, 0)); /* twice */
    CU_ASSERT_EQUAL(case_check(c, k, &r, &err), -1);
    json_array_remove(last, 1);
    json_object_set_new(json_array_get(records, 0), "checkpoint", json_integer(1));
    CU_ASSERT_EQUAL(case_check(c, k, &r, &err), -1);
    json_object_set_new(json_array_get(records, 0), "checkpoint", json_integer(-1));
    CU_ASSERT_EQUAL(case_check(c, k, &r, &err), -1);
    json_object_set_new(json_array_get(records, 0), "checkpoint", json_integer(0));
    json_array_insert(records, 1, json_array_get(records, 0)); /* twice */
    CU_ASSERT_EQUAL(case_check(c, k, &r, &err), -1);
    json_array_remove(records, 1);
    CU_ASSERT_EQUAL(case_check(c, k, &r, &err), 0);
    json_object_set_new(c, "durward_case", json_integer(2));
    CU_ASSERT_EQUAL(case_check(c, k, &r, &err), -1);
    json_decref(c);
    CU_ASSERT_PTR_NULL(case_make(fd, gone, ARRAY_LEN(gone), &err));
    CU_ASSERT_EQUAL(err.code, ERR_UNREADY);
    signing_key_free(k);
    close(fd);
    fixture_remove(dir);
}

/* ---- old files ---- */

static bool packed_there(void *arg)
{
    struct log_dir d;
    int fd = fixture_open(arg);
    bool packed = log_dir_list(fd, &d, NULL) == 0 && d.n > 1 && log_dir_packed(d.name[0]);
    log_dir_done(&d);
    close(fd);
    return packed;
}

static size_t files(const char *dir)
{
    struct log_dir d;
    int fd = fixture_open(dir);
    CU_ASSERT_EQUAL(log_dir_list(fd, &d, NULL), 0);
    size_t n = d.n;
    log_dir_done(&d);
    close(fd);
    return n;
}

/* Asked to, the logger begins a new file behind a checkpoint, and compresses the old one. */
static void rotated(struct rig *r, struct journal *j, char *dir)
{
    struct msg m;
    msg_init(&m, W_ROTATE);
    CU_ASSERT_EQUAL(ipc_send(r->control, &m), 0);
    for (unsigned i = 0; i < 30; i++) { /* over a second: a new file has something to say */
        struct record rec;
        record_init(&rec, RECORD_DENIED, 0);
        record_put_u64(&rec, RF_STATUS, 410);
        CU_ASSERT_EQUAL(journal_note(j, &rec), 0);
        rig_turns(r->base, 50);
    }
    CU_ASSERT_TRUE(rig_until(r->base, packed_there, dir));
    CU_ASSERT_TRUE(r->anchors == 1 && strstr(r->anchor, "\"kind\":\"checkpoint\""));
}

static void test_old_files(void)
{
    char *dir = fixture_dir();
    struct rig r;
    fixture_keep.compress = true;
    rig_start(&r, dir, false, "");
    struct journal *j = rig_journal(&r, ROLE_GATE, "box", false);
    rotated(&r, j, dir);
    journal_free(j);
    CU_ASSERT_TRUE(rig_stop(&r));
    size_t n = files(dir);
    struct verify_result v = check(dir, NULL);
    CU_ASSERT_TRUE(v.ok);
    if (!v.ok)
        printf("# %s:%llu %s\n", v.file, (unsigned long long)v.line, v.why);
    CU_ASSERT_TRUE(n >= 2 && v.checkpoints >= 2 && v.first_seq == 1);

    fixture_keep.keep_bytes = 1; /* everything but the active file may go */
    anchors[0] = 0;
    rig_start(&r, dir, false, "");
    rig_turns(r.base, 4500);
    CU_ASSERT_TRUE(rig_stop(&r));
    fixture_keep.keep_bytes = 0;
    fixture_keep.compress = false;
    CU_ASSERT_EQUAL(files(dir), 1);
    v = check(dir, NULL);
    if (!v.ok)
        printf("# %s:%llu %s\n", v.file, (unsigned long long)v.line, v.why);
    CU_ASSERT_TRUE(v.ok && v.first_seq > 1);
    char path[512];
    size_t size = read_log(dir, 0, path);
    char *pruned = strstr(text, "log_pruned");
    CU_ASSERT_PTR_NOT_NULL_FATAL(pruned);
    for (; pruned; pruned = strstr(pruned, "log_pruned"))
        pruned[0] = 'L'; /* without that word the files are simply missing */
    put(path, text, size);
    CU_ASSERT_FALSE(check(dir, NULL).ok);
    fixture_remove(dir);
}

/* Retention removes only what the log itself owns up to; a file that somebody else removed shows.
 */
static void test_removed(void)
{
    char *dir = fixture_dir(), path[512];
    anchors[0] = 0;
    live(dir, 3);
    live(dir, 3);
    read_log(dir, 0, path);
    CU_ASSERT_EQUAL(unlink(path), 0);
    struct verify_result v = check(dir, NULL);
    CU_ASSERT_FALSE(v.ok);
    CU_ASSERT_PTR_NOT_NULL(strstr(v.why, "retention"));
    fixture_remove(dir);
}

void suite_checkpoint(void)
{
    CU_pSuite s = CU_add_suite("checkpoint", NULL, NULL);
    CU_add_test(s, "tree, paths, roots", test_tree);
    CU_add_test(s, "a chain made anew", test_rechained);
    CU_add_test(s, "a log signed with another key", test_resigned);
    CU_add_test(s, "rolled back: the anchor shows it", test_rollback);
    CU_add_test(s, "anchors that are none", test_anchors);
    CU_add_test(s, "the log that an anchor's line is of", test_anchor_names);
    CU_add_test(s, "one record proven", test_proof);
    CU_add_test(s, "a case of several records", test_case);
    CU_add_test(s, "rotated, compressed, retained", test_old_files);
    CU_add_test(s, "the first file removed", test_removed);
}

void tap_suites(void)
{
    suite_checkpoint();
}
