/* Where images and the kept layers of sandboxes lie, below the daemon's state directory:
 *
 *   images/NAME/root/         an image's files
 *   images/NAME/about         one line of JSON: id, source, when, how much
 *   sandboxes/ID/root/        what a sandbox wrote below /, as overlayfs keeps it (whiteouts,
 *                             user.overlay.*)
 *   sandboxes/ID/usr/         the same below /usr, where that is the host's
 *   sandboxes/ID/root.work/   overlayfs's own, and the same of usr
 *   sandboxes/ID/image        the name of the image below
 *   sandboxes/ID/snapshot     the snapshot that it was restored to last, if it was
 *   snapshots/NAME/...        copies of root/ and usr/
 *
 * Everything above the files is the daemon's own and closed to others; the files belong to whoever
 * the command is (idmap.h). */
#ifndef DURWARD_LAYER_H
#define DURWARD_LAYER_H

#include "idmap.h"

enum layer_part { LAYER_ROOT, LAYER_USR, LAYER_PARTS };

struct layer { /* O_PATH directories, -1 where there is none; the caller's */
    int upper[LAYER_PARTS], work[LAYER_PARTS];
};

/* The files of an image, O_PATH. -1 when there is no such image. */
int layer_image(const char *state_dir, const char *name, struct err *err);
/* A sandbox's kept layer, made when it is not there, above this image ("" is the host) and no other
 * from then on. After idmap_enter, as the daemon. */
int layer_open(const char *state_dir, const char *id, const char *image, const struct idmap *m,
               struct layer *ret, struct err *err);
void layer_close(struct layer *l);

#endif
