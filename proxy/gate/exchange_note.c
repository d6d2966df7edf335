/* A refusal where no exchange can be answered. */
#include "exchange.h"

void exchange_note_denied(struct gate *g, const struct identity *who, const char *code,
                          const char *target, const char *entry, const char *detail)
{
    struct record r;
    gate_denied(g, code, target, 1);
    record_init(&r, RECORD_DENIED, 0);
    record_put_str(&r, RF_CODE, code);
    record_put_str(&r, RF_TARGET, target);
    record_put_str(&r, RF_ENTRY, entry);
    record_put_str(&r, RF_DETAIL, detail);
    if (g->mode == GATE_TOKEN && who)
        record_put_str(&r, RF_SANDBOX, who->sandbox);
    journal_note(g->journal, &r);
}
