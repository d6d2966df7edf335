/* What a client's commands come to: an envelope, of which each part is judged as it is named. What
 * it says of itself (EHLO, AUTH) goes no further. */
#include "smtp_front.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void smtp_forget(struct smtp_client *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->names); i++) {
        free(c->names[i]);
        c->names[i] = NULL;
    }
    memset(&c->facts, 0, sizeof c->facts);
    c->has_sender = false;
}

static int ehlo(struct smtp_client *c, bool extended)
{
    char said[700];
    smtp_forget(c);
    c->greeted = true;
    if (!extended) {
        snprintf(said, sizeof said, "250 %s", c->at.host);
        return smtp_say(c, said);
    }
    snprintf(said, sizeof said,
             "250-%s\r\n250-PIPELINING\r\n250-SIZE %llu\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n%s%s"
             "250 ENHANCEDSTATUSCODES",
             c->at.host, (unsigned long long)c->rule->smtp->most_bytes,
             c->secure ? "" : "250-STARTTLS\r\n", "250-AUTH PLAIN LOGIN XOAUTH2\r\n");
    return smtp_say(c, said);
}

static int refused_address(struct smtp_client *c, const char *code, const char *what,
                           struct slice address)
{
    char text[SMTP_ANSWER], detail[300];
    struct slice domain = address.n ? smtp_address_domain(address) : SLICE("nowhere");
    snprintf(detail, sizeof detail, "%s at %.*s", what, SL(domain));
    smtp_denied(c, code, detail);
    snprintf(text, sizeof text,
             "550 5.7.1 durward: refused: %s is not one that the rule allows: %s", what, code);
    return smtp_refuse(c, text);
}

static int bad_path(struct smtp_client *c, const struct smtp_path *p)
{
    char text[SMTP_ANSWER];
    snprintf(text, sizeof text, "%u 5.5.4 durward: refused: %s", p->code, p->why);
    return smtp_refuse(c, text);
}

static int mail(struct smtp_client *c, struct slice rest)
{
    struct smtp_path p;
    const char *code;
    if (!c->greeted || c->has_sender)
        return smtp_refuse(c, "503 5.5.1 EHLO goes first, and one message at a time");
    if (smtp_mail_read(rest, &p) < 0)
        return bad_path(c, &p);
    if (!smtp_decide(c, NULL, &code)) {
        char text[SMTP_ANSWER];
        snprintf(text, sizeof text, "550 5.7.1 durward: refused: %s", code);
        smtp_denied(c, code, "");
        return smtp_refuse(c, text);
    }
    if ((code = smtp_sender_refused(c->rule->smtp, p.address)) != NULL)
        return refused_address(c, code, "the sender", p.address);
    if (p.size > c->rule->smtp->most_bytes) {
        smtp_denied(c, "smtp_size", "as it was declared");
        return smtp_refuse(c, "552 5.3.4 durward: refused: the message is too large: smtp_size");
    }
    c->names[0] = slice_dup(p.address);
    if (p.address.n > 0 && c->names[0] == NULL)
        return smtp_refuse(c, "451 4.3.0 durward: out of memory");
    c->facts.envelope.sender = slice_str(c->names[0]);
    c->facts.envelope.size = p.size;
    c->facts.eight = p.eight;
    c->facts.utf8 = p.utf8;
    c->has_sender = true;
    return smtp_say(c, "250 2.1.0 Ok");
}

static int rcpt(struct smtp_client *c, struct slice rest)
{
    struct smtp_path p;
    struct smtp_envelope *e = &c->facts.envelope;
    if (!c->has_sender)
        return smtp_refuse(c, "503 5.5.1 MAIL goes first");
    if (smtp_rcpt_read(rest, c->facts.utf8, &p) < 0)
        return bad_path(c, &p);
    const char *code = smtp_recipient_refused(c->rule->smtp, p.address);
    if (code)
        return refused_address(c, code, "a recipient", p.address);
    if (e->n >= c->rule->smtp->most_recipients) {
        smtp_denied(c, "smtp_recipients", "");
        return smtp_refuse(c, "452 4.5.3 durward: refused: too many recipients: smtp_recipients");
    }
    char *name = slice_dup(p.address);
    if (name == NULL)
        return smtp_refuse(c, "451 4.3.0 durward: out of memory");
    c->names[1 + e->n] = name;
    e->recipients[e->n++] = slice_str(name);
    return smtp_say(c, "250 2.1.5 Ok");
}

