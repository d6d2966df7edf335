/* Holds the table of methods, in which a method's position is its bit; the first three are those
 * that only read. */
#include "method.h"

/* RFC 9110, 5789, the QUERY method, 4918 (WebDAV), 3253 (REPORT; MERGE, MKACTIVITY and CHECKOUT, by
 * which Subversion commits), 5323 (SEARCH), 4791 (MKCALENDAR), 3744 (ACL); LIST is Vault's */
static const char *const names[METHOD_COUNT] = {
    "GET",      "HEAD",       "OPTIONS", "POST",  "PUT",        "PATCH",    "DELETE", "QUERY",
    "PROPFIND", "PROPPATCH",  "MKCOL",   "COPY",  "MOVE",       "LOCK",     "UNLOCK", "REPORT",
    "SEARCH",   "MKCALENDAR", "PURGE",   "MERGE", "MKACTIVITY", "CHECKOUT", "LIST",   "ACL",
};

static const char *const verbs[VERB_COUNT] = {"fetch",   "push", "exec", "shell",
                                              "connect", "sign", "sftp"};

uint32_t verb_bit(struct slice verb)
{
    for (unsigned i = 0; i < VERB_COUNT; i++)
        if (slice_eq_str(verb, verbs[i]))
            return 1u << (VERB_FIRST + i);
    return 0;
}

uint32_t method_bit(struct slice method)
{
    for (unsigned i = 0; i < METHOD_COUNT; i++)
        if (slice_eq_str(method, names[i]))
            return 1u << i;
    return 0;
}

uint32_t methods_read_only(void)
{
    return 1u << 0 | 1u << 1 | 1u << 2;
}

const char *method_first(uint32_t set)
{
    uint32_t of = set & VERBS_ALL;
    set &= METHODS_ALL;
    if (set == 0 && of)
        return verbs[__builtin_ctz(of) - VERB_FIRST];
    return set ? names[__builtin_ctz(set)] : NULL;
}

const char *method_name(unsigned i)
{
    return i < METHOD_COUNT ? names[i] : NULL;
}
