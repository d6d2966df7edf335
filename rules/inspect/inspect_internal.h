/* Shared by the inspect*.c files only. */
#ifndef DURWARD_INSPECT_INTERNAL_H
#define DURWARD_INSPECT_INTERNAL_H

#include "body_json.h"
#include "inspect.h"

enum media {
    MEDIA_OTHER = 0,
    MEDIA_NONE,
    MEDIA_JSON,
    MEDIA_GRAPHQL,
    MEDIA_MULTIPART,
    MEDIA_EVENTS
};

/* INSPECT_REFUSED with this answer; detail may be empty. */
enum inspect_answer inspect_refuse(struct inspect_result *ret, unsigned status, const char *code,
                                   const char *detail);
/* The type of the body; MEDIA_OTHER also when a parameter makes it doubtful. */
enum media inspect_media(const struct inspect_request *r);
/* 0 with *ret (the caller's), or -1 and refused. */
int inspect_json(struct slice body, json_t **ret, struct inspect_result *why);

enum inspect_answer inspect_graphql_head(const struct inspection *in,
                                         const struct inspect_request *r,
                                         struct inspect_result *ret);
enum inspect_answer inspect_graphql_body(const struct inspection *in,
                                         const struct inspect_request *r, struct slice body,
                                         struct inspect_result *ret);
enum inspect_answer inspect_mcp_body(const struct inspection *in, const struct inspect_request *r,
                                     struct slice body, struct inspect_result *ret);
/* The fields that repeat what a message says, say it; m: the message. */
struct mcp_rules;
bool mcp_fields_agree(const struct mcp_rules *rules, const struct inspect_request *head,
                      const json_t *m);
enum inspect_answer inspect_git_head(const struct inspection *in, const struct inspect_request *r,
                                     struct inspect_result *ret);
enum inspect_answer inspect_git_body(const struct inspection *in, const struct inspect_request *r,
                                     struct slice body, bool whole, struct inspect_result *ret);
enum inspect_answer inspect_tools_body(const struct inspection *in, struct slice body,
                                       struct inspect_result *ret);
/* The same of a body that was read. */
enum inspect_answer inspect_tools_judge(const struct inspection *in, const json_t *root,
                                        struct inspect_result *ret);
enum inspect_answer inspect_tools_head(const struct inspect_request *r, struct inspect_result *ret);
enum inspect_answer inspect_llm_head(const struct inspection *in, const struct inspect_request *r,
                                     struct inspect_result *ret);
enum inspect_answer inspect_llm_body(const struct inspection *in, const struct inspect_request *r,
                                     struct slice body, struct inspect_result *ret);
#endif
