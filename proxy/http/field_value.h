/* Does a value look like a credential, whatever field it stands in? Asked only where a name leaves
 * it open (a session's id): a wrong guess there refuses a request that is none's business. */
#ifndef DURWARD_FIELD_VALUE_H
#define DURWARD_FIELD_VALUE_H

#include "slice.h"

/* A scheme and its token ("Bearer …"), a token of a shape that its issuer publishes (ghp_, sk-,
 * AKIA), a PEM text, or a JWT, unless such may be there. */
bool field_value_is_credential(struct slice value, bool jwt_may_be);

#endif
