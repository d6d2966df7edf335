/* Check digits: of cards, IBANs and national identifiers. Pure: digits and letters in, yes or no
 * out. */
#include "detector_internal.h"

#include <string.h>

static unsigned value(char c)
{
    return (unsigned)(c - '0');
}

static unsigned number(const char *p, size_t n)
{
    unsigned v = 0;
    for (size_t i = 0; i < n; i++)
        v = v * 10 + value(p[i]);
    return v;
}

/* ISO/IEC 7812-1, annex B. */
static bool luhn(const char *p, size_t n)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned v = value(p[i]);
        if ((n - i) % 2 == 0)
            v = v * 2 > 9 ? v * 2 - 9 : v * 2;
        sum += v;
    }
    return sum % 10 == 0;
}

/* The weighted sum of the first digits. */
static unsigned weigh(const char *p, const char *weights)
{
    unsigned sum = 0;
    for (; *weights; weights++, p++)
        sum += value(*p) * value(*weights);
    return sum;
}

static bool date_ok(unsigned month, unsigned day)
{
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* ---- cards ---- */

static bool issuer(const char *p, size_t n)
{
    unsigned two = number(p, 2), three = number(p, 3), four = number(p, 4);
    if (n == 15)
        return two == 34 || two == 37;
    if (n == 14)
        return two == 36 || two == 38 || (three >= 300 && three <= 305);
    if (n == 19)
        return p[0] == '4' || two == 62;
    return p[0] == '4' || (two >= 51 && two <= 55) || (four >= 2221 && four <= 2720) || two == 35 ||
           two == 62 || two == 65 || four == 6011 || (three >= 644 && three <= 649);
}

bool detect_card_ok(const char *digits, size_t n)
{
    return issuer(digits, n) && luhn(digits, n);
}

/* ---- IBANs: ISO 13616 ---- */

static const char iban_lengths[] =
    "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DK18DO28EE20EG29ES24FI18FO18"
    "FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21"
    "LY25MC27MD24ME22MK19MR27MT31MU30NL18NO15PK24PL28PS29PT25QA29RO24RS22SA24SC31SE24SI19SK24SM27"
    "ST25SV28TL23TN24TR26UA29VA22VG24XK20";

size_t detect_iban_length(const char *country)
{
    for (const char *p = iban_lengths; *p; p += 4)
        if (memcmp(p, country, 2) == 0)
            return number(p + 2, 2);
    return 0;
}

bool detect_iban_ok(const char *text, size_t n)
{
    unsigned rest = 0;
    for (size_t i = 0; i < n; i++) { /* the first four stand last */
        char c = text[(i + 4) % n];
        rest = detect_is(c, CLASS_DIGIT) ? (rest * 10 + value(c)) % 97
                                         : (rest * 100 + (unsigned)(c - 'A') + 10) % 97;
    }
    return rest == 1;
}

/* ---- national identifiers ---- */

static bool same_digits(const char *p, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (p[i] != p[0])
            return false;
    return true;
}

/* Numéro de registre national: 97 less the rest of the first nine, with a 2 before them for who was
 * born from 2000 on. */
static bool belgian(const char *p)
{
    unsigned rest = 97 - number(p, 9) % 97, check = number(p + 9, 2);
    unsigned later = 97 - (unsigned)((2000000000u + number(p, 9)) % 97);
    unsigned month = number(p + 2, 2) % 20;
    return month <= 12 && number(p + 4, 2) <= 31 && (rest == check || later == check);
}

/* Of a CPF's first n digits, whose weights end at 2. */
static unsigned brazilian_digit(const char *p, unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += value(p[i]) * (n + 1 - i);
    return sum % 11 < 2 ? 0 : 11 - sum % 11;
}

/* CPF */
static bool brazilian(const char *p)
{
    return !same_digits(p, 11) && value(p[9]) == brazilian_digit(p, 9) &&
           value(p[10]) == brazilian_digit(p, 10);
}

/* AHV-Nummer: an EAN-13 */
static bool swiss(const char *p)
{
    return (weigh(p, "1313131313131")) % 10 == 0;
}

/* Steuerliche Identifikationsnummer: ISO/IEC 7064, MOD 11,10; of the first ten one digit stands
 * there twice or three times, and at most one. */
static bool german(const char *p)
{
    unsigned seen[10] = {0}, often = 0, most = 0, product = 10;
    for (size_t i = 0; i < 10; i++)
        seen[value(p[i])]++;
    for (size_t i = 0; i < 10; i++) {
        often += seen[i] > 1;
        most = seen[i] > most ? seen[i] : most;
    }
    if (p[0] == '0' || often != 1 || most > 3)
        return false;
    for (size_t i = 0; i < 10; i++) {
        unsigned sum = (value(p[i]) + product) % 10;
        product = (sum == 0 ? 10 : sum) * 2 % 11;
    }
    return value(p[10]) == (11 - product) % 10;
}

/* DNI, NIE, and the NIF of who has neither */
static bool spanish(const char *p)
{
    static const char letters[] = "TRWAGMYFPDXBNJZSQVHLCKE";
    unsigned v = number(p + 1, 7);
    if (detect_is(p[0], CLASS_DIGIT))
        v += value(p[0]) * 10000000;
    else if (p[0] >= 'X' && p[0] <= 'Z')
        v += (unsigned)(p[0] - 'X') * 10000000;
    else if (p[0] < 'K' || p[0] > 'M')
        return false;
    return p[8] == letters[v % 23];
}

/* NIR; 2A and 2B are reckoned as 19 and 18. */
static bool french(const char *p, size_t n)
{
    uint64_t v = 0;
    unsigned month = number(p + 3, 2), corsica = p[6] == 'A' ? 1000000 : 2000000;
    if (!detect_is(p[6], CLASS_DIGIT) && (p[5] != '2' || (p[6] != 'A' && p[6] != 'B')))
        return false;
    for (size_t i = 0; i < 13; i++)
        v = v * 10 + (detect_is(p[i], CLASS_DIGIT) ? value(p[i]) : 0);
    v -= detect_is(p[6], CLASS_DIGIT) ? 0 : corsica;
    return n == 15 && (p[0] == '1' || p[0] == '2') &&
           ((month >= 1 && month <= 12) || month >= 20) &&
           97 - (unsigned)(v % 97) == number(p + 13, 2);
}

/* National Insurance number: it has no check digit, but letters that never stand there. */
static bool british(const char *p)
{
    static const char never[][3] = {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"};
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        if (memcmp(p, never[i], 2) == 0)
            return false;
    return !strchr("DFIQUV", p[0]) && !strchr("DFIOQUV", p[1]) && p[8] >= 'A' && p[8] <= 'D';
}

/* Aadhaar: Verhoeff's scheme, made of the dihedral group's products. */
static bool indian(const char *p)
{
    static const unsigned char moves[8][10] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 5, 7, 6, 2, 8, 3, 0, 9, 4},
        {5, 8, 0, 3, 7, 9, 6, 1, 4, 2}, {8, 9, 1, 6, 0, 4, 3, 5, 2, 7},
        {9, 4, 5, 3, 1, 2, 6, 8, 7, 0}, {4, 2, 8, 6, 5, 7, 3, 9, 0, 1},
        {2, 7, 9, 3, 8, 0, 6, 4, 1, 5}, {7, 0, 4, 6, 9, 1, 3, 2, 5, 8}};
    unsigned c = 0;
    for (size_t i = 0; i < 12; i++) {
        unsigned d = moves[i % 8][value(p[11 - i])];
        if (c < 5)
            c = d < 5 ? (c + d) % 5 : 5 + (c + d) % 5;
        else
            c = d < 5 ? 5 + (c - d) % 5 : (c - d + 5) % 5;
    }
    return p[0] >= '2' && c == 0;
}

