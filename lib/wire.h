/* Every message type between our processes, with its fields in order.
 *
 * Notation: field:type; u8 u32 u64 str (msg_put_str) bytes (msg_put_bytes) fd. "n × (…)" is a u32
 * count and then that many groups. `req` is the requester's u32 handle, given back in the answer.
 * Roles: P parent, S signer, V vault, D dialer, G gate, I injector, L logger, C controller,
 * B builder, K exporter. A role's descriptor 3 is its control channel to the parent. */
#ifndef DURWARD_WIRE_H
#define DURWARD_WIRE_H

/* What the self-test inside each new sandbox asks for and tries to reach (192.0.2.53): refused like
 * anything else, but nobody's doing, so it is not counted among the sandbox's denials. */
#define WIRE_SELFTEST_NAME    "self-test.durward.invalid"
#define WIRE_SELFTEST_ADDRESS 0xc0000235u

enum { WIRE_VERIFIED_MAX = 1 << 20 };
/* A service's name, or its port as text; and for how long a preview may be seen. */
enum { WIRE_SERVICE_MAX = 31, WIRE_SERVICES = 16, WIRE_PREVIEW_SECONDS = 86400 };

/* W_LOG_ASK: the conditions of a question to the log, in this order; each is an option of
 * `durward audit query` and a parameter of the API. */
#define WIRE_LOG_ASK_NAMES                                                                     \
    {                                                                                          \
        "since", "until", "kind", "sandbox", "policy", "host", "method", "rule", "credential", \
            "status", "code", "id", "text"                                                     \
    }
enum {
    WIRE_LOG_ASK_FIELDS = 13,
    WIRE_LOG_ASK_TEXT = 256,
    WIRE_LOG_ASK_ROWS = 5001, /* one more than the API gives: whether there are more */
    WIRE_LOG_ASKS = 8,        /* at once */
    WIRE_LOG_SAID_MAX = 24 << 20
};
/* What became of a proposal. KNOWN: the same waits already. */
enum wire_proposed {
    WIRE_PROPOSED_TAKEN = 0,
    WIRE_PROPOSED_KNOWN,
    WIRE_PROPOSED_ACCEPTED,
    WIRE_PROPOSED_REJECTED,
    WIRE_PROPOSED_ALLOWED, /* the policy allows it as it is */
    WIRE_PROPOSED_FULL,
    WIRE_PROPOSED_NO_RULE, /* it cannot be written as one */
    WIRE_PROPOSED_ENDS
};
enum wire_log_said { WIRE_LOG_FAILED = 0, WIRE_LOG_GOOD, WIRE_LOG_BAD };

enum wire_type {
    /* ---- control channel, parent to any role and back ---- */
    /* P→role: first message, role-specific (below). role→P: W_READY {} or W_FAILED. */
    W_INIT = 1,
    W_READY = 2,     /* role→P: fields role-specific (below), usually none */
    W_FAILED = 3,    /* role→P: text:str; the role exits after it */
    W_PEER = 4,      /* P→role: a new channel: kind:u8(enum role of the far end), channel:u32,
                        sandbox:str, policy:str, generation:u32, wire:u32, extra:bytes, fd */
    W_LOG = 5,       /* role→P: level:u8, text:str (diagnostics to the operator's stderr) */
    W_POLICY = 6,    /* P→role: policy:str, generation:u32, fd: image memfd (policy_image.h; of
                        the controller: configuration JSON) (reload; to the dialer and the signer
                        before each W_PEER of that policy) */
    W_PEER_GONE = 7, /* P→role: channel:u32; forget it */
    W_TRUST = 12,    /* P→C: ca_pem:bytes (one, or both of a change), dir:str, event:str,
                        detail:str (for the log; "" when nothing is to be recorded) */
    W_PORT_OPEN = 9, /* C→P: req:u32, address:str (IP), port:u32 (0: any free one): listen there */
    W_PORT_OPENED = 10, /* P→C: req:u32, ok:u8, text:str ("127.0.0.1:8080", or why not), fd if ok */
    W_PORT_OWN = 14, /* C→P: port:u32, on:u8: `run` publishes there; or what W_PORT_OPENED gave is
                        closed. P→D: n × port:u32: all that are published now */
    W_LOST = 13,     /* role→P: channel:u32: it ended here */
    W_ROLE_ENDED = 15, /* P→C: sandbox:str, text:str ("gate: assertion failed"): it was not told to,
                          and another is started; for the log */
    W_REVOKED = 8, /* C→P, P→G D I: tokens that are good no longer; see proxy/identity/revoked.h */
    W_REVOKED_TAKEN = 16, /* C→P: id:str: has each role taken what was said before? P→G D I: n:u32,
                             and n:u32 back; P→C: id:str: they have, or a second is over */
    W_REVOKED_UNTIL = 17, /* C→P, P→G D I: us:u64 of CLOCK_BOOTTIME: up to then what the fleet has
                             revoked is known; after it no token is taken */

