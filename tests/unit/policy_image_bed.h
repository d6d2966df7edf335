/* Images of policies for tests: opened from bytes, and with bytes of them changed. */
#ifndef DURWARD_POLICY_IMAGE_BED_H
#define DURWARD_POLICY_IMAGE_BED_H

#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "policy_image.h"

static void image_release(void *bytes, size_t n)
{
    (void)n;
    free(bytes);
}

static unsigned char *image_copy(const struct policy *p, size_t *n)
{
    struct slice image = policy_image_bytes(p);
    unsigned char *copy = malloc(image.n);
    if (copy == NULL)
        abort();
    memcpy(copy, image.p, image.n);
    *n = image.n;
    return copy;
}

/* The digest is made to agree with what follows the header. */
static void image_agree(unsigned char *bytes, size_t n)
{
    struct image_header *h = (struct image_header *)(void *)bytes;
    h->digest = policy_image_digest(bytes, n);
}

/* The same policy once more, of a copy of its image. */
static inline struct policy *image_opened(const struct policy *p, struct err *err)
{
    size_t n;
    unsigned char *copy = image_copy(p, &n);
    return policy_open(copy, n, image_release, err);
}

#endif
