/* The placeholders in what a sandbox sends through a tunnel (attack C20): looked for in each
 * message, across frames and however it is cut, and in each control frame. Only bytes that may be
 * the beginning of one are held back. */
#ifndef DURWARD_WATCH_H
#define DURWARD_WATCH_H

#include "guard.h"
#include "tunnel.h"

struct watch;

struct watch *watch_new(const struct gate *g, const struct identity *who); /* both borrowed */
void watch_free(struct watch *w);                                          /* NULL is fine */
/* Ends the tunnel with "secret_blocked" or "cross_sandbox". */
struct tunnel_filter watch_filter(struct watch *w);

#endif
