/* A login: what the server asks for, proofs of the vault's, what the server must report, what a
 * read-only login must not be able to do there, and which role it has. */
#include "postgres_back.h"

#include <stdio.h>
#include <string.h>

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
    buf_init_wiped(&out, 8192);
    if (postgres_auth_prove(&s->auth, proof, &out) < 0)
        (void)refuse(s, "secret_unavailable", err ? err->text : "the vault gave no proof");
    else
        (void)put_message(s, buf_slice(&out));
    buf_free(&out);
}

static int ask_proof(struct postgres_session *s)
{
    struct sign_wait *w = secret_client_sign_text(s->of->back->secrets, s->request.sandbox,
                                                  s->request.rule->credential->secret,
                                                  s->auth.scheme, s->auth.text, on_proof, s);
    if (w == NULL)
        return -1; /* on_proof ran, and may have ended the session */
    s->proof = w;
    return 0;
}

static int on_authentication(struct postgres_session *s, struct slice body)
{
    struct buf out;
    int r = 0;
    buf_init(&out, 300);
    enum postgres_auth_end end = postgres_auth_read(&s->auth, body, io_ssl(s->link.io), &out);
    if ((end == POSTGRES_AUTH_SAY || end == POSTGRES_AUTH_PROVE) &&
        postgres_session_without_login(s)) {
        buf_free(&out);
        return refuse(s, "upstream_login",
                      "the server wants a password beside the certificate: name a "
                      "'postgres_login' in the rule, too");
    }
    switch (end) {
    case POSTGRES_AUTH_FAILED:
        r = refuse(s, s->auth.code, s->auth.why);
        break;
    case POSTGRES_AUTH_SAY:
        r = put_message(s, buf_slice(&out));
        break;
    case POSTGRES_AUTH_PROVE:
        r = ask_proof(s);
        break;
    case POSTGRES_AUTH_DONE:
        s->state = SESSION_STARTING;
        break;
    case POSTGRES_AUTH_MORE:
        break;
    }
    buf_free(&out);
    return r;
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
    if (s->state == SESSION_AUTHENTICATING && s->auth.answered)
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
    return postgres_put_part(&s->down, m) < 0 ? refuse(s, "memory", "") : 0;
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
