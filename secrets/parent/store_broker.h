/* The parent's side of the vault's stores: answers W_STORE_OPEN, times commands out, reports their
 * exit, watches the files that it opened and tells of changes (W_STORE_CHANGED). The parent has the
 * child watcher, so it passes on which pids it reaped. */
#ifndef DURWARD_STORE_BROKER_H
#define DURWARD_STORE_BROKER_H

#include "config.h"
#include "ipc.h"

struct event_base;
struct store_broker;

enum { STORE_BROKER_MAX = 64 /* commands running at once */ };

struct store_broker *store_broker_new(struct event_base *base);
/* Kills what still runs. NULL is fine. */
void store_broker_free(struct store_broker *d);
/* Handle a W_STORE_OPEN (or what login_lock.h answers) that came from the vault on `ch` (its
 * control channel, which must stay until store_broker_vault_gone). list: the configuration's
 * secrets. 0, or -1 when the message is bad. */
int store_broker_message(struct store_broker *d, struct ipc *ch, struct msg *m,
                         const struct config_secret *list, size_t n);
/* A child was reaped: true when it was a command of ours (W_STORE_EXIT is sent). */
bool store_broker_reaped(struct store_broker *d, pid_t pid, int status);
/* The vault is gone: nobody reads what its commands print; they are killed. Their pids are still
 * reaped through the call above. */
void store_broker_vault_gone(struct store_broker *d);

#endif
