/* W_BUILD, controller → builder: what a local sandbox is made of.
 *
 * Fields of the message, in order:
 *   sandbox:str        id, [a-z0-9-]{1,64}
 *   policy:str
 *   hostname:str
 *   uid:u32 gid:u32    who the command is, inside and outside (the caller)
 *   n × port:u32       ports that rules name beyond 80 and 443 (used where nf_tables does not serve)
 *   n × bind: source:str, target:str, writable:u8
 *                      absolute canonical host path; the builder opens the source without following
 *                      links and masks credential files below it
 *   home:str           the home directory inside (a tmpfs unless a bind covers it)
 *   user:str           login name shown in the sandbox's /etc/passwd
 *   n × githost:str    hosts whose ssh remotes git rewrites to https
 * Answers: W_BUILT, later W_TORN. Masked files are named in W_BUILT's text, one a line. */
#ifndef DURWARD_BUILD_H
#define DURWARD_BUILD_H

#include "compiler.h"

enum listener_kind { /* u8 in W_LISTENERS and W_BIND */
    LISTENER_TCP4 = 1,  /* transparent: every TCP port where nf_tables serves, else the one named */
    LISTENER_TCP6,
    LISTENER_DNS_UDP4,
    LISTENER_DNS_UDP6,
    LISTENER_DNS_TCP4,
    LISTENER_DNS_TCP6,
    LISTENER_NFLOG,     /* netlink socket bound to the log group */
    LISTENER_REMOTE_HTTP, /* an operator's `listen` entry */
    LISTENER_REMOTE_HTTPS,
};

#endif