    /* W_INIT of each role:
     * S: create:u8, leaf_hours:u32, mints:u32, api:str (our API's own name, ""), fds: key, cert
     *    (read-write only when create), secret of the sandboxes' CAs (ca/sandbox_ca.h).
     *    READY: cert_pem:bytes
     *    W_PEER of a gate or the controller: extra = which names (ca/mint_names.h)
     * V: n × (name:str, store:u8, ttl:u32, lines:u8, and for a derived secret what it is made of,
     *    rules/compile/derived_spec.h), fd: env memfd (secrets/proto/env_block.h)
     *    W_PEER of an injector or the dialer: extra = names of the secrets it may have
     *    (secrets/proto/secret_list.h)
     * L: durability:u8, subdir:str ("" or run-…), rotate_bytes:u64, rotate_seconds:u64 (0: any),
     *    compress:u8, keep_bytes:u64, keep_seconds:u64 (0: any), share_burst:u64, share_rate:u64
     *    (bytes, a second), anchored:u8,
     *    n × (measure:u8, limit:u64, seconds:u32, then:u8) thresholds, host:str (of the fleet; "":
     *    none), every:u32 (s), n × (host:str, public key:bytes), fd: audit directory
     *    W_PEER of the fleet's role: no writer, but the way to the other hosts' heads
     * D: n × (host:str, port:u32, address:str) resolve entries, n × address:str denied beside the
     *    guard's own list, n × port:u32 of our own listeners, upstream proxy
     * (proxy/dialer/dialer.h), dial_seconds:u32, token_public:bytes, synced:u8, hold:u32 (of the
     * fleet's shares, seconds; 0: none), fds: roots memfd
     * when that proxy is https, budgets memfd W_PEER of a gate: extra = "token" for the gate of a
     * listener whose clients need one G: limits:bytes(struct limits), synced:u8, fd: roots memfd I:
     * limits:bytes, synced:u8, policy:str, generation:u32, several:u8 (it may not be the only one
     * of its policy), token_public:bytes, fds: policy image memfd, roots memfd W_PEER of a gate:
     * extra = "token" when its requests must carry one K: limits:bytes, EXPORTER_PLACES × url:str
     * ("": none), again:u8, fd: roots memfd C: see controller/controller.h B: (a front of a broker:
     * limits:bytes, synced:u8, key:bytes (what its host key is made of), policy:str,
     * generation:u32, fd: policy image memfd; a back the same without key, and fd: roots memfd)
     * fleet: limits:bytes, host:str, port:u32, database:str, login:str (a secret's name), fd: roots
     * memfd; W_PEER of a vault, of the dialer twice: policy PEER_FLEET (it dials), and "" (shares)
     * state_dir:str, roots_dir:str (ca/trust.h), init_path:str (the program durward-init), binds:u8
     */

    /* ---- gate ↔ signer ---- */
    W_MINT = 20, /* G→S: req:u32, host:str (canonical; IPv6 without brackets), spki:bytes (DER) */
    W_MINTED = 21,    /* S→G: req:u32, leaf:bytes (DER), issuer:bytes (DER) */
    W_MINT_FAIL = 22, /* S→G: req:u32, text:str */
    W_ROOT = 23, /* the root of a local sandbox's own CA. P→S: sandbox:str; S→P P→B, B→launcher:
                    sandbox:str, root:bytes (ca/trust_root.h; "" from S: there is none) */

