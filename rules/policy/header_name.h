/* Header field names: which a configuration may set, and which carry credentials. Names compare
 * without case, and whatever is no letter and no digit is one byte: many servers hand fields on as
 * CGI variables, where "x_api_key" and "x-api-key" are the same. */
#ifndef DURWARD_HEADER_NAME_H
#define DURWARD_HEADER_NAME_H

#include "slice.h"

bool header_name_ok(struct slice name);   /* a token of RFC 9110 5.6.2, at most 128 bytes */
bool header_value_ok(struct slice value); /* printable ASCII and inner blanks, at most 4096 bytes */
/* Frames or routes the message, belongs to one injector channel, or is Durward's own: never the
 * user's to edit.
 */
bool header_name_is_reserved(struct slice name);
/* Says where a request came from, who asked, or another place that it is for: a proxy's to write,
 * dropped from what a sandbox sends (attack A26). */
bool header_name_is_forwarding(struct slice name);
/* Carries a credential: authorization, cookies, and what its last words call a key, token, secret
 * or password. */
bool header_name_is_credential(struct slice name);
/* One of the fields that known APIs read a key from: no rule makes anything else of it. */
bool header_name_is_key(struct slice name);
/* The name does not tell: a session's, or where a listing goes on. It carries a credential when its
 * value looks like one (proxy/http/field_value.h). */
bool header_name_may_hold_credential(struct slice name);

#endif
