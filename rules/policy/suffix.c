/* Holds the list of public suffixes under which a leading dot is refused and looks names up in it
 * (pattern_public_suffix, declared in pattern.h). */
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

/* Names under which strangers may register or rent a name. A leading dot on one of these would
 * trust all of them (attack A13). This is a coarse guard, made of the registries and hosting names
 * that people write most; the whole Public Suffix List is larger. `allow_public_suffix` overrides
 * it. Sorted, for bsearch. */
static const char *const suffixes[] = {
    "ac.jp",
    "ac.uk",
    "amazonaws.com",
    "amplifyapp.com",
    "appspot.com",
    "azure-api.net",
    "azureedge.net",
    "azurewebsites.net",
    "blob.core.windows.net",
    "blogspot.com",
    "cloudapp.net",
    "cloudflare.net",
    "cloudfront.net",
    "co.il",
    "co.in",
    "co.jp",
    "co.ke",
    "co.kr",
    "co.nz",
    "co.th",
    "co.uk",
    "co.za",
    "codeberg.page",
    "com.ar",
    "com.au",
    "com.br",
    "com.cn",
    "com.co",
    "com.eg",
    "com.hk",
    "com.mx",
    "com.my",
    "com.ng",
    "com.ph",
    "com.pk",
    "com.pl",
    "com.sa",
    "com.sg",
    "com.tr",
    "com.tw",
    "com.ua",
    "com.vn",
    "deno.dev",
    "duckdns.org",
    "edu.au",
    "edu.cn",
    "execute-api.amazonaws.com",
    "firebaseapp.com",
    "fly.dev",
    "gitbook.io",
    "github.dev",
    "github.io",
    "githubpreview.dev",
    "githubusercontent.com",
    "gitlab.io",
    "glitch.me",
    "go.jp",
    "gob.mx",
    "googleusercontent.com",
    "gov.au",
    "gov.br",
    "gov.cn",
    "gov.uk",
    "herokuapp.com",
    "hf.space",
    "lhr.life",
    "loca.lt",
    "ltd.uk",
    "me.uk",
    "modal.run",
    "myshopify.com",
    "ne.jp",
    "net.au",
    "net.br",
    "net.cn",
    "net.nz",
    "net.uk",
    "netlify.app",
    "ngrok-free.app",
    "ngrok.app",
    "ngrok.io",
    "onrender.com",
    "or.jp",
    "org.au",
    "org.br",
    "org.cn",
    "org.nz",
    "org.uk",
    "pages.dev",
    "plc.uk",
    "r2.dev",
    "railway.app",
    "readthedocs.io",
    "repl.co",
    "replit.app",
    "replit.dev",
    "run.app",
    "s3.amazonaws.com",
    "sch.uk",
    "serveo.net",
    "storage.googleapis.com",
    "supabase.co",
    "surge.sh",
    "trafficmanager.net",
    "translate.goog",
    "trycloudflare.com",
    "vercel.app",
    "web.app",
    "web.core.windows.net",
    "wixsite.com",
    "wordpress.com",
    "workers.dev",
};

/* Single labels that no registry sells from: names of private networks and of RFC 2606 and 6761. */
static const char *const private_names[] = {
    "corp", "example", "home",      "internal", "intranet", "invalid",
    "lan",  "local",   "localhost", "private",  "test",
};

static int compare(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

static bool in(const char *host, const char *const *list, size_t n)
{
    return bsearch(host, list, n, sizeof *list, compare) != NULL;
}

/* A bucket host of one region: s3.eu-west-1.amazonaws.com, s3-eu-west-1.amazonaws.com. */
static bool is_regional(const char *host)
{
    static const char zone[] = ".amazonaws.com";
    size_t n = strlen(host), z = sizeof zone - 1;
    if (n <= z || strcmp(host + n - z, zone) != 0)
        return false;
    return strncmp(host, "s3", 2) == 0 || strncmp(host, "execute-api.", 12) == 0 ||
           strncmp(host, "elb.", 4) == 0;
}

bool pattern_public_suffix(const char *host)
{
    if (strchr(host, '.') == NULL)
        return !in(host, private_names, ARRAY_LEN(private_names));
    return in(host, suffixes, ARRAY_LEN(suffixes)) || is_regional(host);
}