    /* ---- gate or injector ↔ dialer; the first three and the cancelling also gate ↔ controller, on
     * a channel of its own, for connections into its sandbox (host: a preview's name) ---- */
    W_DIAL = 30,   /* →D: req:u32, scheme:u8, host:str, port:u32, id:str (request id), token:str,
                      owner:str (who of those that share the channel, "": nobody else does) */
    W_DIALED = 31, /* D→: req:u32, address:str ("192.0.2.1:443"), fd (connected) */
    W_DIAL_FAIL = 32,   /* D→: req:u32, code:str (constant: "denied", "blocked_ip", "resolve",
                           "connect", "timeout", "overload", "audit", "upstream_proxy"), text:str */
    W_DIAL_CANCEL = 33, /* →D: req:u32 */
    /* budgets, on the same channel (proxy/link/budget_ledger.h) */
    W_BUDGET_ASK = 34, /* →D: lease:u32, key:u64 (0: the policy's alone), request:u8 (one more),
                          need:u64 (bytes up, at once), up:u8, down:u8 (a portion of each);
                          of an injector, for a call to a model: tokens:u64, cost:u64 (millionths),
                          sandbox:str (not empty: it is one); for a call of an MCP tool: its
                          sandbox:str, and tool:u64 (the key of its budget; 0: none) */
    W_BUDGET = 35, /* D→: lease:u32, end:u8 (enum budget_end), up:u64, down:u64, retry:u32 (s) */
    W_BUDGET_BACK = 36,   /* →D: lease:u32, up:u64, down:u64: not used; the lease is over */
    W_BUDGET_SETTLE = 37, /* →D, of injectors: lease:u32, key:u64, sandbox:str, tokens:u64, cost:u64
                             (as asked), tokens:u64, cost:u64 (as taken); before W_BUDGET_BACK */

    /* ---- logger ↔ fleet: what hosts say of their logs (audit/read/fleet_head.h) ---- */
    W_FLEET_HEADS_ASK = 260, /* L→F: ask:u32, n:u32, n × (host:str, after:u64 (the number)) */
    W_FLEET_HEADS_ROW = 261, /* F→L: ask:u32, "HOST NUMBER LINE":bytes (FLEET_PAGE at most) */
    W_FLEET_HEADS_END = 262, /* F→L: ask:u32, ok:u8: that was all; or the database is not there */
    W_FLEET_HEADS_PUT = 263, /* L→F: host:str, number:u64, line:str */
    W_FLEET_KNOWN_ASK = 264, /* C→L: {}: what is known of the logs of the fleet's hosts? */
    W_FLEET_KNOWN = 265,     /* L→C, of each host: host:str, number:u64 (of its latest head; 0:
                                none), seq:u64, heard:u64 (ns), n × (what:str, text:str): what does
                                not agree (audit/read/witness_problem.h) */

    /* ---- dialer ↔ fleet: shares of the fleet's budgets (proxy/link/budget_share.h,
     * fleet/README.md)
     * ---- */
    W_FLEET_HOLDER = 230, /* D→F: holder:str (this host's name of its own making), known:u8 (the
                             database has had it), hold:u32 (seconds of a lease) */
    W_FLEET_UP = 231,   /* F→D: {}: the database has the holder now: ask, and say what is held */
    W_FLEET_LOST = 232, /* F→D: {}: its shares have been given to others */
    W_FLEET_BEAT = 233, /* D→F: number:u32: it is alive */
    W_FLEET_BEATEN = 234, /* F→D: number:u32: the database has that: the lease lasts from then on */
    W_FLEET_ASK = 235,   /* D→F: number:u32, policy:str, key:u64, whose:u64, kind:u8, seconds:u32,
                            amount:u64 (the limit), held:u64, need:u64 (somebody waits for so much
                            in all; 0: nobody does), want:u64 */
    W_FLEET_SHARE = 236, /* F→D: number:u32, held:u64: from now on */
    W_FLEET_WANTED = 237, /* F→D: {}: another host needs what this one does not use */
    W_FLEET_LEAVE = 238,  /* D→F: {}: it ends, and holds only what it has used up */

