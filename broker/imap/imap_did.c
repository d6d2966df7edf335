/* Counts commands by mailbox. The sandbox chooses the names and how many there are: so verbs have a
 * place of their own, and no name takes one from them. */
#include "imap_did.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum {
    HASH_BYTES = 8,
    WHOLE_MAX = IMAP_DID_NAME - 1,
    CUT_MAX = WHOLE_MAX - 1 - 2 * HASH_BYTES,
    COUNT_MAX = 24, /* behind a verb: a sign, ":18446744073709551615 " */
};

static const char others[] = "*"; /* no name has it: it is shown in percent form */

void imap_did_name(struct slice name, char text[IMAP_DID_NAME])
{
    unsigned char hash[EVP_MAX_MD_SIZE] = {0};
    struct buf b;
    text[0] = 0;
    buf_init(&b, 4 * 3 * IMAP_NAME_MAX);
    int e = imap_name_show(name, &b);
    struct slice all = buf_slice(&b);
    size_t n = all.n;
    if (n > WHOLE_MAX) {
        n = CUT_MAX;
        for (size_t back = 1; back <= 2; back++)
            if (all.p[CUT_MAX - back] == '%')
                n = CUT_MAX - back;
        if (EVP_Digest(name.p, name.n, hash, NULL, EVP_sha256(), NULL) != 1)
            e = -1;
    }
    if (e == 0 && n > 0) {
        memcpy(text, all.p, n);
        text[n] = 0;
    }
    if (e == 0 && n < all.n) {
        text[n++] = '~';
        for (size_t i = 0; i < HASH_BYTES; i++, n += 2)
            snprintf(text + n, 3, "%02x", hash[i]);
    }
    if (e < 0)
        snprintf(text, IMAP_DID_NAME, "%s", others);
    buf_free(&b);
}

static bool changes(enum imap_verb verb)
{
    return verb >= IMAP_VERB_STORE && verb <= IMAP_VERB_UNSUBSCRIBE;
}

/* A place for one that changes something, of the last that does not. NULL: there is none. */
static struct imap_did_one *take_place(struct imap_did *d)
{
    for (size_t i = d->n_ones; i > 0; i--) {
        struct imap_did_one *o = &d->one[i - 1];
        if (changes(o->verb))
            continue;
        d->rest[o->verb] += o->n;
        return o;
    }
    return NULL;
}

void imap_did_count(struct imap_did *d, enum imap_verb verb, const char *name)
{
    struct imap_did_one *o = NULL;
    if (name[0] == 0) {
        d->bare[verb]++;
        return;
    }
    for (size_t i = 0; i < d->n_ones; i++)
        if (d->one[i].verb == verb && strcmp(d->one[i].name, name) == 0) {
            d->one[i].n++;
            return;
        }
    if (d->n_ones < IMAP_DID_MAX)
        o = &d->one[d->n_ones++];
    else if (changes(verb))
        o = take_place(d);
    if (o == NULL) {
        d->rest[verb]++;
        return;
    }
    o->verb = verb;
    o->n = 1;
    snprintf(o->name, sizeof o->name, "%s", name);
}

/* "fetch/INBOX:12 " */
static int put_one(struct buf *out, enum imap_verb verb, const char *name, uint64_t n)
{
    struct imap_command c = {.verb = verb};
    return imap_command_show(&c, slice_str(name), out) < 0 ? -1
                                                           : buf_printf(out, ":%" PRIu64 " ", n);
}

/* Those for which there is room behind `taken` bytes; the others are counted in rest. */
static void put_names(const struct imap_did *d, bool changing, size_t taken, struct buf *names,
                      uint64_t *rest)
{
    for (size_t i = 0; i < d->n_ones; i++) {
        const struct imap_did_one *o = &d->one[i];
        if (changes(o->verb) != changing)
            continue;
        size_t had = buf_len(names);
        if (put_one(names, o->verb, o->name, o->n) == 0 && taken <= buf_room(names))
            continue;
        buf_cut(names, buf_len(names) - had);
        rest[o->verb] += o->n;
    }
}

int imap_did_put(const struct imap_did *d, struct buf *out)
{
    bool did[IMAP_VERBS] = {false};
    uint64_t rest[IMAP_VERBS];
    size_t taken = 0;
    struct buf names;
    memcpy(rest, d->rest, sizeof rest);
    for (size_t i = 0; i < d->n_ones; i++)
        did[d->one[i].verb] = true;
    for (size_t v = 0; v < IMAP_VERBS; v++)
        taken += (size_t)((did[v] || rest[v] > 0) + (d->bare[v] > 0)) *
                 (strlen(imap_verb_name(v)) + COUNT_MAX);
    buf_init(&names, buf_room(out));
    int e = 0;
    put_names(d, true, taken, &names, rest);
    put_names(d, false, taken, &names, rest);
    for (size_t v = 0; v < IMAP_VERBS && e == 0; v++)
        if ((rest[v] && put_one(out, v, others, rest[v]) < 0) ||
            (d->bare[v] && put_one(out, v, "", d->bare[v]) < 0))
            e = -1;
    if (e == 0)
        e = buf_append_slice(out, buf_slice(&names));
    if (e == 0 && buf_len(out) > 0)
        buf_cut(out, 1); /* the last blank */
    buf_free(&names);
    return e;
}
