/* An answer that the gate gives itself, whole before it begins: sent as fast as its downstream
 * takes it. */
#ifndef DURWARD_PREPARED_H
#define DURWARD_PREPARED_H

#include "buf.h"
#include "stream.h"

enum { PREPARED_FIELDS_MAX = 4 };

/* Of an answer; name is constant text. */
struct prepared_field {
    const char *name;
    char value[32];
};

struct prepared {
    unsigned status;
    const char *type;                                  /* constant text */
    struct prepared_field fields[PREPARED_FIELDS_MAX]; /* beside it */
    size_t n_fields;
    char *location, *cookie; /* likewise, longer; owned; or NULL */
    bool bare;               /* a HEAD's: without its body */
    bool told;
    struct buf body;
};

enum prepared_sent { PREPARED_MORE = 0, PREPARED_ALL, PREPARED_FAILED };

void prepared_init(struct prepared *p, size_t max);
void prepared_free(struct prepared *p);
/* What fits now. MORE: again when there is room; ALL: its end is due; FAILED: memory is out, and
 * nothing was sent. */
enum prepared_sent prepared_send(struct prepared *p, const struct downstream *f);

#endif
