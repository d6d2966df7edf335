/* The sentence and the way out for each refusal code. A row with a status goes before one of the
 * same code without. */
#include "answer_words.h"

#include "slice.h"

#include <string.h>

#define ASK                                                                                    \
    "Ask whoever runs this sandbox to allow it in the policy; until then the same request is " \
    "denied again"
#define GUIDE   "http://durward.internal/ tells more"
#define TELL    "Tell whoever runs this sandbox; the same request is denied again"
#define CORRECT "Correct the request; the same one is refused again"
#define ORIGIN  "The policy is not the reason. Try again later, or tell whoever runs this sandbox"
#define AGAIN   "The policy is not the reason. Try again in a few seconds"
#define REPAIR  "The policy is not the reason. Whoever runs this sandbox has to repair it"
#define PLACEHOLDER                                                                            \
    "Send the placeholder that the sandbox was given, unchanged, where the service wants its " \
    "credential"

static const struct answer_words table[] = {
    /* policy */
    {"no_rule", 0, ANSWER_DENIED, "no rule of the policy allows it", ASK ". " GUIDE, 0},
    {"denied_by_rule", 0, ANSWER_DENIED, "a rule of the policy denies it", ASK, 0},
    {"method", 405, ANSWER_REFUSED, "this method is never carried", "Use another method", 0},
    {"method", 0, ANSWER_DENIED, "the policy allows other methods here, not this one", ASK, 0},
    {"query", 0, ANSWER_DENIED, "the policy does not allow this query", ASK, 0},
    {"header", 0, ANSWER_DENIED, "the policy does not allow a header field as it was sent", ASK, 0},
    {"destination", 0, ANSWER_DENIED, "the policy does not allow what it writes at or copies from",
     ASK, 0},
    {"respelled", 0, ANSWER_DENIED, "the path is spelled so that another rule could apply",
     "Spell the path plainly, without escapes that it does not need", 0},
    {"tunnel", 0, ANSWER_DENIED, "the policy allows this host as a tunnel only", "Use CONNECT", 0},
    {"websocket", 0, ANSWER_DENIED, "the policy allows no WebSocket here", ASK, 0},
    {"kubernetes", 0, ANSWER_DENIED, "the policy does not allow this to be asked of the cluster",
     ASK, 0},
    {"graphql", 0, ANSWER_DENIED, "the policy does not allow this GraphQL operation", ASK, 0},
    {"mcp", 0, ANSWER_DENIED, "the policy does not allow this MCP tool or method", ASK, 0},
    {"mcp_login", 0, ANSWER_FAILED, "the MCP server does not take the login that it was sent",
     "The policy is not the reason. Whoever runs this sandbox has to renew the login, outside of "
     "it "
     "(durward login mcp NAME URL)",
     0},
    {"login_renewed", 0, ANSWER_FAILED,
     "the server refused the credential that it was sent, and there is another one now",
     "The policy is not the reason. Send the request once more", 0},
    {"mcp_reply", 0, ANSWER_FAILED,
     "the MCP server sent a message that cannot be read with certainty", ORIGIN, 0},
    {"mcp_reply_too_large", 0, ANSWER_FAILED, "the MCP server sent a message of more than 8 MiB",
     ORIGIN, 0},
    {"llm", 0, ANSWER_DENIED, "the policy does not allow this call to a model", ASK, 0},
    {"server_tool", 0, ANSWER_DENIED, "the policy does not allow a tool that runs at the server",
     ASK, 0},
    {"ref", 0, ANSWER_DENIED, "the policy does not allow a push to this reference", ASK, 0},
    {"lfs", 0, ANSWER_DENIED, "the policy does not allow this git-lfs operation", ASK, 0},
    {"denied", 0, ANSWER_DENIED, "no rule of the policy allows this host", ASK, 0},
    {"blocked_ip", 0, ANSWER_DENIED, "the host's address is one that may not be reached", ASK, 0},
    {"budget", 0, ANSWER_DENIED, "a budget of the policy is used up",
     "Wait as long as Retry-After says, or ask whoever runs this sandbox for more", 0},
    {"approval_denied", 0, ANSWER_DENIED, "a person has to allow it, and did not",
     "Ask whoever runs this sandbox before it is sent again", 0},
    {"approval_timeout", 0, ANSWER_DENIED, "a person was asked and did not answer in time",
     "Ask whoever runs this sandbox to answer, then send it again", 0},
    {"approval_full", 0, ANSWER_FAILED, "too many requests wait for a person's answer", AGAIN, 10},
    {"share_used", 0, ANSWER_FAILED, "this sandbox has all that it may have under way at once",
     AGAIN, 1},
    {"policy_changed", 0, ANSWER_DENIED, "the policy changed while a person was being asked",
     "Send it again: it is decided anew", 0},
    {"grant_denied", 0, ANSWER_DENIED, "the policy does not allow a credential for it", ASK, 0},
    {"grant_authority", 0, ANSWER_DENIED, "the credential is not for this host", TELL, 0},
    {"grant_request", 0, ANSWER_DENIED, "the credential is not for a request of this form", TELL,
     0},
    /* previews: who asks is outside, and no sandbox */
    {"preview_login", 0, ANSWER_DENIED, "this preview is seen by who has a link or token for it",
     "Ask whoever runs the sandbox for one: durward sandbox preview", 0},
    {"preview_cross_site", 0, ANSWER_DENIED,
     "another site's page had the browser ask, with this preview's cookie",
     "Open the preview's own address", 0},
    {"preview_busy", 0, ANSWER_FAILED, "too many tokens are being looked at", AGAIN, 5},
    {"preview_unknown", 0, ANSWER_DENIED, "there is no preview of this name",
     "Ask whoever runs the sandbox for its address: durward sandbox preview", 0},
    {"preview_asleep", 0, ANSWER_FAILED, "the sandbox of this preview does not run", AGAIN, 5},
    /* credentials and placeholders */
    {"foreign_credential", 0, ANSWER_DENIED,
     "it carries a credential that this sandbox was not given", PLACEHOLDER, 0},
    {"cross_sandbox", 0, ANSWER_DENIED, "it carries a placeholder of another sandbox", PLACEHOLDER,
     0},
    {"secret_blocked", 0, ANSWER_DENIED, "it carries a placeholder where none may go", PLACEHOLDER,
     0},
    {"secret_needs_tls", 0, ANSWER_DENIED, "a credential is not sent in clear text", "Use https",
     0},
    {"placeholder_count", 0, ANSWER_DENIED,
     "the placeholder stands in it more or less often than the policy says", PLACEHOLDER, 0},
    {"signature_scope", 0, ANSWER_DENIED, "it is not signed for a scope that the policy allows",
     ASK, 0},
    {"signature_streaming", 0, ANSWER_DENIED, "its chunks are not signed as they have to be",
     "Send the body unsigned or signed as a whole", 0},
    {"body_hash", 0, ANSWER_DENIED, "its body is not the one that its hash names", CORRECT, 0},
    {"method_override", 0, ANSWER_DENIED, "it asks for another method than the one it is sent with",
     "Send it with the method that is meant", 0},
    {"token_missing", 0, ANSWER_DENIED, "it carries no token of a sandbox",
     "Use the proxy address that the sandbox was given, token included", 0},
    {"token_invalid", 0, ANSWER_DENIED, "its token is not valid here",
     "Use the proxy address that the sandbox was given, token included", 0},
    {"token_revoked", 0, ANSWER_DENIED, "its token was revoked", TELL, 0},
    {"token_expired", 0, ANSWER_DENIED, "its token has expired", TELL, 0},
    {"fleet_unread", 0, ANSWER_FAILED, "this host cannot see which tokens its fleet has revoked",
     AGAIN, 2},
    {"token_source", 0, ANSWER_DENIED, "its token is not for this place", TELL, 0},
    {"token_policy", 0, ANSWER_DENIED, "its token names a policy that does not exist", TELL, 0},
    /* metadata services */
    {"metadata_token", 0, ANSWER_DENIED,
     "the metadata service wants the token of a session, or this sandbox's own, first",
     "Use the cloud's own library, which asks for a token before (IMDSv2)", 0},
    {"metadata_forwarded", 0, ANSWER_DENIED,
     "the metadata service answers nobody for whom it is sent on", "Ask without a proxy's fields",
     0},
    {"metadata_audience", 0, ANSWER_DENIED,
     "the policy has no token for that audience, resource or identity", ASK, 0},
    {"metadata_field", 0, ANSWER_REFUSED,
     "the metadata service wants a header field that is missing or wrong, or has no use for a body",
     "Use the cloud's own library", 0},
    {"metadata_placeholder", 0, ANSWER_DENIED,
     "this sandbox was made before its policy had that identity",
     "Make another sandbox: each has its placeholders from its beginning", 0},
    {"metadata_unknown", 0, ANSWER_DENIED, "the policy says nothing of that to this sandbox", ASK,
     0},
    /* not a request that can be carried */
    {"bad_request_line", 0, ANSWER_REFUSED, "its request line is malformed", CORRECT, 0},
    {"bad_target", 0, ANSWER_REFUSED, "its target is malformed", CORRECT, 0},
    {"bad_version", 0, ANSWER_REFUSED, "its HTTP version is malformed", CORRECT, 0},
    {"bad_header", 0, ANSWER_REFUSED, "a header field is malformed", CORRECT, 0},
    {"host", 0, ANSWER_REFUSED, "its Host field is missing, doubled or malformed", CORRECT, 0},
    {"framing", 0, ANSWER_REFUSED, "the length of its body is ambiguous", CORRECT, 0},
    {"upgrade", 501, ANSWER_REFUSED, "only an upgrade to WebSocket is carried",
     "Send it without Upgrade", 0},
    {"upgrade", 0, ANSWER_REFUSED, "its WebSocket handshake is malformed", CORRECT, 0},
    {"h2c", 0, ANSWER_REFUSED,
     "HTTP/2 in clear is carried from the first byte of a connection to its own host, and not here",
     "Ask the proxy for a tunnel to that host (CONNECT, as for https), and begin HTTP/2 in it", 0},
    {"parsers_disagree", 0, ANSWER_REFUSED, "it can be read in two ways", CORRECT, 0},
    {"pseudo_header", 0, ANSWER_REFUSED, "an HTTP/2 pseudo-header is malformed", CORRECT, 0},
    {"scheme", 0, ANSWER_REFUSED, "its scheme is not that of the connection", CORRECT, 0},
    {"signed_target", 0, ANSWER_REFUSED,
     "its target holds bytes that have to be escaped, and a signature covers them",
     "Percent-encode the target before it is signed", 0},
    {"malformed_host", 0, ANSWER_REFUSED, "its host is malformed", CORRECT, 0},
    {"authority_mismatch", 0, ANSWER_REFUSED, "its Host is not the host of the connection", CORRECT,
     0},
    {"path_ambiguous", 0, ANSWER_REFUSED, "its path can be read in more than one way",
     "Spell the path without dot segments, empty segments, backslashes or control characters", 0},
    {"trailer", 0, ANSWER_REFUSED, "a trailer names a field that may not stand there", CORRECT, 0},
    {"early_data", 0, ANSWER_REFUSED, "bytes followed CONNECT before its answer", CORRECT, 0},
    {"body_ambiguous", 0, ANSWER_REFUSED,
     "its body can be read in more than one way, or not at all", CORRECT, 0},
    {"connect_inside", 0, ANSWER_REFUSED, "CONNECT is not carried inside a tunnel", CORRECT, 0},
    {"too_large_to_inspect", 0, ANSWER_REFUSED,
     "its body is too large for what the policy has to see of it", "Send a smaller body", 0},
    {"body_too_large", 0, ANSWER_REFUSED, "its body is too large to be held for its credential",
     "Send a smaller body", 0},
    {"target_too_long", 0, ANSWER_REFUSED, "its target is too long", CORRECT, 0},
    {"too_many_headers", 0, ANSWER_REFUSED, "its header fields are too many or too long", CORRECT,
     0},
    {"pattern", 0, ANSWER_DENIED, "its body holds what the policy does not let out",
     "Take the secret or the personal data out of the body", 0},
    {"content_coding", 0, ANSWER_REFUSED, "the policy has to see its body, and that is compressed",
     "Send the body uncompressed", 0},
    {"content_type", 0, ANSWER_REFUSED,
     "the policy has to see its body, and that is not of a type which can be read",
     "Send the body with the type that the service documents", 0},
    {"expect", 0, ANSWER_REFUSED, "only Expect: 100-continue is carried", CORRECT, 0},
    {"version", 0, ANSWER_REFUSED, "only HTTP/1.0, HTTP/1.1 and HTTP/2 are carried", CORRECT, 0},
    {"transfer_coding", 501, ANSWER_REFUSED, "a transfer coding other than chunked is not carried",
     CORRECT, 0},
    {"timeout", 408, ANSWER_REFUSED, "it was not sent completely in time", "Send it again", 0},
    /* the origin */
    {"timeout", 0, ANSWER_FAILED, "the origin could not be reached in time", ORIGIN, 0},
    {"upstream_timeout", 0, ANSWER_FAILED, "the origin did not answer in time", ORIGIN, 0},
    {"upstream_tls", 0, ANSWER_FAILED,
     "the TLS connection to the origin failed, or its certificate is not trusted", ORIGIN, 0},
    {"upstream_protocol", 0, ANSWER_FAILED, "the origin's answer is not valid HTTP", ORIGIN, 0},
    {"transfer_coding", 0, ANSWER_FAILED, "the origin answered with an unknown transfer coding",
     ORIGIN, 0},
    {"upstream_closed", 0, ANSWER_FAILED, "the origin closed the connection without an answer",
     ORIGIN, 0},
    {"upstream_truncated", 0, ANSWER_FAILED, "the origin closed the connection too early", ORIGIN,
     0},
    {"upstream_refused", 0, ANSWER_FAILED, "the origin refused the HTTP/2 stream", ORIGIN, 0},
    {"upstream_reset", 0, ANSWER_FAILED, "the origin reset the HTTP/2 stream", ORIGIN, 0},
    {"upstream_proxy", 0, ANSWER_FAILED, "the proxy on the way to the origin refused or failed",
     ORIGIN, 0},
    {"resolve", 0, ANSWER_FAILED, "the origin's name could not be resolved", ORIGIN, 0},
    {"connect", 0, ANSWER_FAILED, "the origin could not be connected to", ORIGIN, 0},
    {"upstream_no_h2", 0, ANSWER_FAILED, "the origin answered in another protocol than HTTP/2",
     "The policy is not the reason. Ask it in HTTP/1.1, or over https", 0},
    {"grpc_needs_h2", 0, ANSWER_FAILED, "the origin speaks no HTTP/2, which gRPC needs", ORIGIN, 0},
    {"cannot_scrub", 0, ANSWER_FAILED,
     "the origin's answer cannot be searched for the credential that was sent", ORIGIN, 0},
    {"secret_reflected", 0, ANSWER_FAILED, "the origin's answer held the credential that was sent",
     ORIGIN, 0},
    {"capture_unreadable", 0, ANSWER_FAILED,
     "the origin's answer was to hold a credential and cannot be read", ORIGIN, 0},
    {"capture_too_large", 0, ANSWER_FAILED,
     "the origin's answer was to hold a credential and is too large", ORIGIN, 0},
    /* ourselves */
    {"audit_unwritable", 0, ANSWER_FAILED, "the audit log cannot be written", REPAIR, 10},
    {"audit", 0, ANSWER_FAILED, "the audit log cannot be written", REPAIR, 10},
    {"overload", 0, ANSWER_FAILED, "the proxy has too much to do", AGAIN, 2},
    {"memory", 0, ANSWER_FAILED, "the proxy has no memory left for it", AGAIN, 2},
    {"secret_unavailable", 0, ANSWER_FAILED, "the credential for it cannot be read", REPAIR, 10},
    {"fill", 0, ANSWER_FAILED, "the credential could not be put into it", REPAIR, 10},
    {"injector_gone", 0, ANSWER_FAILED, "a part of the proxy is being restarted", AGAIN, 2},
    {"dialer_gone", 0, ANSWER_FAILED, "a part of the proxy is being restarted", AGAIN, 2},
    {"shutdown", 0, ANSWER_FAILED, "the proxy is being shut down", AGAIN, 5},
};

static const struct answer_words by_status[] = {
    {"", 0, ANSWER_DENIED, "the policy does not allow it", ASK, 0},
    {"", 0, ANSWER_REFUSED, "it cannot be carried as it is", CORRECT, 0},
    {"", 0, ANSWER_FAILED, "it could not be carried out", ORIGIN, 0},
};

const struct answer_words *answer_words(unsigned status, const char *code)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strcmp(table[i].code, code) == 0 && (table[i].status == 0 || table[i].status == status))
            return &table[i];
    bool policy = status == 403 || status == 407 || status == 429;
    bool failed = status >= 500 && status != 501 && status != 505;
    return &by_status[policy ? ANSWER_DENIED : failed ? ANSWER_FAILED : ANSWER_REFUSED];
}

const char *answer_class_name(enum answer_class c)
{
    return c == ANSWER_DENIED ? "denied" : c == ANSWER_REFUSED ? "refused" : "failed";
}

const struct answer_words *answer_words_at(size_t i)
{
    return i < ARRAY_LEN(table) ? &table[i] : NULL;
}
