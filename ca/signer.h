/* The role that holds the CAs' keys and mints leaves under its own policy.
 *
 * Control channel: W_INIT {create:u8, leaf_hours:u32, mints:u32 (a second and channel), api:str
 * (the API's own name, "" for none), fds: key, cert, secret} once; answered by W_READY
 * {cert_pem:bytes} or W_FAILED. Then W_PEER of kind gate, of a broker's front, or controller (whose
 * API is served in TLS) opens a minting channel, W_PEER_GONE closes it, W_POLICY brings what names
 * a listener's channel may have, W_ROOT asks for the root of a sandbox's CA.
 *
 * Which CA signs follows from the channel. That of a local sandbox (W_PEER's sandbox) has a CA of
 * its own (sandbox_ca.h), trusted in there alone; any other has the exported one, and gets names by
 * mint_names.h only. On a minting channel: W_MINT -> W_MINTED or W_MINT_FAIL; channels take turns
 * by leaf. A bad message ends its channel; one on the control channel, or its end, ends the role.
 */
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
