/* The sections of a configuration that have no file of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_tree.h"
#include "quantity.h"

int config_file(struct config *c, const struct node *n, const char **ret, struct err *err)
{
    const char *text;
    if (node_string(n, &text, err) < 0)
        return -1;
    if (text[0] == '~')
        return node_fail(n, err, "'%.200s': '~' is your shell's; write the whole path", text);
    if (text[0] != '/' && c->base == NULL)
        return node_fail(n, err, "'%.200s': an absolute path is needed here", text);
    size_t size = strlen(text) + (c->base ? strlen(c->base) : 0) + 2;
    char *whole = arena_zalloc(c->arena, size, 1);
    if (text[0] == '/')
        snprintf(whole, size, "%s", text);
    else
        snprintf(whole, size, "%s%s%s", c->base, strcmp(c->base, "/") == 0 ? "" : "/",
                 strncmp(text, "./", 2) == 0 ? text + 2 : text);
    if (strlen(whole) > 4000)
        return node_fail(n, err, "this path is longer than 4000 bytes");
    int r = n->key ? json_object_set_new(n->up->value, n->key, json_string(whole))
                   : json_array_set_new(n->up->value, n->index, json_string(whole));
    if (r < 0)
        abort(); /* memory is out */
    *ret = whole;
    return 0;
}

bool config_env_name_ok(const char *s)
{
    if (s[0] == 0 || strlen(s) > 256 || (s[0] >= '0' && s[0] <= '9'))
        return false;
    for (; *s; s++)
        if (!ascii_is_alnum(*s) && *s != '_')
            return false;
    return true;
}

/* What it is read from, or made of. */
static int read_source(struct config *c, const struct node *n, struct config_secret *s,
                       struct err *err)
{
    size_t others = json_object_size(n->value) - 1;
    if (!config_is_minted(n->value))
        return config_read_store(c, n, s, err);
    others -= json_object_get(n->value, "kind") != NULL;
    others -= json_object_get(n->value, "ttl") != NULL;
    if (others > 0)
        return node_fail(n, err, "a secret has one source: a store, or one kind of token or key");
    return config_read_mint(c, n, s, err);
}

static const struct key secret_keys[] = {
    KEY("env", AS(variable), "",
        "name of an environment variable of the daemon, `[A-Za-z_][A-Za-z0-9_]*`, read once at "
        "start"),
    KEY("file", AS(path), "", "a file that only its owner can read; others are refused"),
    KEY("command", AS(command), "",
        "list of 1 to 64 words, program first; its standard output is the value. No shell runs it. "
        "A program without `/` is looked for in `PATH`"),
    KEY("kind", WORDS_OF(secret_kinds), "the kind of a preset that uses the secret, else none",
        "`github-pat`, `openai`, `anthropic` or `anthropic-oauth`: the shape of the placeholder "
        "that the sandbox sees "
        "in place of the secret"),
    KEY("oauth2", OWN, "", ""),
    KEY("jwt", OWN, "", ""),
    KEY("google", OWN, "", ""),
    KEY("github_app", OWN, "", ""),
    KEY("entra", OWN, "", ""),
    KEY("aws_key", OWN, "", ""),
    KEY("aws_role", OWN, "", ""),
    KEY("token_exchange", OWN, "", ""),
    KEY("google_instance", OWN, "", ""),
    KEY("azure_instance", OWN, "", ""),
    KEY("aws_web_identity", OWN, "", ""),
    KEY("aws_container", OWN, "", ""),
    KEY("aws_instance", OWN, "", ""),
    KEY("ttl", AS(duration),
        "`file`, `systemd`, `kubernetes`: 0s; `command`, `secret_service`, stores behind an "
        "endpoint: 5m",
        "how long a value may be kept: digits and `s`, `m` or `h`, 0s to 24h; `0s` reads it again "
        "each time. Not with `env`"),
    KEY("systemd", AS(entry), "",
        "NAME of a credential of the unit (`LoadCredential=NAME:...`): the file NAME in "
        "`$CREDENTIALS_DIRECTORY`, with the checks of `file`"),
    KEY("secret_service", OWN, "",
        "`{ ATTRIBUTE: VALUE, ... }`, 1 to 16 of them: looked up in the desktop's keyring by "
        "`secret-tool lookup` (Debian: libsecret-tools), which needs the session's D-Bus"),
    KEY("kubernetes", OWN, "",
        "`{ path: DIR, key: KEY }`: a key of a Secret that is mounted at DIR, with the checks of "
        "`file`: mount it with `defaultMode: 0400` (0440 with an `fsGroup`)"),
    KEY("vault", OWN, "", ""),
    KEY("openbao", OWN, "", ""),
    KEY("aws_secret", OWN, "", ""),
    KEY("aws_parameter", OWN, "", ""),
    KEY("onepassword", OWN, "", ""),
    KEY("client_certificate", OWN, "", ""),
    KEY("captured", OWN, "", ""),
    KEY("hmac_key", OWN, "", ""),
    KEY("signature_key", OWN, "", ""),
    KEY("azure_key", OWN, "", ""),
    KEY("ssh_key", OWN, "", ""),
    KEY("ssh_signing_key", OWN, "", ""),
    KEY("ssh_certificate", OWN, "", ""),
    KEY("ssh_password", OWN, "", ""),
    KEY("postgres_login", OWN, "", ""),
    KEY("redis_login", OWN, "", ""),
    KEY("mysql_login", OWN, "", ""),
    KEY("smtp_login", OWN, "", ""),
    KEY("imap_login", OWN, "", ""),
    KEY("login", OWN, "",
        "`{ format: NAME, file: FILE, entry: ENTRY, part: PART }`: one text of a file that another "
        "program keeps its login in, with the checks of `file`, see *Logins of other programs*"),
    KEY("oauth_login", OWN, "", ""),
    KEY("ssh_agent", OWN, "",
        "`{ key: KEY, socket: FILE }`: a key that an SSH agent of this host has, by its "
        "fingerprint "
        "or its public half, for `ssh_key` and `ssh_signing_key`; without `socket` the agent is "
        "the "
        "one that `$SSH_AUTH_SOCK` names where the daemon starts, see *Keys in an agent*"),
};

