/* The role that holds the CA key and mints leaves under its own policy.
 *
 * Control channel: W_INIT {create:u8, days:u32, fds: key, cert} once; answered by
 * W_READY {cert_pem:bytes} or W_FAILED. Then W_PEER of kind gate (or controller, whose API is
 * served in TLS) opens a minting channel and
 * W_PEER_GONE closes it. On a minting channel: W_MINT → W_MINTED or W_MINT_FAIL. A bad message ends
 * its channel; one on the control channel, or its end, ends the role. */
#ifndef DURWARD_SIGNER_H
#define DURWARD_SIGNER_H

#include "err.h"

struct event_base;
struct signer;

/* Everything of the role but the process around it. control_fd is owned from here on. With
 * `confine` the system-call filter is installed after W_INIT, before W_READY. */
struct signer *signer_new(struct event_base *base, int control_fd, bool confine);
void signer_free(struct signer *s);
/* Minting channels open now; leaves minted since the start. */
unsigned signer_channels(const struct signer *s);
uint64_t signer_minted(const struct signer *s);

/* The role's main: the exit status. */
int signer_main(void);

#endif
