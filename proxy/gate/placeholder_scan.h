/* The placeholders in what a sandbox sends through a tunnel (attack C20): looked for in each
 * message, across frames and however it is cut, and in each control frame. Only bytes that may be
 * the beginning of one are held back. */
#ifndef DURWARD_PLACEHOLDER_SCAN_H
#define DURWARD_PLACEHOLDER_SCAN_H

#include "guard_placeholder.h"
#include "tunnel.h"

struct placeholder_scan;

struct placeholder_scan *placeholder_scan_new(const struct gate *g,
                                              const struct identity *who); /* both borrowed */
void placeholder_scan_free(struct placeholder_scan *w);                    /* NULL is fine */
/* Ends the tunnel with "secret_blocked" or "cross_sandbox". */
struct tunnel_filter placeholder_scan_filter(struct placeholder_scan *w);

#endif