    /* ---- controller ↔ fleet: notes that all hosts of a fleet see (fleet/notes.h) ---- */
    W_NOTES_UP = 250, /* F→C: {}: there is another connection: put, and read from the beginning */
    W_NOTES_HINT = 251, /* F→C: {}: there may be new ones */
    W_NOTES_ASK = 252,  /* C→F: number:u32, after:u64: what came after that one */
    W_NOTE = 253, /* F→C: place:u64, kind:str, id:str, body:str; of an answer to W_NOTES_ASK */
    W_NOTES_READ = 254, /* F→C: number:u32, more:u8: the answer is over; 1: there are others; 2:
                             it failed, or a row cannot be read */
    W_NOTE_PUT = 255,  /* C→F: number:u32, kind:str, id:str, body:str, seconds:u32 (it is kept) */
    W_NOTE_KEPT = 256, /* F→C: number:u32, mine:u8 (0: there is another one of that id; 2:
                             it failed: once more) */
    W_SHARES_ASK = 257, /* C→F: {}: what does this host hold of the fleet's budgets? */
    W_SHARES = 258,     /* F→C: n × (policy:str, kind:u8, seconds:u32, amount:u64, held:u64) */

    /* ---- writer (gate, injector, dialer, controller) ↔ logger ---- */
    W_JOURNAL =
        40, /* L→: channel:u32, credit:u64 (bytes), next:u64 (first free counter of ids), fd */
    W_CREDIT = 41, /* L→: credit:u64 more bytes */
    W_TICK = 42,   /* →L: written:u64 (bytes this writer has appended so far) */
    W_SYNC = 43,   /* →L: upto:u64 (the same count; answered once those bytes are on disk) */
    W_SYNCED = 44, /* L→: upto:u64 */
    W_ANCHOR = 46, /* L→P: line:str (a checkpoint that is in the log now) */
    W_ROTATE = 47, /* P→L: {}: close the active file, begin a new one */
    W_LOGGER_FINISH =
        266,       /* P→L: {}: write what there is, and end; the last W_ANCHOR comes before */
    W_REPAIR = 45, /* →L: good:u64: a short write left part of a record after this count;
                      L→: the same: the part is cut off, the journal may be used again */

    W_PACE = 39, /* L→: on:u8, sandbox:str: its share of the log is used up, or not any more: hold
                    what it asks for. "": its own, hold what there is no credit for */
    W_CORRUPT = 38, /* L→P: channel:u32: what its writer wrote is none of what it may: end it */

    W_WATCH = 48, /* C K→L: on:u8: tell me what is written; 1: and first what was written last */
    W_WATCHED = 49, /* L→C K: part:u8, RECORD_KINDS × skipped:u64, key:bytes, lines:bytes:
                       audit/write/subscribers.h */

    /* ---- thresholds, and what the exporter carries ---- */
    W_NOTICE = 190, /* L→P: index:u32 (in audit.notify.when), value:u64, seq:u64 (of its line; 0:
                       none), request:str, sandbox:str, policy:str */
    W_ACT = 191, /* P→C: req:u32, sandbox:str, policy:str, then:u8 (enum notify_then), why:str */
    W_ACTED = 192, /* C→P: req:u32: it is done, or there is no such sandbox */
    W_NOTIFIED =
        193, /* P→C: sandbox:str, ok:u8, text:str: how a notice was delivered; for the log */
    W_SUPPRESS = 186, /* C→P, P→L: n × (policy:str, code:str, host:str, method:str, path:str,
                         sandbox:str, expires:u64): the findings that no notice counts from now on;
                         see audit/write/suppression.h */
    W_CARRY = 194,    /* P→K: req:u32, place:u8 (enum exporter_place), body:str */
    W_CARRIED = 195,  /* K→P: req:u32, ok:u8, text:str */

    /* ---- the whole log, verified ---- */
    W_VERIFY = 196,   /* C→P: {}; what runs already is waited for */
    W_VERIFIED = 197, /* P→C: ok:u8, text:str (why not), memfd if ok: what `durward audit verify
                         --json` said, of WIRE_VERIFIED_MAX bytes at most */
    W_LOG_ASK = 198,  /* C→P: req:u32, verb:u8 (0 `audit query`, 1 `audit case`), limit:u32,
                         WIRE_LOG_ASK_FIELDS × str ("": not said) */
    W_LOG_SAID = 199, /* P→C: req:u32, ok:u8 (enum wire_log_said), text:str (why not), memfd if
                         good: what the command said, of WIRE_LOG_SAID_MAX bytes at most */

