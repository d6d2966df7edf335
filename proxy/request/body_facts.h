/* What a request's head says of its body, for the inspection of it. */
#ifndef DURWARD_BODY_FACTS_H
#define DURWARD_BODY_FACTS_H

#include "http_head.h"
#include "inspect.h"

/* Its slices are the head's. */
struct inspect_request body_facts(const struct head *h);

#endif
