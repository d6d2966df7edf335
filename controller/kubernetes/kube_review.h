/* The listener where the API server asks whether a Policy is good (a validating webhook), and the
 * certificate that it is known by. */
#ifndef DURWARD_KUBE_REVIEW_H
#define DURWARD_KUBE_REVIEW_H

#include "kube_client.h"
#include "kube_objects.h"

/* kube_cert.c: a fresh key, and a certificate of its own for this name, in the context and as PEM
 * (malloc'd). NULL with err. */
char *kube_cert(SSL_CTX *tls, const char *name, struct err *err);

struct kube_review {
    const struct kube *kube;
    const char *config;  /* the daemon's configuration; read for each question */
    const char *listen;  /* ADDRESS:PORT */
    const char *name;    /* by which the API server calls it */
    const char *webhook; /* the ValidatingWebhookConfiguration that is told of the certificate */
};

/* Serves until something fails. -1 with err. */
int kube_review(const struct kube_review *r, struct err *err);
#endif
