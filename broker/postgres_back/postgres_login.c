/* A login: what the server asks for, proofs of the vault's, what the server must report, what a
 * read-only login must not be able to do there, and which role it has. */
#include "postgres_back.h"

#include "base64.h"

#include <openssl/objects.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

/* Of AuthenticationXXX. */
enum {
    AUTHENTICATION_OK = 0,
    AUTHENTICATION_CLEARTEXT = 3,
    AUTHENTICATION_MD5 = 5,
    AUTHENTICATION_SASL = 10,
    AUTHENTICATION_SASL_CONTINUE = 11,
    AUTHENTICATION_SASL_FINAL = 12,
};

/* As secrets/vault/scram_proof.h numbers them. */
enum { PROOF_SCRAM = 1, PROOF_MD5, PROOF_CLEARTEXT };

static const struct postgres_terms *terms_of(const struct postgres_session *s)
{
    return s->request.rule->postgres;
}

static int refuse(struct postgres_session *s, const char *code, const char *text)
{
    postgres_session_refuse(s, code, text);
    return -1;
}

/* ---- the startup ---- */

static int put_startup(const struct postgres_session *s, struct buf *out)
{
    const struct postgres_terms *t = terms_of(s);
    char name[POSTGRES_NAME_MAX + 1];
    size_t from = buf_len(out);
    snprintf(name, sizeof name, "durward/%.50s", s->request.sandbox);
    if (postgres_startup_begin(out) < 0 ||
        postgres_startup_put(out, SLICE("user"), slice_str(s->user)) < 0 ||
        postgres_startup_put(out, SLICE("database"), slice_str(s->database)) < 0 ||
        postgres_startup_put(out, SLICE("application_name"), slice_str(name)) < 0 ||
        postgres_startup_put(out, SLICE("client_encoding"), SLICE("UTF8")) < 0 ||
        postgres_startup_put(out, SLICE("standard_conforming_strings"), SLICE("on")) < 0 ||
        (t->role && postgres_startup_put(out, SLICE("role"), slice_str(t->role)) < 0) ||
        (t->read_only &&
         postgres_startup_put(out, SLICE("default_transaction_read_only"), SLICE("on")) < 0) ||
        buf_append_slice(out, buf_slice(&s->settings)) < 0)
        return -1;
    return postgres_startup_end(out, from);
}

int postgres_login_begin(struct postgres_session *s)
{
    if (put_startup(s, io_out(s->link.io)) < 0)
        return refuse(s, "postgres_settings", "the session's settings are too long");
    io_flush_soon(s->link.io);
    return 0;
}

/* ---- proofs ---- */

/* The hash of the server's certificate (RFC 5929 4.1); n 0: none is defined for its signature. */
static size_t binding_of(SSL *ssl, unsigned char to[SCRAM_BINDING_MAX])
{
    X509 *leaf = SSL_get1_peer_certificate(ssl);
    int digest = NID_undef;
    unsigned n = 0;
    if (leaf == NULL || X509_get_signature_info(leaf, &digest, NULL, NULL, NULL) != 1)
        digest = NID_undef;
    if (digest == NID_md5 || digest == NID_sha1)
        digest = NID_sha256;
    const EVP_MD *md = digest == NID_undef ? NULL : EVP_get_digestbynid(digest);
    if (md == NULL || EVP_MD_get_size(md) > SCRAM_BINDING_MAX || X509_digest(leaf, md, to, &n) != 1)
        n = 0;
    X509_free(leaf);
    return n;
}

static int put_message(struct postgres_session *s, struct slice body)
{
    if (postgres_put(io_out(s->link.io), 'p', body) < 0)
        return refuse(s, "upstream_protocol", "the login is too long");
    io_flush_soon(s->link.io);
    return 0;
}

