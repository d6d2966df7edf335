/* The hosts of a fleet, as this one knows them: what each says of itself, when it was last heard
 * of, and what the logger knows of its audit log. Nobody is asked across the network: all of it was
 * read before, and how old it is stands beside it.
 *
 * Note "host", sealed (fleet_seal.h), its id the KEY of the host that says it, each `fleet.every`:
 *   {number, time, every, version, uptime, sandboxes, held, shares: [{policy, limit, amount,
 * held}], shares_more} number rises, so that no older one counts again, whoever puts it there. */
#ifndef DURWARD_FLEET_HOSTS_H
#define DURWARD_FLEET_HOSTS_H

#include <jansson.h>

#include "err.h"
#include "ipc_msg.h"

struct controller;
struct fleet_hosts;

enum {
    FLEET_HOSTS_SHARES = 48,          /* of a host that are told */
    FLEET_HOSTS_PROBLEMS = 8,         /* of a log */
    FLEET_HOSTS_SECONDS = 30 * 86400, /* a host that says nothing any more is remembered so long */
    FLEET_HOSTS_STALE = 5, /* seconds: whoever has read nothing for so long knows nothing */
};

struct fleet_hosts *fleet_hosts_new(struct controller *c, struct err *err);
void fleet_hosts_free(struct fleet_hosts *f); /* NULL is fine */
/* W_FLEET_KNOWN. -1: malformed. f NULL is fine. */
int fleet_hosts_log(struct fleet_hosts *f, struct msg *m);
/* {host, connected, read, age_seconds, hosts: […]}: doc/openapi.json, Fleet. f NULL: there is none.
 */
json_t *fleet_hosts_json(const struct fleet_hosts *f);

#endif