/* What somebody writes who puts the value itself into the file. */
static bool names_value(const struct node *secret)
{
    static const char *const words[] = {"value", "token", "password", "secret", "key", "literal"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (json_object_get(secret->value, words[i]))
            return true;
    return false;
}

static int read_secret(struct config *c, const struct node *n, struct config_secret *s,
                       struct err *err)
{
    struct node at;
    size_t kind = SECRET_KINDS;
    if (!node_name_ok(n->key))
        return node_fail(n, err, "'%.60s' is not a secret's name (letters, digits, _ . -)", n->key);
    s->name = arena_str(c->arena, n->key);
    s->kind = "";
    if (json_is_string(n->value) || names_value(n))
        return node_fail(n, err,
                         "a secret's value never stands here; say where it is read from: { env: "
                         "NAME }, { file: /PATH } or { command: [PROGRAM, WORD] }");
    if (node_keys(n, KEYS(secret_keys), err) < 0 || read_source(c, n, s, err) < 0)
        return -1;
    if (node_key_word(n, secret_keys, "kind", &kind, err) < 0)
        return -1;
    if (kind < SECRET_KINDS)
        s->kind = secret_kinds[kind];
    if (!node_get(n, "ttl", &at))
        return 0;
    if (config_is_remote(s))
        return 0; /* it was read with the rest */
    if (s->store == STORE_MINT)
        return node_fail(&at, err,
                         "'ttl' has no meaning here: a token says itself how long it lasts");
    if (s->store == STORE_ENV)
        return node_fail(&at, err, "'ttl' has no meaning with 'env': it is read once, at start");
    return quantity_duration(&at, &s->ttl, err);
}

/* The vault and the injectors are told of all in a message each. */
static int fits(const struct config *c, const struct node *n, struct err *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < c->n_secrets; i++)
        bytes += strlen(c->secrets[i].name) + CONFIG_ENTRY_BYTES +
                 (c->secrets[i].derived ? derived_spec_bytes(c->secrets[i].derived) : 0);
    if (c->n_secrets > CONFIG_SECRETS_MAX)
        return node_fail(n, err, "more than %d secrets and logins of their stores together",
                         CONFIG_SECRETS_MAX);
    if (bytes > CONFIG_SECRETS_BYTES)
        return node_fail(n, err,
                         "what is said of secrets takes %zu bytes, of %d: fewer, or shorter names",
                         bytes, CONFIG_SECRETS_BYTES);
    return 0;
}