static void on_proof(void *arg, struct slice proof, const struct err *err)
{
    struct postgres_session *s = arg;
    struct buf out;
    s->proof = NULL;
    if (proof.n == 0 || (s->in_scram && proof.n != SCRAM_SIGNED)) {
        (void)refuse(s, "secret_unavailable", err ? err->text : "the vault gave no proof");
        return;
    }
    buf_init_wiped(&out, 8192);
    s->answered = true;
    int r;
    if (s->in_scram) {
        memcpy(s->signature, proof.p + SCRAM_HASH, SCRAM_HASH);
        r = scram_final(&s->scram, (const unsigned char *)proof.p, &out);
    } else {
        r = postgres_put_text(&out, proof);
    }
    if (r < 0)
        (void)refuse(s, "upstream_protocol", "the login is too long");
    else
        (void)put_message(s, buf_slice(&out));
    buf_free(&out);
}

static int ask_proof(struct postgres_session *s, uint32_t scheme, struct slice text)
{
    if (s->proof)
        return refuse(s, "upstream_protocol", "the server asks twice for a proof");
    struct sign_wait *w =
        secret_client_sign_text(s->of->back->secrets, s->request.sandbox,
                                s->request.rule->credential->secret, scheme, text, on_proof, s);
    if (w == NULL)
        return -1; /* on_proof ran, and may have ended the session */
    s->proof = w;
    return 0;
}

/* SCRAM's first message, by the strongest that both have. */
static int begin_scram(struct postgres_session *s, struct slice names)
{
    unsigned char bound[SCRAM_BINDING_MAX], random[SCRAM_NONCE / 4 * 3];
    struct slice name;
    struct buf nonce, first, out;
    bool plus = false, plain = false;
    while (postgres_take_text(&names, &name) == 0 && name.n > 0) {
        plus = plus || slice_eq_str(name, "SCRAM-SHA-256-PLUS");
        plain = plain || slice_eq_str(name, "SCRAM-SHA-256");
    }
    size_t n = binding_of(io_ssl(s->link.io), bound);
    plus = plus && n > 0;
    if (s->proof)
        return refuse(s, "upstream_protocol", "the server asks twice for a proof");
    if ((!plus && !plain) || s->in_scram)
        return refuse(s, "upstream_protocol", "the server offers no login that is known here");
    buf_init(&nonce, SCRAM_NONCE + 1);
    buf_init(&first, 200);
    buf_init(&out, 300);
    int r = RAND_bytes(random, sizeof random) != 1 ||
                    base64_append(&nonce, (struct slice){(char *)random, sizeof random}) < 0 ||
                    buf_append(&nonce, "", 1) < 0
                ? -1
                : 0;
    if (r == 0) {
        scram_init(&s->scram, (const char *)buf_data(&nonce),
                   plus ? SCRAM_BOUND
                   : n  ? SCRAM_UNOFFERED
                        : SCRAM_UNBOUND,
                   (struct slice){(char *)bound, plus ? n : 0});
        s->in_scram = true;
        r = scram_first(&s->scram, &first) < 0 ||
                    postgres_put_text(&out, plus ? SLICE("SCRAM-SHA-256-PLUS")
                                                 : SLICE("SCRAM-SHA-256")) < 0 ||
                    postgres_put_u32(&out, (uint32_t)buf_len(&first)) < 0 ||
                    buf_append_slice(&out, buf_slice(&first)) < 0
                ? -1
                : 0;
    }
    r = r < 0 ? refuse(s, "memory", "") : put_message(s, buf_slice(&out));
    buf_free(&nonce);
    buf_free(&first);
    buf_free(&out);
    return r;
}

