/* Header field names: which a configuration may set, and which carry credentials. Names compare
 * without case. */
#ifndef DURWARD_HEADER_NAME_H
#define DURWARD_HEADER_NAME_H

#include "slice.h"

bool header_name_ok(struct slice name);   /* a token of RFC 9110 5.6.2, at most 128 bytes */
bool header_value_ok(struct slice value); /* printable ASCII and inner blanks, at most 4096 bytes */
/* Frames or routes the message, belongs to one hop, or is Durward's own: never the user's to edit.
 */
bool header_name_is_reserved(struct slice name);
/* Usually carries a credential: authorization, cookies, API keys, tokens. */
bool header_name_is_credential(struct slice name);

#endif