    /* ---- connections to MCP servers of ours, each in a sandbox of its own ---- */
    W_MCP_DIAL = 176,   /* D→P: req:u32, sandbox:str, policy:str, server:str; P→C: who:u32 (the
                           dialer's process) before them */
    W_MCP_DIALED = 177, /* P→D: req:u32, ok:u8, text:str (why not), fd if ok; C→P: who:u32 before
                           them */

    /* ---- what roles count (lib/meter.h, audit/write/counts.h) ---- */
    W_METERS = 170, /* role→P: struct meters, at most once a second */
    W_COUNTS = 171, /* L→P: n × (kind:u8, policy:str, code:str, records:u64, count:u64, up:u64,
                       down:u64), at most once a second: audit/write/counts.h */
    W_METERS_ALL = 172, /* C→P: {}; P→C: n × (role:u8, processes:u32, starts:u64, rss:u64 (bytes),
                           cpu_ms:u64, struct meters), generation:u32, then as W_COUNTS */

    /* ---- steps of traced requests (lib/trace.h) ---- */
    W_TRACE = 173,  /* C→P, P→G: sandbox:str, session:u64 (0: no more), seconds:u32 */
    W_TRACED = 174, /* role→P: session:u64, begun:u64, us:u64, step:str, text:str; P→C: the same
                       after role:u8 */
    W_TRACING = 175, /* G→I D, I→V D: req:u32 (of the request that comes next on this channel; to D,
                        that came before), session:u64, begun:u64 */

    /* ---- injector ↔ vault ---- */
    W_SECRET_GET = 50, /* I→V: req:u32, name:str */
    W_SECRET = 51, /* V→I: req:u32, ok:u8 (2: and another can be made of it), ttl:u32 (seconds it
                      may be used), value:bytes or text */
    W_SECRET_REFUSED = 226, /* I→V: req:u32, name:str, sent:str (SHA-256 of the value that a server
                              refused) */
    W_SECRET_RENEWED = 227, /* V→I: req:u32, ok:u8: there is another value */
    W_SECRET_STALE = 52,    /* V→I: name:str; forget it */
    W_SIGN = 56,      /* I→V: req:u32, name:str, sandbox:str (whose captured one it is; else ""),
                         key_id:str, time:str, region:str, service:str,      hash:str, text:u8 (what it
                         is of;      secrets/proto/aws_sign.h), previous:str      (signature of the
                         request or      chunk      before; ""      for a request) */
    W_SIGN_TEXT = 59, /* I→V: req:u32, name:str, sandbox:str (for whom), scheme:u32 (of TLS, else
                         0), text:bytes */
    W_SIGNED = 57,    /* V→I: req:u32, ok:u8, signature:bytes or text */
    W_CAPTURE = 155,  /* I→V: req:u32, sandbox:str, n × (path:str, secret:str, placeholder:str),
                         form:u8 (secrets/vault/captured.h), body:bytes (of a reply) */
    W_CAPTURED_GET = 156, /* I→V: req:u32, sandbox:str, secret:str */
    W_CAPTURED = 157, /* V→I: req:u32, ok:u8, body:bytes (rewritten; or the secret) or text, n × the
                         values taken out:bytes */
    W_CAPTURED_ALL = 159, /* I→V: req:u32, secret:str: what any sandbox of the policy has captured;
                             W_CAPTURED answers, without a body */
    /* vault ↔ parent: the vault has neither open nor exec */
    W_STORE_OPEN = 53, /* V→P: req:u32, secret:str */
    W_STORE_FD = 54,   /* P→V: req:u32, ok:u8, text:str (why not; of an agent which key), fd if ok
                        * (file, the command's stdout, or a connection to the agent) */
    W_STORE_EXIT = 55, /* P→V: req:u32, status:u32 (wait status of the command) */
    W_STORE_CHANGED = 58, /* P→V: secret:str: its file may have another content now */

    W_CAPTURED_GONE = 158, /* P→V: sandbox:str: it is gone, and so are its captured secrets */
    W_HOME = 217, /* P→V: sandbox:str, policy:str, kept:bytes (secrets/proto/capture.h): whose
                     captured secrets go into the kept home, and those that are there */
    W_HOME_KEEP = 218, /* V→P: req:u32, n × secret:str (what was captured now), kept:bytes */
    W_HOME_KEPT = 219, /* P→V: req:u32, ok:u8 */
    W_LOGIN_CAPTURED = 220, /* P→C: sandbox:str, n × secret:str: for the log */
    W_STORE_STATE = 182, /* V→P→C: secret:str, ok:u8, text:str: it cannot be read, or can again */

