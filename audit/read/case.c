/* Puts records and their proofs together, each checkpoint once, and checks such a case with the
 * log's public key alone. */
#include "case.h"

#include "chain.h"
#include "proof.h"

#include <string.h>

struct making {
    json_t *checkpoints, *records, *not_signed;
    size_t n;
};

static json_t *text(struct slice s)
{
    return json_stringn(s.p, s.n);
}

static int take(void *arg, const struct proof_record *p)
{
    struct making *m = arg;
    m->n++;
    if (p->steps < 0)
        return json_array_append_new(m->not_signed, text(p->line));
    size_t n = json_array_size(m->checkpoints);
    const char *last = json_string_value(json_array_get(m->checkpoints, n - 1));
    if (last && slice_eq_str(p->checkpoint, last))
        n--;
    else if (json_array_append_new(m->checkpoints, text(p->checkpoint)) < 0)
        return -1;
    return json_array_append_new(m->records,
                                 json_pack("{s:o,s:I,s:o}", "line", text(p->line), "checkpoint",
                                           (json_int_t)n, "path", proof_path(p)));
}

json_t *case_make(int dirfd, const uint64_t *seq, size_t n, struct err *err)
{
    struct making m = {json_array(), json_array(), json_array(), 0};
    int r = m.checkpoints && m.records && m.not_signed
                ? proof_each(dirfd, seq, n, take, &m, err)
                : err_set(err, ERR_INTERNAL, "out of memory");
    if (r == 0 && m.n != n)
        r = err_set(err, ERR_UNREADY, "of %zu records retention has removed %zu meanwhile", n,
                    n - m.n);
    json_t *v = json_pack("{s:i,s:o,s:o,s:o}", "durward_case", 1, "checkpoints", m.checkpoints,
                          "records", m.records, "unsigned", m.not_signed);
    if (r < 0) {
        json_decref(v);
        return NULL;
    }
    return v;
}

/* Each line is another record, later than the one before: none is told twice. */
static int in_order(uint64_t seq, uint64_t *last, struct err *err)
{
    if (seq <= *last)
        return err_set(err, ERR_DENIED, "record %llu is told twice, or out of order",
                       (unsigned long long)seq);
    *last = seq;
    return 0;
}

static int check_record(const json_t *checkpoints, json_t *record, const struct signing_key *key,
                        uint64_t *last, struct err *err)
{
    json_t *line, *path, *checkpoint = NULL;
    json_int_t which;
    uint64_t seq;
    if (json_unpack(record, "{s:o,s:I,s:o}", "line", &line, "checkpoint", &which, "path", &path) ==
            0 &&
        which >= 0)
        checkpoint = json_array_get(checkpoints, (size_t)which);
    if (checkpoint == NULL)
        return err_set(err, ERR_PARSE, "a record of the case names no checkpoint of it");
    json_t *proof =
        json_pack("{s:O,s:O,s:O}", "line", line, "path", path, "checkpoint", checkpoint);
    int r =
        proof ? proof_check(proof, key, &seq, err) : err_set(err, ERR_INTERNAL, "out of memory");
    json_decref(proof);
    return r < 0 ? r : in_order(seq, last, err);
}

static int check_unsigned(const json_t *line, uint64_t *last, struct err *err)
{
    unsigned char prev[CHAIN_HASH];
    struct slice rest;
    uint64_t seq;
    const char *s = json_string_value(line);
    if (s == NULL || chain_parse(slice_str(s), &seq, prev, &rest) < 0)
        return err_set(err, ERR_PARSE, "a line of the case is no record");
    return in_order(seq, last, err);
}

int case_check(const json_t *c, const struct signing_key *key, struct case_result *ret,
               struct err *err)
{
    json_t *checkpoints, *records, *not_signed, *one;
    json_int_t version;
    uint64_t last = 0;
    size_t i;
    *ret = (struct case_result){0};
    if (json_unpack((json_t *)(uintptr_t)c, "{s:I,s:o,s:o,s:o}", "durward_case", &version,
                    "checkpoints", &checkpoints, "records", &records, "unsigned",
                    &not_signed) < 0 ||
        version != 1 || !json_is_array(checkpoints) || !json_is_array(records) ||
        !json_is_array(not_signed))
        return err_set(err, ERR_PARSE, "this is not a case");
    json_array_foreach(records, i, one)
    {
        if (check_record(checkpoints, one, key, &last, err) < 0)
            return -1;
        ret->records++;
    }
    json_array_foreach(not_signed, i, one)
    {
        if (check_unsigned(one, &last, err) < 0)
            return -1;
        ret->not_signed++;
    }
    return 0;
}
