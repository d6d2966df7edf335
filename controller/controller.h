/* The controller role: the life of sandboxes, placeholders, synthetic names, identities of remote
 * sandboxes, the API. It may do nothing to namespaces or mounts: it asks the builder.
 *
 * W_INIT (parent → controller):
 *   private:u8            1: the private one of `durward run`: no API, no registry
 *   owner_uid:u32         who may use it: this uid (and root, at the API)
 *   ca_pem:bytes          our CA's certificate
 *   trust_dir_inside:str  where a sandbox sees the trust directory ("/etc/durward")
 *   trust_dir_outside:str the trust directory of this host (ca/trust.h)
 *   fds: configuration (config_json, a memfd), state directory (this role's uid must be able to
 *        write it; as root: owned by proc_role_uid(ROLE_CONTROLLER), mode 0700),
 *        and unless private the listening API socket
 *   metrics:u8, console:u8, https:u8, node:u8  what else the controller serves (two entries of
 *                         `listen`, `controller.https`, `node.socket`): their sockets follow
 * W_READY (controller → parent): tag_key:bytes, token_public:bytes (32 each)
 * W_PEER kinds: ROLE_BUILDER, ROLE_GATE (sandbox = its id), ROLE_LOGGER, ROLE_CLIENT (W_RUN comes
 * on it); a second one of a kind (of a sandbox) replaces the first, which died. W_POLICY (reload):
 * policy "", generation, fd = the whole new configuration. W_STATUS, W_RELOAD: asked by the
 * controller, answered by the parent in order.
 *
 * W_SANDBOX ids tell what they name:
 *   sb-…  a local sandbox: W_BUILD follows, W_SANDBOX_GONE ends it
 *   rt-…  a remote sandbox with a token; sent when it is made, and for each live one after W_READY
 *   rp-…  whoever reaches the listeners bound to that policy; sent after W_READY and after a reload
 * For rt- and rp- a second W_SANDBOX of the same id replaces the placeholders. */
#ifndef DURWARD_CONTROLLER_H
#define DURWARD_CONTROLLER_H

int controller_main(void);

#endif