    W_SECRET_TRY = 180,   /* CLI→P→V: req:u32, secret:str: read it */
    W_SECRET_TRIED = 181, /* V→P→CLI: req:u32, ok:u8, bytes:u32 (how long it is), text:str */

    W_VAULT_ROOTS = 150,  /* P→V: limits:bytes, fd: roots memfd */
    W_VAULT_FINISH = 185, /* P→V: end, once no refresh token is being replaced */
    W_TOKEN_SAVE = 151,  /* V→P: req:u32, secret:str, value:bytes: a refresh token, into a file */
    W_TOKEN_SAVED = 152, /* P→V: req:u32, ok:u8 */
    W_TOKEN_GET = 153,   /* V→P: req:u32, secret:str */
    W_TOKEN_FOUND = 154, /* P→V: req:u32, value:bytes (empty: there is none) */

    /* a login that another program keeps in a file, refreshed (secrets/parent/login_lock.h) */
    W_LOGIN_LOCK = 165,   /* V→P: req:u32, secret:str (of the file): I am going to */
    W_LOGIN_LOCKED = 166, /* P→V: req:u32, end:u8 (0: another holds it, 1: locked; session:bytes
                             as it is now. 2: it cannot be locked or read; text) */
    W_LOGIN_SAVE = 167, /* V→P: req:u32, secret:str, access:bytes, refresh:bytes (one may be empty:
                           the same), expires:u64 (s, of access): write these, let go of the lock */
    W_LOGIN_SAVED = 168,  /* P→V: req:u32, ok:u8, text:str */
    W_LOGIN_UNLOCK = 169, /* V→P: secret:str: nothing came of it */

    /* ---- gate ↔ injector: one exchange is one u32 id, chosen by the gate ---- */
    W_INJECTOR_CHANNEL_REQUEST = 60, /* G→I: see proxy/link/injector_channel.h */
    W_INJECTOR_CHANNEL_BODY = 61,    /* both: exchange:u32, bytes */
    W_INJECTOR_CHANNEL_END = 62,     /* both: exchange:u32 (the message is whole) */
    W_INJECTOR_CHANNEL_REPLY = 63,   /* I→G: see proxy/link/injector_channel.h */
    W_INJECTOR_CHANNEL_FAIL =
        64, /* I→G: exchange:u32, status:u32, code:str, id:str, retry:u32 (s) */
    W_INJECTOR_CHANNEL_ABORT =
        65, /* G→I: exchange:u32, code:str; answered by W_INJECTOR_CHANNEL_FAIL with the id */
    W_INJECTOR_CHANNEL_CREDIT = 66, /* both: exchange:u32, bytes:u32 */
    W_INJECTOR_CHANNEL_TRAILERS =
        67, /* I→G: exchange:u32 n × (name, value); before W_INJECTOR_CHANNEL_END */
    W_INJECTOR_CHANNEL_FOUND =
        68, /* G→I: exchange:u32, patterns:str: what detectors found in the body, for the record */

    /* ---- injector ↔ controller ---- */
    W_PENDING_APPROVAL =
        160, /* I→C: a request waits for somebody's word; see proxy/link/pending_approval.h */
    W_PENDING_APPROVAL_ANSWER = 161, /* C→I: req:u32, end:u8 (enum pending_approval_end), who:str */
    W_PENDING_APPROVAL_OVER = 162,   /* I→C: req:u32: no answer is needed any more */
    W_KILL = 163,                    /* I→C: sandbox:str, why:str: it is to end */
    W_CALLED = 164, /* I→C: sandbox:str, tokens_in:u64, tokens_out:u64, cost:u64 (millionths): a
                       call to a model is over */

    /* ---- parent ↔ gate ---- */
    W_FORWARDED = 79, /* P→G: json:bytes (proxy/identity/oidc.h); before W_BIND, and at a reload */
    W_BIND = 80,      /* P→G: once; see proxy/link/bind.h */
    W_BOUND = 81,     /* G→P: {} */
    W_PLACEHOLDERS = 82, /* P→G: n × (placeholder:str, secret:str), in place of those it had */
    W_DRAIN = 83,        /* P→G: {}: stop accepting; end when the last session has ended */

