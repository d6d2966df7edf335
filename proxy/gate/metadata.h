/* The metadata services of clouds, which a gate answers itself where its policy has an `identity`:
 * AWS's (IMDSv2, and a container's credentials), Google's, Azure's (IMDS, and App Service's). What
 * they give out are this sandbox's placeholders; nothing of a question leaves the machine.
 *
 * Each question is guarded as the clouds guard theirs: no field of a proxy, the field or the token
 * that only the program itself would send. What is not known is refused, and recorded. */
#ifndef DURWARD_METADATA_H
#define DURWARD_METADATA_H

#include "cloud_identity.h"
#include "gate.h"
#include "prepared.h"
#include "stream.h"

#include <jansson.h>

enum { METADATA_BODY_MAX = 16 * 1024 };

/* A question to one of them. */
struct metadata {
    const struct gate *gate;
    const struct identity *who;
    const struct cloud_identity *cloud;
    const struct authority *at;
    const struct head *head; /* as it came */
};

/* NULL: *ret is the answer. Else why there is none, constant. */
const struct refusal *metadata_answer(const struct metadata *q, struct prepared *ret);

/* Sends the answer, which is taken, as an upstream: reply, data and end come later, never from
 * within this call. ops NULL: memory is out. */
struct upstream metadata_open(struct gate *g, struct downstream f, struct prepared *answer);

/* ---- of its files only ---- */

extern const struct refusal metadata_unknown, metadata_field, metadata_memory,
    metadata_placeholder; /* this sandbox was made before the policy had that identity */
const struct refusal *metadata_aws(const struct metadata *q, struct prepared *ret);
const struct refusal *metadata_google(const struct metadata *q, struct prepared *ret);
const struct refusal *metadata_azure(const struct metadata *q, struct prepared *ret);
/* The path, a slash at its end apart. */
struct slice metadata_path(const struct metadata *q);
bool metadata_is_get(const struct metadata *q);
/* A field that is there once and says just this. */
bool metadata_says(const struct metadata *q, const char *name, const char *value);
/* A parameter of the query, its escapes undone; -1: it is not there once, or too long. */
int metadata_parameter(const struct metadata *q, const char *name, struct buf *ret);
/* The sandbox's own placeholder of this secret stands in this field, and nothing else. NULL: yes */
const struct refusal *metadata_own(const struct metadata *q, const char *name, const char *secret);
int metadata_text(struct prepared *p, const char *text);
/* Takes the reference; NULL: memory is out. */
int metadata_json(struct prepared *p, json_t *v);
/* A session's token (IMDSv2), good for so many seconds. */
enum { METADATA_TOKEN_MAX = 64 };
int metadata_token_make(const struct metadata *q, uint32_t seconds, struct buf *ret);
bool metadata_token_good(const struct metadata *q, struct slice text);

#endif
