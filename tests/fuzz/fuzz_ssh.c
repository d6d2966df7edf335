/* What we parse of SSH ourselves: facts of a front, git's commands, and in the vault a key and what
 * it is to sign. What is read is written and read again, and is the same. */
#include "ssh_agent.h"
#include "ssh_certificates.h"
#include "ssh_facts.h"
#include "ssh_sign.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void facts(struct slice s)
{
    struct ssh_facts f, again;
    struct buf b;
    if (ssh_facts_get(s, &f) < 0)
        return;
    buf_init(&b, 2 * SSH_FACTS_MAX);
    if (ssh_facts_put(&f, &b) < 0 || ssh_facts_get(buf_slice(&b), &again) < 0 ||
        memcmp(&f, &again, sizeof f) != 0)
        abort();
    buf_free(&b);
}

static void command(struct slice s)
{
    struct ssh_facts f, again;
    struct buf b;
    bool relative;
    memset(&f, 0, sizeof f);
    memset(&again, 0, sizeof again);
    if (ssh_command_read(s, &f, &relative) < 0)
        return;
    buf_init(&b, SSH_LINE_MAX);
    if (ssh_command_write(&f, &b) < 0 ||
        (f.verb != SSH_EXEC && (ssh_command_read(buf_slice(&b), &again, &relative) < 0 ||
                                relative || strcmp(f.text, again.text) != 0)) ||
        strlen(f.text) > SSH_TEXT_MAX)
        abort();
    (void)ssh_command_matches("show * x", s);
    buf_free(&b);
}

/* Nobody has a certificate. */
static void key(struct slice s)
{
    static struct ssh_certificates *certificates;
    static const struct ssh_certificates_owner owner = {"coder", "box"};
    struct err err = {0};
    struct buf b;
    buf_init(&b, SSH_PUBLIC_MAX);
    int r = ssh_key_public(s, &b, &err);
    if ((r == 0) != (buf_len(&b) > 0) && r == 0)
        abort();
    buf_clear(&b);
    if (ssh_key_sign(SLICE("no key"), s, &b, &err) == 0 ||
        ssh_key_sign_text(SLICE("no key"), "git", 0, s, &b, &err) == 0)
        abort();
    if (certificates == NULL && (certificates = ssh_certificates_new()) == NULL)
        abort();
    if (ssh_certificates_sign(certificates, &owner, s, 1, &b, &err) == 0)
        abort();
    buf_free(&b);
}

/* A client's message, and the text that it wants signed. What is read is made again, and is the
 * same. */
static void agent(struct slice s)
{
    struct ssh_agent_asked asked;
    struct sshsig what;
    struct buf b;
    if (ssh_agent_read(s, &asked) < 0 || asked.type != SSH_AGENT_SIGN ||
        sshsig_read(asked.text, &what) < 0)
        return;
    buf_init(&b, SSHSIG_MAX);
    if (sshsig_put(&what, &b) < 0 || !slice_eq(buf_slice(&b), asked.text))
        abort();
    buf_free(&b);
}

static void agent_facts(struct slice s)
{
    struct ssh_agent_facts f;
    struct buf b;
    if (ssh_agent_facts_get(s, &f) < 0)
        return;
    buf_init(&b, SSH_AGENT_FACTS_MAX);
    if (ssh_agent_facts_put(&f, &b) < 0 || !slice_eq(buf_slice(&b), s))
        abort();
    buf_free(&b);
}

/* What is one in whatever reading is the same in its one form, which matches itself as a pattern.
 */
static void target(struct slice s)
{
    char text[SSH_TARGET_TEXT_MAX];
    struct authority at, again;
    struct ssh_target t;
    if (ssh_target_asked(s, 22, &at) == 0) {
        struct slice form = slice_str(authority_text_port(&at, text, sizeof text));
        if (ssh_target_read(form, &again) < 0 || !authority_eq(&at, &again) ||
            ssh_target_parse(form, &t) < 0 || !ssh_target_matches(&t, &at))
            abort();
    }
    if (ssh_target_read(s, &at) == 0 &&
        (ssh_target_parse(s, &t) < 0 || !ssh_target_matches(&t, &at)))
        abort();
    (void)ssh_target_parse(s, &t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice s = {(const char *)data + (size > 0), size - (size > 0)};
    struct ssh_status status;
    switch (size ? data[0] : 0) {
    case 'f':
        facts(s);
        break;
    case 'c':
        command(s);
        break;
    case 'a':
        agent(s);
        break;
    case 'g':
        agent_facts(s);
        break;
    case 't':
        target(s);
        break;
    case 's':
        if (ssh_status_get(s, &status) == 0 && strlen(status.signal) >= sizeof status.signal)
            abort();
        break;
    default:
        key(s);
    }
    return 0;
}
