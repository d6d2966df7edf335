/* GET /v1/codes: what each code of a record means, what is to be done about it, how bad it is. */
#include "api_internal.h"

#include <string.h>

#include "answer_words.h"
#include "severity.h"

static json_t *code_json(const char *code, const struct answer_words *w)
{
    enum severity s = severity_of(RECORD_DENIED, code);
    json_t *v = json_pack("{s:s, s:s}", "code", code, "severity", severity_name(s));
    if (w) {
        json_object_set_new(v, "class", json_string(answer_class_name(w->class)));
        json_object_set_new(v, "why", json_string(w->why));
        json_object_set_new(v, "way", json_string(w->way));
        if (w->status)
            json_object_set_new(v, "status", json_integer((json_int_t)w->status));
    }
    return v;
}

void api_codes(struct api *a UNUSED, struct evhttp_request *req, struct asked *q UNUSED)
{
    const struct answer_words *w;
    const char *code;
    json_t *codes = json_array(), *kinds = json_object(), *events = json_object();
    for (size_t i = 0; (w = answer_words_at(i)) != NULL; i++)
        json_array_append_new(codes, code_json(w->code, w));
    for (size_t i = 0; (code = severity_code_at(i)) != NULL; i++)
        if (answer_words(0, code)->code[0] == 0)
            json_array_append_new(codes, code_json(code, NULL));
    for (enum record_kind k = 1; k < RECORD_KINDS; k++)
        json_object_set_new(kinds, record_kind_name(k),
                            json_string(severity_name(severity_of(k, ""))));
    for (size_t i = 0; (code = severity_event_at(i)) != NULL; i++)
        json_object_set_new(events, code, json_string(severity_name(severity_of_event(code))));
    api_reply(req, 200,
              json_pack("{s:o, s:o, s:o}", "codes", codes, "kinds", kinds, "events", events));
}
