/* Where the CA lives: key and certificate files, opened for the signer by whoever starts it (the
 * parent, or `durward ca`). The key's bytes are not read here. */
#ifndef DURWARD_CA_FILES_H
#define DURWARD_CA_FILES_H

#include "err.h"

#include <stdint.h>

struct ca_files {
    int key_fd, cert_fd; /* read-write when `create`, else read-only */
    bool create;         /* both are empty: the signer is to make the CA */
    int lock_fd;         /* -1 unless create: holds others off until ca_files_close */
    char *key_path, *cert_path;
    /* while it is being changed for another one (ca/rotation.h): */
    int next_fd;          /* certificate of the CA to come, read-only; -1: none */
    char *next_path;      /* of that; NULL: none */
    int64_t since, until; /* Unix seconds: both are to be trusted, cert signs */
};

/* cert and key: the user's own files (both or neither), which must exist. Else key.pem and
 * cert.pem in dir, or for a NULL dir in paths_ca_dir(); the directory is made, and `create` says
 * that there is no CA in it yet. A change of the CA that is over by now is carried out first. Waits
 * while another process is making one there. The key must pass paths_check_private_fd. All
 * descriptors are close-on-exec. */
int ca_files_open(const char *dir, const char *cert, const char *key, struct ca_files *ret,
                  struct err *err);
/* Call it when the signer has said W_READY (or failed): closes everything and lets others in. Safe
 * on a zeroed or failed one. */
void ca_files_close(struct ca_files *f);
/* Hold the directory of an existing CA against everybody else: the descriptor that carries the
 * lock, or -1. What a change of the CA has left to do is done. */
int ca_files_lock(const char *dir, struct err *err);
/* What clients are to trust now, in PEM: the certificate and, during a change, the next one. The
 * caller frees. NULL with err. */
char *ca_files_trusted(const struct ca_files *f, struct err *err);

#endif
