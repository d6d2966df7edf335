/* What an SSH key signs for a commit, a tag or a file (PROTOCOL.sshsig of OpenSSH): the text under
 * the signature, "SSHSIG" and four strings. It is never what a login signs (RFC 4252 7): that
 * begins with the length of a session identifier. */
#ifndef DURWARD_SSHSIG_H
#define DURWARD_SSHSIG_H

#include "buf.h"

enum { SSHSIG_NAMESPACE_MAX = 64, SSHSIG_HASH_MAX = 64, SSHSIG_MAX = 256 };

struct sshsig {
    struct slice space;     /* the namespace: "git" */
    struct slice algorithm; /* "sha256" or "sha512" */
    struct slice hash;      /* of what is signed, as long as that says */
};

/* A namespace that can be named: letters, digits, "_.-@+". */
bool sshsig_space_ok(struct slice space);
/* The whole of s. 0, or -1: it is no such text. What is read lies in s. */
int sshsig_read(struct slice s, struct sshsig *ret) WUNUSED;
/* Appends. 0, or -1: there is no room, or it is none. */
int sshsig_put(const struct sshsig *g, struct buf *to) WUNUSED;

#endif