/* Codice fiscale */
static bool italian(const char *p)
{
    static const unsigned char odd[] = {1,  0,  5, 7, 9, 13, 15, 17, 19, 21, 2,  4,  18,
                                        20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23};
    unsigned sum = 0;
    for (size_t i = 0; i < 15; i++) {
        unsigned v = detect_is(p[i], CLASS_DIGIT) ? value(p[i]) : (unsigned)(p[i] - 'A');
        sum += i % 2 == 0 ? odd[v] : v;
    }
    return strchr("ABCDEHLMPRST", p[8]) && (unsigned)(p[15] - 'A') == sum % 26;
}

/* PESEL */
static bool polish(const char *p)
{
    return date_ok(number(p + 2, 2) % 20, number(p + 4, 2)) &&
           (weigh(p, "1379137913") + value(p[10])) % 10 == 0;
}

/* Personnummer; of a coordination number the day is 60 more. */
static bool swedish(const char *p, size_t n)
{
    if (n == 12 && (number(p, 2) < 18 || number(p, 2) > 20))
        return false;
    p += n == 12 ? 2 : 0;
    unsigned day = number(p + 4, 2);
    return date_ok(number(p + 2, 2), day > 60 ? day - 60 : day) && luhn(p, 10);
}

/* Social Security number: it has no check digit, but numbers that were never given, or were printed
 * so often that they were withdrawn. */
static bool american(const char *p)
{
    static const char printed[][10] = {"123456789", "078051120", "219099999", "457555462"};
    unsigned area = number(p, 3);
    for (size_t i = 0; i < ARRAY_LEN(printed); i++)
        if (memcmp(p, printed[i], 9) == 0)
            return false;
    return area != 0 && area != 666 && area < 900 && number(p + 3, 2) != 0 && number(p + 5, 4) != 0;
}

bool detect_id_ok(enum detector what, const char *p, size_t n)
{
    switch (what) {
    case DETECT_ID_BE:
        return belgian(p);
    case DETECT_ID_BR:
        return brazilian(p);
    case DETECT_ID_CA:
        return p[0] != '0' && p[0] != '8' && luhn(p, n);
    case DETECT_ID_CH:
        return swiss(p);
    case DETECT_ID_DE:
        return german(p);
    case DETECT_ID_ES:
        return spanish(p);
    case DETECT_ID_FR:
        return french(p, n);
    case DETECT_ID_GB:
        return british(p);
    case DETECT_ID_IN:
        return indian(p);
    case DETECT_ID_IT:
        return italian(p);
    case DETECT_ID_PL:
        return polish(p);
    case DETECT_ID_SE:
        return swedish(p, n);
    case DETECT_ID_US:
        return american(p);
    default:
        return false;
    }
}
