/* Trust bundles for paired clients: the system's roots plus our CA, in the forms that runtimes
 * read. Those of local sandboxes, each with a CA of its own, are in ca/trust_sandbox.h. */
#ifndef DURWARD_TRUST_H
#define DURWARD_TRUST_H

#include <stdbool.h>

#include "err.h"
#include "slice.h"

struct trust {
    char *dir;  /* <cache>/trust-<hash> on this host */
    bool built; /* made by this call, not found */
};

/* Makes <cache_dir>/trust-<hash>/ if it is not there yet. The hash covers the system bundle's path,
 * size, inode and modification time and the CA certificate, so finding it again costs two stat
 * calls and one hash. The directory appears whole (rename); in it, readable by all:
 *   ca-certificates.crt   the system's roots and our CA
 *   durward-ca.pem        our CA alone
 *   certs/                ca-certificates.crt again, our CA as <subject hash>.0: for /etc/ssl/certs
 *   cacerts.p12           both for a JDK, password "changeit"
 * cache_dir is made when it is missing (mode 0700; who else shall read it must be handed the
 * directory by a mount). ca_pem holds one certificate; two while the CA is being changed. */
int trust_prepare(const char *cache_dir, const char *ca_pem, size_t n, struct trust *ret,
                  struct err *err);
/* The same with another bundle in the system's place; NULL for none. */
int trust_prepare_with(const char *system_path, const char *cache_dir, const char *ca_pem, size_t n,
                       struct trust *ret, struct err *err);
/* Makes every directory in cache_dir that trusts the certificate `now` (PEM) trust ca_pem instead:
 * clients elsewhere on this host run with them. Their files are replaced one by one (rename), so
 * whoever opens one sees the old or the new content, also through mounts of the directory. A bundle
 * that is mounted by itself (in a container of the user's own) stays the old file: what is new is
 * appended to that one first. A Java store so mounted stays as it was. */
int trust_extend(const char *cache_dir, const char *now, const char *ca_pem, size_t n,
                 struct err *err);
/* What the bundles of local sandboxes are made of (ca/trust_sandbox.h), <cache_dir>/roots-<hash>/:
 *   ca-certificates.crt   the system's roots
 *   java                  the same as a part of a Java store */
int trust_roots(const char *cache_dir, struct trust *ret, struct err *err);
int trust_roots_with(const char *system_path, const char *cache_dir, struct trust *ret,
                     struct err *err);
void trust_clear(struct trust *t);
/* The next certificate of *rest, which is advanced: its text and the name (11 bytes) under which
 * OpenSSL looks for it in a directory of certificates. 1; 0: that was all; -1 with err. */
int trust_hashed_next(struct slice *rest, struct slice *pem, char *to, size_t size,
                      struct err *err);

/* KEY=VALUE settings that make clients use the bundle which they see in `dir` (absolute, no white
 * space: JAVA_TOOL_OPTIONS is split at it). tls_proxy: they reach their proxy in TLS, which shows
 * our certificate, too. NULL-terminated, for trust_env_free; NULL with err. The SDKs make the same
 * list (trust.py, trust.ts); tests/functional/sdk_python.t and sdk_typescript.t compare. */
char **trust_env(const char *dir, bool tls_proxy, struct err *err);
void trust_env_free(char **env);

#endif
