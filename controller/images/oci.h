/* Which layers an unpacked OCI image layout, or what `docker save` wrote, is made of. The texts are
 * whoever's made the image: sizes, depth and counts are bounded, digests are checked. */
#ifndef DURWARD_OCI_H
#define DURWARD_OCI_H

#include "err.h"

enum { OCI_LAYERS_MAX = 256, OCI_PATH_MAX = 256 };

struct oci_layers {
    unsigned n;
    char path[OCI_LAYERS_MAX][OCI_PATH_MAX]; /* below the directory; the lowest first */
};

/* 1: it is one, with these layers. 0: it is neither, but files as they are. -1: it is broken, or
 * holds more than one image for this machine. */
int oci_layers(int dir, struct oci_layers *ret, struct err *err);
/* A file of the layout, whose digest, where its path is one, was found right. */
int oci_open(int dir, const char *path, struct err *err);

#endif
