/* The HTTP API on the unix socket (libevent's evhttp). Answers are JSON; errors are
 * {"error": {"code", "message"}}. Peers are known by the kernel (SO_PEERCRED): the owner's uid or
 * root, nobody else. Secret values are neither taken nor given.
 *
 * The paths are in doc/openapi.json, which GET /openapi.json answers; api_routes.c has the table.
 */
#ifndef DURWARD_API_H
#define DURWARD_API_H

#include "controller_internal.h"

enum { API_BODY_MAX = 96 << 20, API_HEAD_MAX = 16 * 1024, API_IDLE_SECONDS = 60 };

/* Takes over the listening socket. */
struct api *api_new(struct controller *c, int listen_fd, struct err *err);
void api_free(struct api *a);
/* Serve /metrics here too; takes over the listening socket. */
int api_serve_metrics(struct api *a, int fd, struct err *err);
/* And the console. */
int api_serve_console(struct api *a, int fd, struct err *err);
/* And the API itself, in TLS (`controller.https`), by tokens. */
int api_serve_tls(struct api *a, int fd, struct err *err);
/* A channel to the signer; takes over fd. */
void api_signer(struct api *a, int fd, uint32_t channel);
/* There is a channel to a logger: those who watch the log go on there. */
void api_logger_here(struct api *a);
/* W_TRACED: a line for whoever has that trace. -1: bad message. */
int api_traced(struct api *a, struct msg *m);
/* The parent's answer to W_STATUS, W_RELOAD, W_METERS_ALL or W_REVOKED_TAKEN: goes to whoever asked
 * first; to W_VERIFY: to all; to W_LOG_ASK: by its number. -1: bad message. */
int api_answer(struct api *a, struct msg *m);

#endif
