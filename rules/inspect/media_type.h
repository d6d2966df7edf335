/* What a Content-Type says, where every reader says the same of it. */
#ifndef DURWARD_MEDIA_TYPE_H
#define DURWARD_MEDIA_TYPE_H

#include "slice.h"

enum media_form {
    MEDIA_TYPE_OTHER = 0, /* anything else, or doubtful */
    MEDIA_TYPE_JSON,      /* application/json, or a type with the suffix +json (RFC 6839) */
    MEDIA_TYPE_FORM       /* application/x-www-form-urlencoded */
};

/* In whatever case. */
bool media_type_has_word(struct slice text, struct slice word);
/* JSON by the type alone, without its parameters: one token each side of the slash, and no word in
 * it by which another reader would take the body for a form. */
bool media_type_is_json(struct slice type);
/* May this parameter ("name=value", trimmed) stand there? Another charset than UTF-8 makes other
 * text of the same bytes. */
bool media_type_parameter_ok(struct slice parameter);
/* Of the whole value: parameters are tokens, a charset stands there once, a boundary never. */
enum media_form media_type_form(struct slice value);

#endif
