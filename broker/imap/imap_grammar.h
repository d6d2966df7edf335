/* The arguments of commands. Internal to this room. */
#ifndef DURWARD_IMAP_GRAMMAR_H
#define DURWARD_IMAP_GRAMMAR_H

#include "imap_command.h"
#include "imap_text.h"

/* Each takes its part off *s and writes it to c->out. False: it cannot be; c->why may say what. */
bool imap_refuse(struct imap_command *c, const char *code, const char *why); /* false */
bool imap_say(struct imap_command *c, const char *text);
bool imap_say_slice(struct imap_command *c, struct slice text);
bool imap_say_string(struct imap_command *c, struct slice *s); /* an astring */
bool imap_fetch_args(struct imap_command *c, struct slice *s, const struct imap_terms *t);
bool imap_search_args(struct imap_command *c, struct slice *s, const struct imap_terms *t);

/* imap_changes.c: from the blank before a bracket on, behind SELECT's mailbox, what FETCH asks for,
 * and the messages of STORE; what follows ENABLE; and a mod-sequence. */
bool imap_changes_select(struct imap_command *c, struct slice *s);
bool imap_changes_fetch(struct imap_command *c, struct slice *s);
bool imap_changes_store(struct imap_command *c, struct slice *s);
bool imap_changes_enable(struct imap_command *c, struct slice *s);
bool imap_changes_number(struct imap_command *c, struct slice *s);

#endif
