/* The tables of severities, and looking them up. */
#include "severity.h"

#include <string.h>

struct row {
    const char *word;
    enum severity severity;
};

static const struct row codes[] = {
    {"ok", SEVERITY_INFO},
    /* secrets */
    {"foreign_credential", SEVERITY_CRITICAL},
    {"cross_sandbox", SEVERITY_CRITICAL},
    {"secret_reflected", SEVERITY_CRITICAL},
    {"secret_blocked", SEVERITY_HIGH},
    {"secret_needs_tls", SEVERITY_HIGH},
    {"placeholder_count", SEVERITY_HIGH},
    {"cannot_scrub", SEVERITY_HIGH},
    {"grant_denied", SEVERITY_HIGH},
    {"grant_authority", SEVERITY_HIGH},
    {"grant_request", SEVERITY_HIGH},
    {"token_invalid", SEVERITY_HIGH},
    {"token_revoked", SEVERITY_HIGH},
    {"token_source", SEVERITY_HIGH},
    /* ways around a rule */
    {"blocked_ip", SEVERITY_HIGH},
    {"respelled", SEVERITY_HIGH},
    {"authority_mismatch", SEVERITY_HIGH},
    {"parsers_disagree", SEVERITY_HIGH},
    {"framing", SEVERITY_HIGH},
    {"early_data", SEVERITY_HIGH},
    {"method_override", SEVERITY_HIGH},
    {"pattern", SEVERITY_HIGH},
    {"signature_scope", SEVERITY_HIGH},
    {"path_ambiguous", SEVERITY_MEDIUM},
    {"body_ambiguous", SEVERITY_MEDIUM},
    {"trailer", SEVERITY_MEDIUM},
    {"connect_inside", SEVERITY_MEDIUM},
    {"denied_by_rule", SEVERITY_MEDIUM},
    {"approval_denied", SEVERITY_MEDIUM},
    {"destination", SEVERITY_MEDIUM},
    {"server_tool", SEVERITY_MEDIUM},
    {"ref", SEVERITY_MEDIUM},
    {"budget", SEVERITY_MEDIUM},
    {"token_missing", SEVERITY_MEDIUM},
    {"token_policy", SEVERITY_MEDIUM},
    /* ourselves */
    {"preview_cross_site", SEVERITY_HIGH},
    {"preview_login", SEVERITY_MEDIUM},
    {"preview_unknown", SEVERITY_LOW},
    {"audit_unwritable", SEVERITY_HIGH},
    {"audit", SEVERITY_HIGH},
    {"secret_unavailable", SEVERITY_MEDIUM},
    {"upstream_tls", SEVERITY_MEDIUM},
    {"no_rule", SEVERITY_LOW},
    {"dns_denied", SEVERITY_LOW},
};

static const struct row events[] = {
    {"threshold_kill", SEVERITY_CRITICAL},
    {"killed", SEVERITY_CRITICAL},
    {"threshold", SEVERITY_HIGH},
    {"threshold_pause", SEVERITY_HIGH},
    {"records_lost", SEVERITY_HIGH},
    {"role_ended", SEVERITY_HIGH},
    {"token_refused", SEVERITY_HIGH},
    {"store_failed", SEVERITY_MEDIUM},
    {"notify_failed", SEVERITY_MEDIUM},
    {"console_asked", SEVERITY_LOW},
    {"token_created", SEVERITY_LOW},
    {"preview_opened", SEVERITY_LOW},
    {"preview_revoked", SEVERITY_LOW},
    {"policy_changed", SEVERITY_LOW},
    {"proposal_made", SEVERITY_LOW},
    {"suppression_made", SEVERITY_LOW},
    {"suppression_accepted", SEVERITY_MEDIUM},
};

static const struct row *find(const struct row *rows, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].word, word) == 0)
            return &rows[i];
    return NULL;
}

enum severity severity_of(enum record_kind kind, const char *code)
{
    const struct row *r = find(codes, ARRAY_LEN(codes), code);
    if (r)
        return r->severity;
    switch (kind) {
    case RECORD_PACKET:
        return SEVERITY_MEDIUM;
    case RECORD_DENIED:
    case RECORD_DNS:
    case RECORD_TLS_REFUSED:
    case RECORD_ABORTED:
        return SEVERITY_LOW;
    default:
        return SEVERITY_INFO;
    }
}

enum severity severity_of_event(const char *event)
{
    const struct row *r = find(events, ARRAY_LEN(events), event);
    return r ? r->severity : SEVERITY_INFO;
}

const char *severity_name(enum severity s)
{
    static const char *const names[] = {"info", "low", "medium", "high", "critical"};
    return names[s];
}

const char *severity_code_at(size_t i)
{
    return i < ARRAY_LEN(codes) ? codes[i].word : NULL;
}

const char *severity_event_at(size_t i)
{
    return i < ARRAY_LEN(events) ? events[i].word : NULL;
}