    /* ---- gate ↔ controller ---- */
    W_NAME = 90,    /* G→C: req:u32, host:str; C→G: req:u32, host:str, index:u32 (0: refused) */
    W_PROPOSE = 92, /* G→C: req:u32, method:str, scheme:str, authority:str, path:str, reason:str:
                       the sandbox asks its operator for it */
    /* previews (controller/sandbox/previews.h); the first two of the listener's gate */
    W_PORTER = 94,      /* G→C: http1:u8, name:str (as its first request says it), fd: somebody's
                         connection, of which nothing was read */
    W_TURNED_AWAY = 95, /* C→G: http1:u8, name:str, code:str, fd: nobody takes it, tell them so */
    W_INBOUND = 96,     /* C→G: host:str, port:u32, tls:u8 (of the name as browsers see it),
                           service:str, fd: a connection to that service of the gate's sandbox */
    W_PREVIEW =
        97, /* G→C: req:u32, service:str, once:u8 (it is a link's), token:str: is it good? */
    W_PREVIEW_SAID = 98, /* C→G: req:u32, seconds:u32 (0: it is not) */
    W_PREVIEW_USED = 99, /* G→C: {}: somebody sees one; at most once a second */
    W_PREVIEWS = 88,     /* C→G: on:u8, n × (service:str, port:u32): these, and any port by its
                            number, may be seen from now on; whoever sees another is sent away */
    W_PREVIEW_END = 89,  /* C→G: service:str ("": all): whoever was let in to it is sent away */
    W_PROPOSED = 93,     /* C→G: req:u32, end:u8 (enum wire_proposed), id:str */
    W_DENIED = 91, /* G→C: code:str, target:str, count:u32, failed:u8 (1: not refused, failed) */

    /* ---- builder, controller, parent ---- */
    W_BUILD = 100,     /* C→B: see controller/proto/build.h */
    W_LISTENERS = 101, /* B→P: sandbox:str, n × (kind:u8, port:u32) and as many fds; nflog last */
    W_LISTENERS_OK = 102, /* P→B: sandbox:str, ok:u8, text:str */
    W_BUILT = 103,        /* B→C: sandbox:str, ok:u8, text:str, fd (init socket) if ok */
    W_TEARDOWN = 104,     /* C→B: sandbox:str */
    W_TORN = 105,         /* B→C: sandbox:str */
    W_SANDBOX = 106,      /* C→P: sandbox:str, policy:str, n × (placeholder:str, secret:str),
                             key:bytes (a local one's: what its brokers' host keys are made of),
                             labels as W_LABELS */
    W_SANDBOX_GONE = 107, /* C→P: sandbox:str; P→D: it counts nothing for it any more */
    W_LABELS = 113,       /* C→P, P→D: sandbox:str, n × (key:str, number:u64 (of its value)): a
                             local sandbox has these labels from now on (sandbox_labels.h) */
    W_KEEP = 108,         /* C→B: sandbox:str: it outlives this channel by BUILDER_KEEP_SECONDS */
    W_ADOPT = 109,        /* C→B: sandbox:str, one that was kept: answered by W_BUILT */

    W_LAYER = 110, /* C→B: see controller/proto/layer_work.h: copy or remove what sandboxes wrote */
    W_LAYERED = 111, /* B→C: req:u32, result:u8, text:str */
    W_FREEZE = 112,  /* C→B: req:u32, sandbox:str, frozen:u8; answered by W_LAYERED */

    /* ---- CLI or API ↔ controller ---- */
    W_RUN = 120,           /* CLI→C: see controller/proto/run.h */
    W_RUN_STARTED = 121,   /* C→CLI: sandbox:str, tty:u8, masked:str, fd pty master if tty */
    W_RUN_EXIT = 122,      /* C→CLI: status:u32 (exit code as run.h), text:str (why, if ours),
                              n × (code:str, target:str, count:u32) denials, sandbox:str */
    W_RUN_SIGNAL = 123,    /* CLI→C: signal:u32 */
    W_RUN_WINSIZE = 124,   /* CLI→C: rows:u32, cols:u32 */
    W_RUN_PUBLISHED = 130, /* CLI→C: address:str, port:u32: that port inside is reached there */
    W_RUN_CONNECT = 131,   /* CLI→C: number:u32 (not 0), port:u32: a connection to it */
    W_RUN_CONNECTED = 132, /* C→CLI: number:u32, ok:u8, fd if ok */
    W_HELD = 127, /* C→CLI: a request waits for its user; see controller/sandbox/approvals.h */
    W_HELD_OVER = 128, /* C→CLI: id:str: no answer is needed any more */
    W_DECIDE = 129,    /* CLI→C: id:str, allow:u8 */
    W_RELOAD = 125,    /* C→P: {}; P→C: ok:u8, text:str */
    W_STATUS = 126,    /* C→P: {}; P→C: audit_dir:str, socket:str, n × (role:str, pid:u32,
                          sandbox:str) */

