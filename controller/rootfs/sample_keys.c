/* Private keys that everybody has: the test keys of languages and libraries, which a search for
 * credentials would otherwise report in every source tree and module cache.
 *
 * They are known by size and content, never by where they lie: a folder called testdata may hold a
 * real key. The hash need not withstand an adversary. Who would profit from a key that is taken for
 * a published one does not choose the bytes of other people's keys; by chance one in 2^57 keys of
 * one of these very sizes is. `tests/published-keys DIRECTORY...` prints rows for this table. */
#include "sample_keys.h"

#include <stdint.h>

static const struct published {
    uint32_t size;
    uint64_t hash;
} published[] = {
    /* Go */
    {227, 0x1db0a33ead8df7d3},
    {227, 0x67bb0b0c0a9f848d},
    /* CPython */
    {971, 0x2625e37fa981907c},
    {1928, 0x1bb64af8ec8c0315},
    {2162, 0xc02aaa3bca2ecbad},
    {2484, 0x071c6b26b611377c},
    {2484, 0x2b7d39a7e6fb9a67},
    {2484, 0x8c1f2b6b698c57fe},
    {2484, 0xad148db733d8187a},
    {2488, 0x8dde79e0e2bbde57},
    {2531, 0x71fe8fba71159841},
    {2654, 0x887cdcac476b2b7f},
    {2654, 0x98637035449aab1b},
    {4058, 0xeb05d12c0606225b},
    {4066, 0x58fb9ba67c0ef322},
    {4078, 0x3d4effa112b8e347},
    {4101, 0x7c20f5ea458efdfe},
    {4111, 0xf8195ecf86b1412f},
    {4123, 0x52c329333eb0c1b7},
    {4225, 0x8b665312a241cfa5},
    {4281, 0x9fbd8ac2dcae372e},
    {5037, 0x0734c9c966cdc565},
    {5632, 0x5c20b5ac7a4ac1fe},
    {5633, 0x3fba1330666a570f},
    {5637, 0xabf82f88f224c6d3},
    {7714, 0xac5eb7491caf38fe},
    {7719, 0x7b7934f9437f8d16},
    {9439, 0xf43a058ed78cd3ba},
    {9440, 0x7df48fa1e05a83eb},
    {9448, 0x27dc530b8cef8788},
    {9453, 0x81f268db18c4fc51},
    {9454, 0x83f8be841869a6c7},
    {9462, 0x379fba3559ef77de},
    {9937, 0x208b6ea2a4b4b841},
    {9942, 0xacd5464015e6ad7c},
    {9946, 0x4bc6c7786de1f1be},
    {10105, 0xda01df005965c712},
    {10130, 0xf508c9c02027e04b},
    /* gRPC for Go */
    {1708, 0x4710015847590fb5},
    {3243, 0x624d338e92d407da},
    {3243, 0xb2f7269aa1337cd6},
    {3243, 0xd5bbe4d86ad976b2},
    {3247, 0x548afc7906ebe358},
    {3272, 0x181cce0b2dbbc5ab},
    {3272, 0x33026f20922f0e93},
    {3272, 0x783b6abf59f8048b},
    {3272, 0xaeb3e28d51d59919},
    {3272, 0xd48257864ef36ec8},
    /* rustls */
    {227, 0x1ef488d97f8c6cdd},
    {241, 0x8de233a85492fd73},
    {887, 0x231e1eab2659e85b},
    {916, 0xed488992a0715644},
    {7786, 0xa7b29a92e29c0b42},
    {13084, 0xaef17af86b669d11},
    /* Kubernetes */
    {227, 0x48730d7b5966ed43},
    {227, 0x66f85b6205cf2c1c},
    {227, 0xc3c3d60b4db2c7c1},
    {227, 0xc6bdd07de8ba3c21},
    {227, 0xdd4faafa53abc4a7},
    {288, 0xe746719a5e75cd23},
    {365, 0x76787c6b8b6b6480},
    {365, 0x9adbc4088a2c4a57},
    {365, 0xd15b364801449a7f},
    {530, 0x3a9cf799b3521749},
    {1675, 0x0a884bf841d36bb8},
    {1675, 0x13e1d092e25b97d0},
    {1675, 0x38b199e0911370c0},
    {1675, 0x561ba707d8458d5c},
    {1675, 0x5cffbd7c44e24dc4},
    {1675, 0x6e708dd6550edbe8},
    {1675, 0x841b17e5ee698b72},
    {1675, 0x8cecadcef22a44d9},
    {1675, 0x97908c5653ecdc58},
    {1675, 0x9c1f12d531af9107},
    {1675, 0xaa0e7cd29b4c5030},
    {1675, 0xae9000682f3e0505},
    {1675, 0xb7a325c2449751c2},
    {1675, 0xbb9abba33747cd82},
    {1675, 0xc965a5090bf614f7},
    {1675, 0xdb90670193ecd3e9},
    {1675, 0xdc8a656ec1c47154},
    {1675, 0xeecc77c40d0b5b52},
    {1675, 0xf8d4d5b335a0357f},
    {1678, 0xfc26bd9613882c49},
    {1679, 0x1b61e79b42f202eb},
    {1679, 0x1fa3ea31665570a3},
    {1679, 0x2dc1b6d38a3dd5bc},
    {1679, 0x32cf53ff43d5b938},
    {1679, 0x48c9d5f9ef36b00a},
    {1679, 0x7c87d1a74b14244f},
    {1679, 0xac1786cd23a07639},
    {1679, 0xc800cd8f27b627b8},
    {1679, 0xc85922d9cb990993},
    {1679, 0xd57d7837445bc098},
    {1679, 0xd974c68026b71dae},
    {1679, 0xe0448734e3ab1cc9},
    {1679, 0xe05d16cdbf560bd3},
    {1679, 0xeefbffc580d4bfc4},
    {1679, 0xf064d461055b1adb},
    {1679, 0xf1de6704e833efae},
    {1679, 0xfe006903306335d9},
    {1704, 0x4009883bad49949b},
    {1831, 0x3365b0a5363fa2bd},
    {1843, 0x4d7eabe8f0ffca36},
};

/* FNV-1a of 64 bits (draft-eastlake-fnv). */
static uint64_t hash_of(struct slice s)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3;
    return h;
}

bool sample_key(struct slice file)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < ARRAY_LEN(published); i++) {
        if (published[i].size != file.n)
            continue;
        if (hash == 0)
            hash = hash_of(file);
        if (published[i].hash == hash)
            return true;
    }
    return false;
}

size_t sample_key_size_max(void)
{
    size_t most = 0;
    for (size_t i = 0; i < ARRAY_LEN(published); i++)
        most = published[i].size > most ? published[i].size : most;
    return most;
}
