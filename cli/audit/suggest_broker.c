/* Of a denial over SSH, by a database or mail: the pattern of its rule, and what the rule has to
 * say beside it. */
#include "suggest_broker.h"

#include <string.h>

#include "authority.h"
#include "ssh_files.h"

static const char *text_of(const json_t *line, const char *name)
{
    const char *s = json_string_value(json_object_get(line, name));
    return s ? s : "";
}

static bool is_one(const char *s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(s, list[i]) == 0)
            return true;
    return false;
}

/* Without its port where that is its own; of TLS from the first byte with an "s". */
static bool host_text(const struct query_row *r, const char *user, char *to, size_t size)
{
    static const struct {
        const char *scheme, *mark;
        enum scheme is;
        uint16_t port, other; /* other than the scheme's; 0: none */
        const char *as;
    } all[] = {
        {"ssh", "ssh", SCHEME_SSH, 22, 0, NULL},
        {"postgres", "postgres", SCHEME_POSTGRES, 5432, 0, NULL},
        {"mysql", "mysql", SCHEME_MYSQL, 3306, 0, NULL},
        {"redis", "rediss", SCHEME_REDIS, 6379, 0, NULL},
        {"smtp", "smtp", SCHEME_SMTP, 0, 465, "smtps"},
        {"imap", "imap", SCHEME_IMAP, 0, 993, "imaps"},
    };
    struct authority a;
    char text[HOST_TEXT_MAX + 16];
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(r->scheme, all[i].scheme) != 0 ||
            authority_parse(&a, all[i].is, slice_str(r->authority)) < 0)
            continue;
        bool other = all[i].other && a.port == all[i].other;
        if (other)
            a.port = scheme_port(all[i].is);
        snprintf(to, size, "%s://%s%s%s", other ? all[i].as : all[i].mark, user, *user ? "@" : "",
                 authority_text(&a, text, sizeof text));
        return true;
    }
    return false;
}

static json_t *list_of(const char *key, const char *value)
{
    return *value ? json_pack("{s:[s]}", key, value) : NULL;
}

static json_t *of_file(const struct query_row *r)
{
    unsigned v = 0;
    while (v < SSH_FILE_VERBS && strcmp(r->method, ssh_file_verb_name((enum ssh_file_verb)v)) != 0)
        v++;
    if (strchr(r->path, '*') || strchr(r->detail, '*') || !r->path[0])
        return NULL;
    switch (v) {
    case SSH_FILE_SEE:
    case SSH_FILE_LIST:
    case SSH_FILE_GET:
    case SSH_FILE_READ_LINK:
        return list_of("read_files", r->path);
    case SSH_FILE_GET_PUT:
        return json_pack("{s:[s], s:[s]}", "read_files", r->path, "write_files", r->path);
    case SSH_FILE_PUT:
    case SSH_FILE_SET:
    case SSH_FILE_MAKE_DIRECTORY:
        return list_of("write_files", r->path);
    case SSH_FILE_DELETE:
    case SSH_FILE_DELETE_DIRECTORY:
        return list_of("remove_files", r->path);
    case SSH_FILE_RENAME: /* its record says to where */
        return json_pack("{s:[s], s:[s]}", "remove_files", r->path, "write_files", r->detail);
    default:
        return NULL; /* no rule allows it; or it is sftp, of whose files each has a denial */
    }
}

static json_t *of_ssh(const struct query_row *r, const json_t *line)
{
    const char *target = text_of(line, "target"), *command = text_of(line, "command");
    if (strcmp(r->method, "fetch") == 0)
        return json_pack("{s:s}", "access", "read-only");
    if (strcmp(r->method, "push") == 0)
        return json_object();
    if (strcmp(r->method, "shell") == 0)
        return json_pack("{s:b}", "shell", true);
    if (strcmp(r->method, "connect") == 0)
        return list_of("forward", target);
    if (strcmp(r->method, "exec") == 0)
        return strchr(command, '*') ? NULL : list_of("commands", command);
    return of_file(r);
}

/* NULL: a rule cannot say it. */
static json_t *more_of(const struct query_row *r, const json_t *line)
{
    return strcmp(r->scheme, "ssh") == 0 ? of_ssh(r, line) : json_object();
}

static bool is_git(const char *method)
{
    return strcmp(method, "fetch") == 0 || strcmp(method, "push") == 0;
}

bool suggest_broker(const struct query_row *r, char *host, size_t size, const char **path,
                    json_t **more)
{
    static const char *const codes[] = {"no_rule", "method",     "command",
                                        "file",    "ssh_target", "ssh_forwarding"};
    json_t *line = json_loadb(r->line.p, r->line.n, 0, NULL);
    bool ssh = strcmp(r->scheme, "ssh") == 0,
         good = line && is_one(r->code, codes, ARRAY_LEN(codes)) &&
                host_text(r, ssh ? text_of(line, "user") : "", host, size);
    *more = good ? more_of(r, line) : NULL;
    bool has_path =
        ssh ? is_git(r->method) : strlen(r->path) > 1 && strcmp(r->scheme, "redis") != 0;
    *path = has_path ? r->path : "";
    json_decref(line);
    return *more != NULL;
}

/* Both in one rule: lists are joined, and what is pushed to is read, too. */
void suggest_broker_join(json_t *into, const json_t *more)
{
    const char *key;
    json_t *value, *item;
    size_t i, k;
    if (json_object_get(more, "access") == NULL)
        json_object_del(into, "access");
    json_object_foreach((json_t *)(uintptr_t)more, key, value)
    {
        json_t *list = json_object_get(into, key);
        if (!json_is_array(value)) {
            if (list == NULL && strcmp(key, "access") != 0)
                json_object_set(into, key, value);
            continue;
        }
        if (list == NULL) {
            json_object_set(into, key, value);
            continue;
        }
        json_array_foreach(value, i, item)
        {
            for (k = 0; k < json_array_size(list); k++)
                if (json_equal(json_array_get(list, k), item))
                    break;
            if (k == json_array_size(list))
                json_array_append(list, item);
        }
    }
}