static int on_authentication(struct postgres_session *s, struct slice body)
{
    uint32_t code;
    struct err err = {.text = ""};
    if (postgres_take_u32(&body, &code) < 0)
        return refuse(s, "upstream_protocol", "the server's question cannot be read");
    switch (code) {
    case AUTHENTICATION_OK:
        if ((s->in_scram && !s->proven) || s->proof)
            return refuse(s, "upstream_protocol", "the server ends the login before its own proof");
        s->state = SESSION_STARTING;
        return 0;
    case AUTHENTICATION_CLEARTEXT:
        return ask_proof(s, PROOF_CLEARTEXT, SLICE(""));
    case AUTHENTICATION_MD5:
        return body.n == 4 ? ask_proof(s, PROOF_MD5, body)
                           : refuse(s, "upstream_protocol", "the server's salt cannot be read");
    case AUTHENTICATION_SASL:
        return begin_scram(s, body);
    case AUTHENTICATION_SASL_CONTINUE:
        if (!s->in_scram || scram_text(&s->scram).n > 0)
            return refuse(s, "upstream_protocol", "the server goes on with no login");
        if (scram_server_first(&s->scram, body, &err) < 0)
            return refuse(s, "upstream_login", err.text);
        return ask_proof(s, PROOF_SCRAM, scram_text(&s->scram));
    case AUTHENTICATION_SASL_FINAL:
        if (!s->in_scram || scram_text(&s->scram).n == 0 || s->proof)
            return refuse(s, "upstream_protocol", "the server goes on with no login");
        if (scram_server_final(body, s->signature, &err) < 0)
            return refuse(s, "upstream_login", err.text);
        s->proven = true;
        return 0;
    default:
        return refuse(s, "upstream_login", "the server wants a login that is not known here");
    }
}

/* ---- what it reports ---- */

const char *postgres_login_reported(struct postgres_session *s, struct slice body)
{
    const struct postgres_terms *t = terms_of(s);
    struct slice name, value;
    if (postgres_take_text(&body, &name) < 0 || postgres_take_text(&body, &value) < 0)
        return "it cannot be read";
    if (slice_eq_str(name, "standard_conforming_strings") && !slice_eq_str(value, "on"))
        return "standard_conforming_strings is off";
    if (slice_eq_str(name, "client_encoding") && !slice_eq_str(value, "UTF8"))
        return "client_encoding is not UTF8";
    if (slice_eq_str(name, "session_authorization") && !slice_eq_str(value, s->user) && t->role)
        return "session_authorization is another one";
    if (slice_eq_str(name, "default_transaction_read_only") && t->read_only &&
        !slice_eq_str(value, "on"))
        return "default_transaction_read_only is off";
    if (slice_eq_str(name, "is_superuser") && t->role) {
        bool is = slice_eq_str(value, "on");
        if (s->has_superuser && s->superuser != is)
            return "is_superuser is another one";
        s->superuser = is;
        s->has_superuser = true;
    }
    return NULL;
}

/* ---- what a read-only login may write ---- */

#define ROLES    " FROM pg_roles r WHERE pg_has_role(session_user, r.oid, 'MEMBER') AND "
#define EACH(of) " FROM pg_roles r, " of " WHERE pg_has_role(session_user, r.oid, 'MEMBER') AND "
#define OWN      " n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND "

/* One row of one value: what it may do, or NULL. */
static const char check_text[] =
    "BEGIN TRANSACTION READ ONLY; SET LOCAL search_path TO pg_catalog, pg_temp;"
    "SELECT coalesce("
    "(SELECT format('role %I is a superuser, or makes roles or databases, or replicates', "
    "r.rolname)" ROLES
    "(r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication) LIMIT 1),"
    "(SELECT format('it has the role %I', r.rolname)" ROLES
    "r.rolname IN ('pg_write_all_data', 'pg_write_server_files', 'pg_read_server_files', "
    "'pg_execute_server_program', 'pg_database_owner', 'pg_maintain', 'pg_create_subscription') "
    "AND (r.rolname <> 'pg_database_owner' OR (SELECT pg_has_role(session_user, d.datdba, "
    "'MEMBER') "
    "FROM pg_database d WHERE d.datname = current_database())) LIMIT 1),"
    "(SELECT format('role %I may write to %I.%I', r.rolname, n.nspname, c.relname)" EACH(
        "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace") OWN
    "c.relkind IN ('r', 'p', 'v', 'f', 'm') AND (has_table_privilege(r.oid, c.oid, "
    "'INSERT, UPDATE, DELETE, TRUNCATE') OR has_any_column_privilege(r.oid, c.oid, "
    "'INSERT, UPDATE')) LIMIT 1),"
    "(SELECT format('role %I may set the sequence %I.%I', r.rolname, n.nspname, c.relname)" EACH(
        "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace") OWN
    "c.relkind = 'S' AND has_sequence_privilege(r.oid, c.oid, 'USAGE, UPDATE') LIMIT 1),"
    "(SELECT format('role %I may create in schema %I', r.rolname, n.nspname)" EACH("pg_namespace n")
        OWN "has_schema_privilege(r.oid, n.oid, 'CREATE') LIMIT 1),"
            "(SELECT format('role %I may create schemas', r.rolname)" ROLES
            "has_database_privilege(r.oid, current_database(), 'CREATE') LIMIT 1));"
            "COMMIT";