/* What stands behind it came in clear, and would be read as if it had come within TLS. */
static int starttls(struct smtp_client *c, struct slice rest)
{
    if (c->secure)
        return smtp_refuse(c, "503 5.5.1 TLS is there already");
    if (rest.n > 0)
        return smtp_refuse(c, "501 5.5.4 STARTTLS stands alone");
    if (buf_len(io_in(c->io)) > 0) {
        smtp_denied(c, "smtp_protocol", "more behind STARTTLS");
        smtp_client_free(c, false);
        return -1;
    }
    smtp_forget(c);
    c->greeted = c->logged = false;
    return smtp_say(c, "220 2.0.0 Go on") < 0 ? -1 : 1;
}

/* A login is nobody's here: it is taken, and forgotten. */
static int auth(struct smtp_client *c, struct slice rest)
{
    ssize_t blank = slice_find(rest, ' ');
    struct slice name = {rest.p, blank < 0 ? rest.n : (size_t)blank};
    bool login = slice_ieq_str(name, "LOGIN");
    if (!c->greeted || c->logged || c->has_sender)
        return smtp_refuse(c, "503 5.5.1 AUTH comes once, behind EHLO and before MAIL");
    if (!login && !slice_ieq_str(name, "PLAIN") && !slice_ieq_str(name, "XOAUTH2"))
        return smtp_refuse(c, "504 5.5.4 PLAIN, LOGIN or XOAUTH2");
    c->more = (unsigned)(login ? 2 : 1) - (blank >= 0);
    if (c->more == 0) {
        c->logged = true;
        return smtp_say(c, "235 2.7.0 Nobody is asked for a login here");
    }
    c->state = CLIENT_AUTH;
    return smtp_say(c, !login ? "334 " : blank < 0 ? "334 VXNlcm5hbWU6" : "334 UGFzc3dvcmQ6");
}

int smtp_answer(struct smtp_client *c, struct slice line)
{
    if (slice_eq_str(line, "*")) {
        c->state = CLIENT_COMMANDS;
        return smtp_refuse(c, "501 5.7.0 Given up");
    }
    if (--c->more > 0)
        return smtp_say(c, "334 UGFzc3dvcmQ6");
    c->state = CLIENT_COMMANDS;
    c->logged = true;
    return smtp_say(c, "235 2.7.0 Nobody is asked for a login here");
}

static int quit(struct smtp_client *c)
{
    if (smtp_say(c, "221 2.0.0 Bye") == 0)
        smtp_client_free(c, true);
    return -1;
}

int smtp_command(struct smtp_client *c, struct slice line)
{
    struct slice rest;
    enum smtp_verb verb = smtp_verb(line, &rest);
    if ((verb == SMTP_DATA || verb == SMTP_RSET || verb == SMTP_QUIT) && rest.n > 0)
        return smtp_refuse(c, "501 5.5.4 This command stands alone");
    switch (verb) {
    case SMTP_HELO:
    case SMTP_EHLO:
        return ehlo(c, verb == SMTP_EHLO);
    case SMTP_MAIL:
        return mail(c, rest);
    case SMTP_RCPT:
        return rcpt(c, rest);
    case SMTP_DATA:
        return smtp_deliver(c);
    case SMTP_RSET:
        smtp_forget(c);
        return smtp_say(c, "250 2.0.0 Ok");
    case SMTP_NOOP:
        return smtp_say(c, "250 2.0.0 Ok");
    case SMTP_QUIT:
        return quit(c);
    case SMTP_STARTTLS:
        return starttls(c, rest);
    case SMTP_AUTH:
        return auth(c, rest);
    case SMTP_NEVER:
        return smtp_refuse(c, "502 5.5.1 This command is not carried");
    default:
        return smtp_refuse(c, "500 5.5.2 No command that is known");
    }
}