int config_read_secrets(struct config *c, const struct node *n, struct err *err)
{
    if (node_is_object(n, err) < 0)
        return -1;
    if (json_object_size(n->value) > CONFIG_SECRETS_MAX)
        return node_fail(n, err, "more than %d secrets", CONFIG_SECRETS_MAX);
    /* and as many logins */
    c->secrets = arena_zalloc(c->arena, 2 * json_object_size(n->value) + 1, sizeof *c->secrets);
    c->n_secrets = json_object_size(n->value);
    size_t i = 0;
    for (void *it = json_object_iter(n->value); it; it = json_object_iter_next(n->value, it)) {
        struct node at;
        node_get(n, json_object_iter_key(it), &at);
        if (read_secret(c, &at, &c->secrets[i++], err) < 0)
            return -1;
    }
    config_mark_keys(c);
    return fits(c, n, err);
}

static int read_file(struct config *c, const struct node *n, const char *key, const char **ret,
                     struct err *err)
{
    struct node at;
    return node_get(n, key, &at) ? config_file(c, &at, ret, err) : 0;
}

static const struct key ca_keys[] = {
    KEY("dir", AS(path),
        "root: /var/lib/durward/ca; else `durward/ca` in `$XDG_DATA_HOME` or ~/.local/share",
        "directory in which Durward keeps the CA that it makes"),
    KEY("cert", AS(path), "", "PEM file of a CA of your own; beside `key`, and not beside `dir`"),
    KEY("key", AS(path), "", "PEM file of its key. One that others can read is refused"),
};

int config_read_ca(struct config *c, const struct node *n, struct err *err)
{
    if (node_keys(n, KEYS(ca_keys), err) < 0 || read_file(c, n, "dir", &c->ca_dir, err) < 0 ||
        read_file(c, n, "cert", &c->ca_cert, err) < 0 ||
        read_file(c, n, "key", &c->ca_key, err) < 0)
        return -1;
    if (!c->ca_cert != !c->ca_key)
        return node_fail(n, err, "'cert' and 'key' go together");
    if (c->ca_dir && c->ca_cert)
        return node_fail(n, err, "either 'dir', or 'cert' and 'key' of your own");
    return 0;
}

static const struct key controller_keys[] = {
    KEY("socket", AS(path),
        "`durward/api.sock` in `$XDG_RUNTIME_DIR`; root: /run/durward/api.sock; else "
        "/tmp/durward-UID/api.sock",
        "unix socket of the API, at most 107 bytes"),
    KEY("state", AS(path),
        "root: /var/lib/durward; else `durward` in `$XDG_STATE_HOME` or ~/.local/state",
        "directory of what outlives the daemon, on a file system that overlayfs can write to: no "
        "overlay, so in a container a volume"),
    KEY("https", AS(address), "none",
        "ADDRESS:PORT of the API over TLS, for clients elsewhere; none without. A certificate of "
        "the CA; each request with a token of `durward token create`. Who has shown no good token "
        "within 10 s is cut off, and of one address (IPv6: a /64) there are 128 such at most"),
    KEY("preview", AS(address), "none",
        "ADDRESS:PORT, in clear, at which services of sandboxes are seen (see *Services and "
        "previews*). Off loopback only with a `preview_url` of https://"),
    KEY("preview_url", AS(text), "`http://preview.localhost:PORT`",
        "with `preview`: the domain below which each sandbox and service has a host name of its "
        "own, as browsers see it: `http://` with a name below localhost, or `https://` where a "
        "proxy of yours ends TLS for all names below it"),
    KEY("name", AS(text), "the address",
        "with `https`: the host name or address that clients use, of the certificate and the "
        "`Host` header"),
};

int config_read_controller(struct config *c, const struct node *n, struct err *err)
{
    struct node at;
    if (node_keys(n, KEYS(controller_keys), err) < 0 ||
        read_file(c, n, "socket", &c->socket, err) < 0 ||
        read_file(c, n, "state", &c->state, err) < 0)
        return -1;
    if (c->socket && strlen(c->socket) > 107 && node_get(n, "socket", &at))
        return node_fail(&at, err, "a unix socket's path is at most 107 bytes");
    if (c->socket && c->node && strcmp(c->socket, c->node->socket) == 0 &&
        node_get(n, "socket", &at))
        return node_fail(&at, err,
                         "this is node.socket too; the API's users and the node's plugin each have "
                         "a socket of their own");
    return config_read_api(c, n, err) < 0 ? -1 : config_read_preview(c, n, err);
}
