/* What a certificate of SSH may say: users, ranges of addresses and extensions that a server takes,
 * and that the broker has a use for. */
#include <string.h>

#include "cidr.h"
#include "config_tree.h"

enum { LIST_MAX = 16, PRINCIPAL_MAX = 64 };

typedef int (*item_check)(const struct node *at, struct slice item, struct err *err);

static bool is_plain(struct slice s, const char *but)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f || strchr(but, s.p[i]))
            return false;
    return s.n > 0;
}

/* A server splits its own lists at commas and blanks. */
static int check_principal(const struct node *at, struct slice item, struct err *err)
{
    return is_plain(item, ",\"\\") && item.n <= PRINCIPAL_MAX
               ? 0
               : node_fail(at, err,
                           "'%.*s': a principal is a name of 1 to %d bytes without blanks, commas, "
                           "quotes and backslashes",
                           SL(item), PRINCIPAL_MAX);
}

static int check_range(const struct node *at, struct slice item, struct err *err)
{
    struct cidr range;
    return cidr_parse(&range, item) < 0
               ? node_fail(at, err,
                           "'%.*s' is not a range as 192.0.2.0/24 or 2001:db8::/32, with nothing "
                           "behind its prefix",
                           SL(item))
               : 0;
}

static struct slice name_of(struct slice extension)
{
    ssize_t at = slice_find(extension, '=');
    return (struct slice){extension.p, at < 0 ? extension.n : (size_t)at};
}

/* OpenSSH's own have no value; those of others have a domain in their names. */
static int check_extension(const struct node *at, struct slice item, struct err *err)
{
    struct slice name = name_of(item);
    if (slice_eq_str(item, "permit-pty") || slice_eq_str(item, "permit-user-rc") ||
        slice_eq_str(item, "permit-port-forwarding"))
        return 0;
    if (slice_starts(name, SLICE("permit-")) && slice_ends(name, SLICE("-forwarding")))
        return node_fail(
            at, err,
            "'%.*s': agents and X11 are not forwarded here; leave it out, and whoever got "
            "hold of the certificate forwards neither",
            SL(item));
    ssize_t domain = slice_find(name, '@');
    if (!is_plain(item, "") || domain < 1 || (size_t)domain + 1 == name.n || item.n > 250)
        return node_fail(
            at, err,
            "'%.*s': an extension is permit-pty, permit-user-rc, permit-port-forwarding, or "
            "one with a domain: NAME@DOMAIN or NAME@DOMAIN=VALUE",
            SL(item));
    return 0;
}

static int check_list(const struct node *n, enum spec_field field, item_check check,
                      struct err *err)
{
    struct node list, item, other;
    const char *text, *before;
    size_t count;
    if (!node_get(n, spec_field_name(field), &list))
        return 0;
    if (node_strings(&list, &count, err) < 0)
        return -1;
    if (count > LIST_MAX)
        return node_fail(&list, err, "more than %d", LIST_MAX);
    for (size_t i = 0; i < count; i++) {
        if (node_strings_at(&list, i, &item, &text, err) < 0 ||
            check(&item, slice_str(text), err) < 0)
            return -1;
        for (size_t k = 0; k < i; k++)
            if (node_strings_at(&list, k, &other, &before, err) == 0 &&
                slice_eq(name_of(slice_str(before)), name_of(slice_str(text))))
                return node_fail(&item, err, "'%.100s' stands there twice", text);
    }
    return 0;
}

int config_mint_certificate_ok(const struct node *n, const struct derived_spec *spec,
                               struct err *err)
{
    if (spec->kind != DERIVED_SSH_CERTIFICATE)
        return 0;
    return check_list(n, SPEC_PRINCIPALS, check_principal, err) < 0 ||
                   check_list(n, SPEC_SOURCE_ADDRESS, check_range, err) < 0
               ? -1
               : check_list(n, SPEC_EXTENSIONS, check_extension, err);
}
