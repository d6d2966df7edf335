/* Shared by api.c (who may ask, and how it is answered) and api_routes.c (what is answered). */
#ifndef DURWARD_API_INTERNAL_H
#define DURWARD_API_INTERNAL_H

#include <event2/http.h>
#include <jansson.h>

#include "api.h"

struct api_wait { /* a request whose answer the parent has to give */
    struct evhttp_request *req;
    STAILQ_ENTRY(api_wait) link;
};

STAILQ_HEAD(api_waits, api_wait);

struct api {
    struct controller *controller;
    struct evhttp *http;
    struct api_waits status, reload;
};

/* Sends and takes the reference. */
void api_reply(struct evhttp_request *req, int status, json_t *v);
void api_refuse(struct evhttp_request *req, int status, const char *code, const char *message);
/* Answers, at once or when the parent has. */
void api_route(struct api *a, struct evhttp_request *req);

#endif
