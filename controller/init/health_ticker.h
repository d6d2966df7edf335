/* Checks of a container's health, at the interval that its owner said: podman leaves that to
 * systemd's timers, which a sandbox has not. */
#ifndef DURWARD_HEALTH_TICKER_H
#define DURWARD_HEALTH_TICKER_H

/* Begins a process that asks podman for them as long as the container runs; it ends at once where
 * there is nothing to check. */
void health_ticker_begin(const char *id);

#endif
