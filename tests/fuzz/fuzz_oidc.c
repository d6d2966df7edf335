/* What a provider's token is read with: the first byte says whether the rest is settings with keys,
 * a token, its head, or its claims (which no fuzzer could sign). */
#include "oidc.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char settings[] =
    "{\"url\":\"https://gate.example.net/in\",\"issuer\":\"https://oidc.vercel.com/acme\","
    "\"team\":\"team_a\",\"project\":\"prj_b\",\"keys\":{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"k1\","
    "\"e\":\"AQAB\",\"n\":\""
    "3vEahg9XeZJmlQS9s4z_0W4y5kliM7FWRsm5-o1LwrPJpZhnD7tYJgnK8A51mYMzWHD52siQ5cMyV0Hd"
    "Ictg7e0KegjcSEYN8S8tG3fgRYoGbmFYkLHhmJpR1FS1QlMTGkgxbv0mOP6XV1ED1Lad2Cb2PJc3aTBM"
    "RFJ7ahsG7-jfpcHZEFSovkPuu9PP96V8h3MxO_lFNu0du8H33tCDYF2W3jbH_NCAeRf56snwnAFbgEgl"
    "ZM3qaQ9-bdLyPfEpH26ytrw4CfMeoPJOmF_g4tsBsy1K3-4v_wPlT3hZpVYoIoQhD-GHMmnCJEiir-BG"
    "v7qzRJmTVUSe35WBr4VwuQ"
    "\"}]}}";
enum { NOW = 1700000000 };

/* A name that was accepted may stand in a record. */
static void require_name(const char *code, const char *name)
{
    if (code)
        return;
    size_t n = strlen(name);
    if (n == 0 || n > OIDC_NAME_MAX)
        abort();
    for (size_t i = 0; i < n; i++)
        if (!ascii_is_alnum(name[i]) && name[i] != '-' && name[i] != '_')
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oidc *o;
    char name[OIDC_NAME_MAX + 1] = "";
    struct err err = {0};
    size_t key = 0;
    if (o == NULL && (o = oidc_new(slice_str(settings), &err)) == NULL)
        abort();
    if (size == 0)
        return 0;
    struct slice rest = {(const char *)data + 1, size - 1};
    if (data[0] == 'k') {
        oidc_free(oidc_new(rest, &err));
    } else if (data[0] == 'h') {
        if (oidc_head(o, rest, &key) == 0 && key != 0)
            abort();
    } else if (data[0] == 'c') {
        require_name(oidc_claims(o, rest, NOW, name, sizeof name), name);
    } else {
        require_name(oidc_verify(o, rest, NOW, name, sizeof name), name);
    }
    return 0;
}
