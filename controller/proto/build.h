/* W_BUILD, controller → builder: what a local sandbox is made of.
 *
 * Fields of the message, in order:
 *   sandbox:str        id, [a-z0-9-]{1,64}
 *   policy:str
 *   hostname:str
 *   uid:u32 gid:u32    who the command is, inside and outside (the caller)
 *   n × port:u32       ports that rules name beyond 80 and 443, where nf_tables does not serve
 *   n × bind:          source:str, target:str, mode:u8 (run.h): absolute canonical host paths; the
 *                      builder opens the source without following links and masks credential files
 *                      below it
 *   home:str           the home directory inside (a tmpfs unless a bind covers it)
 *   user:str           login name shown in the sandbox's /etc/passwd
 *   n × githost:str    hosts whose ssh remotes git rewrites to https
 *   n × sshhost:str    its brokers' servers, as known_hosts names them
 *   2 × host_key:str   the public host keys of its brokers (host_key.h), "" where it has none
 *   signs:u8           1: it has an SSH agent, and git signs with it
 *   spec:              image, root, limits, backend and volumes (sandbox_spec.h)
 *
 * Answers: W_BUILT, later W_TORN. Masked files are named in W_BUILT's text, one a line. */
#ifndef DURWARD_BUILD_H
#define DURWARD_BUILD_H

#include "bind.h" /* enum listener_kind, for W_LISTENERS */

#endif
