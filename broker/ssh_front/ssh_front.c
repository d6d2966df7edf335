/* The main of the SSH broker's front: its host key, and what it agrees to speak. */
#include "ssh_front.h"

#include "host_key.h"
#include "ssh_agent.h"

#include <string.h>
#include <unistd.h>

int ssh_front_main(void);

static void front_accept(struct front *f, const struct authority *at, int fd)
{
    if (ssh_agent_is(at))
        ssh_agent_client_new(f->self, at, fd);
    else
        ssh_connection_new(f->self, at, fd);
}

static int set_key(struct ssh_front *s, struct slice key, enum host_key_kind kind)
{
    ssh_key imported = NULL;
    struct buf text;
    if (key.n != HOST_KEY_SEED)
        return -1;
    buf_init_wiped(&text, 2048);
    int r = host_key_private((const unsigned char *)key.p, kind, &text) < 0 ||
                    buf_append(&text, "", 1) < 0 ||
                    ssh_pki_import_privkey_base64((const char *)buf_data(&text), NULL, NULL, NULL,
                                                  &imported) != SSH_OK ||
                    ssh_bind_options_set(s->bind, SSH_BIND_OPTIONS_IMPORT_KEY, imported) != SSH_OK
                ? -1
                : 0; /* the key is the bind's now */
    buf_free(&text);
    return r;
}

static int front_loaded(struct front *f, struct slice key, struct err *err)
{
    static struct ssh_front s;
    const bool no = false;
    s.front = f;
    LIST_INIT(&s.connections);
    LIST_INIT(&s.agent_clients);
    s.pushes = (struct quota){.total = SSH_PUSH_TOTAL, .each = SSH_PUSH_TOTAL};
    LIST_INIT(&s.pushes.owners);
    f->self = &s;
    s.bind = ssh_bind_new();
    if (s.bind == NULL ||
        ssh_bind_options_set(s.bind, SSH_BIND_OPTIONS_PROCESS_CONFIG, &no) != SSH_OK ||
        ssh_bind_options_set(s.bind, SSH_BIND_OPTIONS_KEY_EXCHANGE, ssh_pump_kex) != SSH_OK ||
        ssh_bind_options_set(s.bind, SSH_BIND_OPTIONS_CIPHERS_C_S, ssh_pump_ciphers) != SSH_OK ||
        ssh_bind_options_set(s.bind, SSH_BIND_OPTIONS_CIPHERS_S_C, ssh_pump_ciphers) != SSH_OK ||
        ssh_bind_options_set(s.bind, SSH_BIND_OPTIONS_HMAC_C_S, ssh_pump_macs) != SSH_OK ||
        ssh_bind_options_set(s.bind, SSH_BIND_OPTIONS_HMAC_S_C, ssh_pump_macs) != SSH_OK ||
        ssh_bind_options_set(s.bind, SSH_BIND_OPTIONS_BANNER, "Durward") != SSH_OK ||
        set_key(&s, key, HOST_KEY_ED25519) < 0 || set_key(&s, key, HOST_KEY_ECDSA) < 0)
        return err_set(err, ERR_INTERNAL, "libssh cannot be set up");
    return 0;
}

int ssh_front_main(void)
{
    static const struct front_life life = {
        .role = ROLE_SSH_FRONT, .scheme = SCHEME_SSH, .load = front_loaded, .accept = front_accept};
    return front_main(&life);
}
