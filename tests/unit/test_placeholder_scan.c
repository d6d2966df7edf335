/* Placeholders in messages that come in pieces (C20): found, and told apart, wherever they are cut
 * and whatever their last letters are. */
#include "placeholder_scan.h"
#include "guard_bed.h"

void suite_placeholder_scan(void);

/* -> why it is refused, "" for nothing, of a message in two pieces; *out: how much went on. */
static const char *in_two(struct tunnel_filter f, const char *p, size_t n, size_t cut, size_t *out)
{
    const char *why[3] = {NULL, NULL, NULL};
    struct slice passed[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    why[0] = f.piece(f.self, (struct slice){p, cut}, &passed[0]);
    *out = why[0] ? 0 : passed[0].n;
    if (why[0] == NULL)
        why[1] = f.piece(f.self, (struct slice){p + cut, n - cut}, &passed[1]);
    else
        return why[0];
    *out += why[1] ? 0 : passed[1].n;
    why[2] = why[1] ? NULL : f.rest(f.self, &passed[2]);
    *out += why[1] || why[2] ? 0 : passed[2].n;
    return why[1] ? why[1] : why[2] ? why[2] : "";
}

static unsigned judge_all(const char *head, const char *p, const char *tail, const char *want)
{
    char message[3 * PLACEHOLDER_MAX];
    unsigned wrong = 0;
    size_t n = (size_t)snprintf(message, sizeof message, "%s%s%s", head, p, tail), out;
    for (size_t cut = 0; cut <= n; cut++) {
        struct placeholder_scan *w = placeholder_scan_new(&gate, &who);
        const char *why = in_two(placeholder_scan_filter(w), message, n, cut, &out);
        bool leaked = want[0] ? out > strlen(head) : out != n;
        if (strcmp(why, want) != 0 || leaked) {
            if (wrong++ == 0)
                printf("# %s cut at %zu: '%s', %zu bytes went on\n", message, cut, why, out);
        }
        placeholder_scan_free(w);
    }
    return wrong;
}

/* 200 of each kind: one in ten or so ends with a letter with which another may begin. */
static void test_pieces(void)
{
    static const char *const kinds[] = {"github-pat", "openai", "anthropic", ""};
    char own[PLACEHOLDER_MAX], far[PLACEHOLDER_MAX], *before = gate.placeholders[0].text;
    unsigned wrong = 0;
    gate.placeholders[0].text = own;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (unsigned i = 0; i < 200; i++) {
            unsigned char seed[PLACEHOLDER_SEED] = {(unsigned char)i, 77};
            CU_ASSERT_EQUAL_FATAL(placeholder_make(gate.tag, seed, "k", kinds[k], own), 0);
            seed[2] = 1;
            CU_ASSERT_EQUAL_FATAL(placeholder_make(gate.tag, seed, "k", kinds[k], far), 0);
            wrong += judge_all("a ", own, "", "secret_blocked") +
                     judge_all("", own, " and more", "secret_blocked") +
                     judge_all("x", far, "", "cross_sandbox");
        }
    CU_ASSERT_EQUAL(wrong, 0);
    gate.placeholders[0].text = before;
}

/* What only looks like one, down to the beginning of a real one in its last letters. */
static void test_decoys(void)
{
    static const char decoy[] = "ghp_0123456789abcdefghijklmnopqrstuvwxyg";
    char before[PLACEHOLDER_MAX];
    CU_ASSERT_EQUAL(judge_all("", decoy, "", ""), 0);
    CU_ASSERT_EQUAL(judge_all("the end is g", "", "d", ""), 0);
    snprintf(before, sizeof before, "dwd_%.31s",
             decoy + 4); /* with the first letter of mine it is whole */
    CU_ASSERT_EQUAL(strncmp(mine, "dwd_", 4), 0);
    CU_ASSERT_EQUAL(judge_all(before, mine, "", "secret_blocked"), 0);
}

void suite_placeholder_scan(void)
{
    CU_pSuite s = CU_add_suite("watch", setup, teardown);
    CU_add_test(s, "own and others' in pieces (C20)", test_pieces);
    CU_add_test(s, "what only looks like one", test_decoys);
}

void tap_suites(void)
{
    suite_placeholder_scan();
}