/* The same of views over pg_settings, whose UPDATE sets: the server's rule hands it on through any
 * view, and through tables with a rule of their own. */
static const char settings_text[] =
    "BEGIN TRANSACTION READ ONLY; SET LOCAL search_path TO pg_catalog, pg_temp;"
    "SELECT ("
    "WITH RECURSIVE over(id) AS (SELECT CAST('pg_catalog.pg_settings' AS regclass)::oid UNION "
    "SELECT w.ev_class FROM over o JOIN pg_depend d ON d.refclassid = CAST('pg_class' AS regclass) "
    "AND d.refobjid = o.id AND d.classid = CAST('pg_rewrite' AS regclass) "
    "JOIN pg_rewrite w ON w.oid = d.objid) "
    "SELECT format('%I may write to %I.%I, and that sets settings', r.rolname, n.nspname, "
    "c.relname) FROM over JOIN pg_class c ON c.oid = over.id "
    "JOIN pg_namespace n ON n.oid = c.relnamespace, pg_roles r "
    "WHERE c.oid <> CAST('pg_catalog.pg_settings' AS regclass) AND "
    "pg_has_role(session_user, r.oid, 'MEMBER') AND "
    "(has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE') OR "
    "has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE')) LIMIT 1);"
    "COMMIT";

/* "on limited": whether a pooler in between has handed on what the startup said. */
static const char own_text[] =
    "SELECT pg_catalog.concat(pg_catalog.current_setting('default_transaction_read_only'), ' ', "
    "CAST(current_user AS pg_catalog.text))";

/* What is asked of the server first; a read-only login may not write to views of settings either.
 * NULL: the session has the login's rights and no bounds that a setting could undo. */
static const char *first_check(const struct postgres_terms *t)
{
    bool all = t->statements == (1u << POSTGRES_STATEMENT_WORDS) - 1;
    return t->read_only ? check_text : t->role || !all ? settings_text : NULL;
}

static unsigned checks_of(const struct postgres_terms *t)
{
    return first_check(t) ? 2 : 0;
}

static int begin_check(struct postgres_session *s)
{
    struct buf text;
    s->state = SESSION_CHECKING;
    s->reader.phase = POSTGRES_SESSION;
    buf_init(&text, sizeof check_text + sizeof own_text);
    int r = buf_printf(&text, "%s;", first_check(terms_of(s))) < 0 ||
                    buf_append_str(&text, own_text) < 0 ||
                    postgres_put_query(io_out(s->link.io), buf_slice(&text)) < 0
                ? refuse(s, "memory", "")
                : 0;
    buf_free(&text);
    if (r == 0)
        io_flush_soon(s->link.io);
    return r;
}

static int on_own(struct postgres_session *s, struct slice said)
{
    const struct postgres_terms *t = terms_of(s);
    ssize_t blank = said.p ? slice_find(said, ' ') : -1;
    if (blank < 0)
        return refuse(s, "upstream_protocol", "the server's answer cannot be read");
    struct slice read_only = {said.p, (size_t)blank},
                 role = {said.p + blank + 1, said.n - (size_t)blank - 1};
    if (t->read_only && !slice_eq_str(read_only, "on"))
        return refuse(s, "postgres_setting", "the server took no default_transaction_read_only");
    if (t->role && !slice_eq_str(role, t->role))
        return refuse(s, "postgres_setting", "the server gave the session another role");
    return 0;
}

