/* Maps the packed roots and gives OpenSSL a lookup that parses the certificates of a name when a
 * chain first asks for it. roots_pack.c packs them. */
#include "roots.h"

#include "name_hash.h"
#include "roots_format.h"
#include "system_roots.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct roots {
    unsigned refs; /* the owner's and the store's lookup */
    unsigned char *map;
    size_t size;
    const struct roots_entry *index;
    size_t count, parsed;
    const unsigned char *der;
    X509_STORE *store; /* NULL once the owner is gone */
};

static void unref(struct roots *r)
{
    if (--r->refs > 0)
        return;
    munmap(r->map, r->size);
    free(r);
}

/* First index entry with at least this hash. */
static size_t lower_bound(const struct roots *r, uint32_t hash)
{
    size_t lo = 0, hi = r->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->index[mid].hash < hash)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* A certificate that the user named ends a chain, also where another authority issued it. The mark
 * is the certificate's, not the store's (X509_V_FLAG_PARTIAL_CHAIN): an intermediate that lies in
 * the system's bundle becomes no anchor by it. */
static bool mark_named(X509 *x)
{
    static const int uses[] = {NID_server_auth, NID_anyExtendedKeyUsage};
    for (size_t i = 0; i < ARRAY_LEN(uses); i++)
        if (X509_add1_trust_object(x, OBJ_nid2obj(uses[i])) != 1)
            return false;
    return true;
}

static X509 *parse(struct roots *r, const struct roots_entry *e)
{
    const unsigned char *at = r->der + e->offset;
    X509 *x = d2i_X509(NULL, &at, (long)e->length);
    if (x && e->flags & ROOTS_NAMED && !mark_named(x)) {
        X509_free(x);
        return NULL;
    }
    if (x)
        r->parsed++;
    return x;
}

static uint32_t hash_of(const X509_NAME *name)
{
    struct name_hash h;
    int n = X509_NAME_entry_count(name), before = 0;
    name_hash_begin(&h);
    for (int i = 0; i < n; i++) {
        const X509_NAME_ENTRY *e = X509_NAME_get_entry(name, i);
        const ASN1_OBJECT *oid = X509_NAME_ENTRY_get_object(e);
        const ASN1_STRING *value = X509_NAME_ENTRY_get_data(e);
        if (X509_NAME_ENTRY_set(e) != before)
            name_hash_rdn(&h);
        before = X509_NAME_ENTRY_set(e);
        name_hash_attribute(&h, (struct slice){(const char *)OBJ_get0_data(oid), OBJ_length(oid)},
                            ASN1_STRING_type(value),
                            (struct slice){(const char *)ASN1_STRING_get0_data(value),
                                           (size_t)ASN1_STRING_length(value)});
    }
    if (n > 0)
        name_hash_rdn(&h);
    return name_hash_end(&h);
}

/* All roots of this name go into the store at once: OpenSSL asks a lookup only while the store has
 * none of that name. The result is the store's; OpenSSL takes its own reference of it, which is why
 * the one that X509_OBJECT_set1_X509 takes is given back (X509_LOOKUP_meth_new(3)). */
static int by_subject(X509_LOOKUP *lookup, X509_LOOKUP_TYPE type, const X509_NAME *name,
                      X509_OBJECT *ret)
{
    struct roots *r = X509_LOOKUP_get_method_data(lookup);
    X509_STORE *store = X509_LOOKUP_get_store(lookup);
    int found = 0;
    if (r == NULL || type != X509_LU_X509)
        return 0;
    uint32_t hash = hash_of(name);
    for (size_t i = lower_bound(r, hash); i < r->count && r->index[i].hash == hash; i++) {
        X509 *x = parse(r, &r->index[i]);
        if (x == NULL) {
            ERR_clear_error();
            continue;
        }
        if (X509_NAME_cmp(X509_get_subject_name(x), name) == 0 &&
            X509_STORE_add_cert(store, x) == 1 && !found && X509_OBJECT_set1_X509(ret, x)) {
            found = 1;
            X509_free(x);
        }
        X509_free(x);
    }
    return found;
}

static void lookup_free(X509_LOOKUP *lookup)
{
    struct roots *r = X509_LOOKUP_get_method_data(lookup);
    if (r)
        unref(r);
}

/* One table of functions for the process, as OpenSSL wants it; holds nothing. */
static X509_LOOKUP_METHOD *method(void)
{
    static X509_LOOKUP_METHOD *m;
    if (m == NULL) {
        m = X509_LOOKUP_meth_new("Durward's packed roots");
        if (m) {
            X509_LOOKUP_meth_set_get_by_subject(m, by_subject);
            X509_LOOKUP_meth_set_free(m, lookup_free);
        }
    }
    return m;
}

static int check(struct roots *r, struct err *err)
{
    const struct roots_header *head = (const struct roots_header *)r->map;
    if (r->size < sizeof *head || head->magic != ROOTS_MAGIC || head->count > ROOTS_MAX ||
        r->size - sizeof *head < head->count * sizeof(struct roots_entry))
        return err_set(err, ERR_PARSE, "these are not packed roots");
    r->count = head->count;
    r->index = (const struct roots_entry *)(r->map + sizeof *head);
    r->der = (const unsigned char *)(r->index + r->count);
    size_t room = r->size - sizeof *head - r->count * sizeof *r->index;
    for (size_t i = 0; i < r->count; i++) {
        const struct roots_entry *e = &r->index[i];
        if (e->offset > room || e->length > room - e->offset ||
            (i > 0 && e->hash < r->index[i - 1].hash))
            return err_set(err, ERR_PARSE, "the index of the packed roots is damaged");
    }
    return 0;
}

static int make_store(struct roots *r, struct err *err)
{
    X509_LOOKUP_METHOD *m = method();
    r->store = m ? X509_STORE_new() : NULL;
    X509_LOOKUP *lookup = r->store ? X509_STORE_add_lookup(r->store, m) : NULL;
    if (lookup == NULL || X509_LOOKUP_set_method_data(lookup, r) != 1) {
        X509_STORE_free(r->store);
        return err_set(err, ERR_INTERNAL, "no certificate store can be made");
    }
    r->refs++;
    return 0;
}

struct roots *roots_load(int memfd, struct err *err)
{
    struct stat st;
    if (fstat(memfd, &st) < 0 || st.st_size <= 0 || st.st_size > 2 * ROOTS_FILE_MAX) {
        err_set(err, ERR_PARSE, "these are not packed roots");
        return NULL;
    }
    struct roots *r = calloc(1, sizeof *r);
    if (r == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    r->refs = 1;
    r->size = (size_t)st.st_size;
    r->map = mmap(NULL, r->size, PROT_READ, MAP_PRIVATE, memfd, 0);
    if (r->map == MAP_FAILED) {
        err_sys(err, "mapping the packed roots");
        free(r);
        return NULL;
    }
    if (check(r, err) < 0 || make_store(r, err) < 0) {
        unref(r);
        return NULL;
    }
    return r;
}

void roots_free(struct roots *r)
{
    if (r == NULL)
        return;
    X509_STORE *store = r->store;
    r->store = NULL;
    X509_STORE_free(store);
    unref(r);
}

size_t roots_count(const struct roots *r)
{
    return r->count;
}

size_t roots_parsed(const struct roots *r)
{
    return r->parsed;
}

X509_STORE *roots_store(struct roots *r)
{
    return r->store;
}