    /* ---- controller (outside) ↔ durward-init (inside) ----
     * number:u32 names a command; the controller chooses it and uses none twice. */
    W_INIT_EXEC = 140,    /* →init: number:u32, argv n × str, env n × str, cwd:str,
                             stdio:u8 (controller/proto/command.h), rows:u32, cols:u32, script:u8;
                             fds: stdin, stdout, stderr if given ones are asked for; the script, which
                             the last word of argv then stands for */
    W_INIT_STARTED = 141, /* init→: number:u32, n:u32 and as many fds: our ends of what it made:
                             terminal (one), or stdin if asked for, stdout, stderr if apart */
    W_INIT_EXIT = 142,    /* init→: number:u32, status:u32 (exit code as run.h; of a file
                             operation an errno), text:str */
    W_INIT_SIGNAL = 143,  /* →init: number:u32, signal:u32 (to the command's process group) */
    W_INIT_WINSIZE = 144, /* →init: number:u32, rows:u32, cols:u32 */
    W_INIT_READY = 145,   /* init→: self-test: ok:u8, n × (probe:str, ok:u8, detail:str). The
                             builder waits for it but leaves it in the socket for C, as the first
                             message of the descriptor in W_BUILT */
    W_INIT_RESET = 146,   /* →init: {}: a new controller: kill what runs; init→: {}: done, and
                             all that was said before is not for you */
    W_INIT_FILE = 147, /* →init: number:u32, op:u8 (controller/proto/inside.h), path:str, mode:u32,
                          version:str ("": whatever it is). Answered by W_INIT_STARTED (the pipe),
                          then W_INIT_EXIT */
    W_INIT_CONNECT = 148,  /* →init: number:u32, port:u32: a connection to the sandbox's loopback;
                              W_INIT_STARTED (the socket), then W_INIT_EXIT */
    W_INIT_WATCH = 139,    /* →init: number:u32, path:str, n:u32, n × name:str (not looked at):
                              events below a directory (controller/proto/inside.h);
                              W_INIT_STARTED (the pipe), then W_INIT_EXIT (an errno) */
    W_INIT_HANDOVER = 149, /* launcher→init in a container, on a socket of its own: fds: the
                              descriptor that all else here is said on, the seccomp program */

    /* ---- pods of a Kubernetes node: controller/proto/pod.h ---- */
    W_POD = 210,       /* plugin→C: see there */
    W_POD_DONE = 211,  /* C→plugin: end:u8 (enum pod_end), text:str, dir:str (of its volume; "":
                          none), n × env:str */
    W_POD_ASK = 213,   /* plugin→durward-kubernetes: namespace:str name:str uid:str: what does the
                          API server say of this pod? */
    W_POD_FACTS = 214, /* durward-kubernetes→plugin: known:u8; 1: facts (pod.h); 0: why:str */
    W_POD_BOUND = 215, /* plugin→durward-kubernetes: namespace:str name:str uid:str what:str: say so
                          in an event of the pod; not answered */
    W_POD_INBOUND = 212, /* keeper→C, as durward-init's end of its socket: n × (from:u32 (IPv4),
                            port:u32, count:u32, refused:u8): who connected to the pod, or what of
                            the pod's was refused beyond its own network (then where to) */

    /* ---- brokers: broker/link/README.md ---- */
    W_BROKER_ACCEPT = 200, /* G→front: host:str, port:u32, fd: the sandbox connected there */
    W_BROKER_OPEN = 201, /* front→back: host:str, port:u32, facts:bytes (the broker's own), fd: the
                            request's stream (broker/link/broker_stream.h) */
};

#endif