/* What the login may write, NULL: nothing; then what the session is. */
static int on_answer(struct postgres_session *s, const struct postgres_part *m)
{
    struct slice value;
    char text[400];
    if (!m->first || !m->last || postgres_only_value(m->body, &value) < 0 ||
        ++s->n_checked > checks_of(terms_of(s)))
        return refuse(s, "upstream_protocol", "the server's answer cannot be read");
    if (s->n_checked == checks_of(terms_of(s)))
        return on_own(s, value);
    if (value.p == NULL)
        return 0;
    bool writes = terms_of(s)->read_only;
    snprintf(text, sizeof text, "%s does not hold: %.*s",
             writes ? "'access: read-only'" : "the rule", value.n < 300 ? (int)value.n : 300,
             value.p);
    return refuse(s, writes ? "postgres_writes" : "postgres_setting", text);
}

static int on_checked(struct postgres_session *s, const struct postgres_part *m)
{
    if (m->type == 'D')
        return on_answer(s, m);
    if (m->type == 'E' ||
        (m->type == 'Z' && (s->n_checked != checks_of(terms_of(s)) || !slice_eq_str(m->body, "I"))))
        return refuse(s, terms_of(s)->read_only ? "postgres_writes" : "postgres_setting",
                      terms_of(s)->read_only ? "the server does not say what the login may write"
                                             : "the server does not say what the session is");
    return m->type == 'Z' ? postgres_carry_begin(s) : 0;
}

/* ---- messages ---- */

/* Of what it says to a proof its code alone: the words may be the proof, or the password. */
static int on_error(struct postgres_session *s, struct slice body)
{
    char text[400];
    struct slice said = postgres_field(body, 'M'), code = postgres_field(body, 'C');
    size_t n = 0;
    while (n < code.n && n < 5 &&
           ((code.p[n] >= '0' && code.p[n] <= '9') || (code.p[n] >= 'A' && code.p[n] <= 'Z')))
        n++;
    if (n < 5 || code.n != 5)
        n = 0;
    if (s->state == SESSION_AUTHENTICATING && s->answered)
        snprintf(text, sizeof text, "the server says %.*s to the login%s", n ? (int)n : 5,
                 n ? code.p : "XX000",
                 n && slice_eq_str(code, "28P01") ? ", the password is wrong" : "");
    else
        snprintf(text, sizeof text, "the server says %.*s: %.*s", (int)n, n ? code.p : "",
                 said.n < 300 ? (int)said.n : 300, said.p ? said.p : "");
    return refuse(s, "upstream_login", text);
}

/* Settings go on to the front as they are; it has the rest by then. */
static int on_setting(struct postgres_session *s, const struct postgres_part *m)
{
    const char *why = postgres_login_reported(s, m->body);
    if (why)
        return refuse(s, "postgres_setting", why);
    if (s->state == SESSION_CHECKING)
        return 0;
    return postgres_carry_put(s, m) < 0 ? refuse(s, "memory", "") : 0;
}

int postgres_login_message(struct postgres_session *s, const struct postgres_part *m)
{
    if (m->type == 'S')
        return on_setting(s, m);
    if (m->type == 'N')
        return 0;
    if (s->state == SESSION_CHECKING)
        return on_checked(s, m);
    if (m->type == 'E')
        return on_error(s, m->body);
    if (s->state == SESSION_AUTHENTICATING)
        return m->type == 'R' ? on_authentication(s, m->body)
                              : refuse(s, "upstream_protocol", "the server has not let us in yet");
    struct slice key = m->body;
    if (m->type == 'K')
        return postgres_take_u32(&key, &s->key.process) < 0 ||
                       postgres_take_u32(&key, &s->key.key) < 0
                   ? refuse(s, "upstream_protocol", "the server's key cannot be read")
                   : 0;
    if (m->type != 'Z')
        return refuse(s, "upstream_protocol", "a message that has no place in a login");
    if (checks_of(terms_of(s)) > 0)
        return begin_check(s);
    return postgres_carry_begin(s);
}
