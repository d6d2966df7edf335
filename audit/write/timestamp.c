/* Writes times with arithmetic of its own, as each line of the log has two, and parses them by way
 * of timegm. It parses years from 1970 to 2500 and
 * refuses a day that its month does not have. */
#include "timestamp.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS 1000000000ULL

uint64_t timestamp_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static char *put_digits(char *to, unsigned v, int n)
{
    for (int i = n; i-- > 0; v /= 10)
        to[i] = (char)('0' + v % 10);
    return to + n;
}

/* The date of a day since 1970, by years that begin in March: a leap day is then the last one. */
static void date_of(unsigned day, unsigned *year, unsigned *month, unsigned *mday)
{
    enum { MARCH_0000 = 719468, CENTURIES_4 = 146097, CENTURY = 36524, YEARS_4 = 1461 };
    unsigned d = day + MARCH_0000, y = d / CENTURIES_4 * 400;
    d %= CENTURIES_4;
    unsigned c = d / CENTURY < 4 ? d / CENTURY : 3; /* the fourth has a day more */
    d -= c * CENTURY;
    y += c * 100 + d / YEARS_4 * 4;
    d %= YEARS_4;
    unsigned in4 = d / 365 < 4 ? d / 365 : 3;
    d -= in4 * 365;
    unsigned m = (5 * d + 2) / 153; /* 0: March; 153 days are five months */
    *mday = d - (153 * m + 2) / 5 + 1;
    *month = m < 10 ? m + 3 : m - 9;
    *year = y + in4 + (m >= 10);
}

char *timestamp_text(uint64_t ns, char *buf, size_t size)
{
    static const char between[] = "--T::."; /* after the year, the month, ... */
    unsigned second = (unsigned)(ns / NS % 86400), year, parts[5];
    if (size < TIMESTAMP_MAX) {
        buf[0] = 0;
        return buf;
    }
    date_of((unsigned)(ns / NS / 86400), &year, &parts[0], &parts[1]);
    parts[2] = second / 3600;
    parts[3] = second / 60 % 60;
    parts[4] = second % 60;
    char *at = put_digits(buf, year, 4);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        *at++ = between[i];
        at = put_digits(at, parts[i], 2);
    }
    *at++ = between[ARRAY_LEN(parts)];
    at = put_digits(at, (unsigned)(ns % NS), 9);
    memcpy(at, "Z", 2);
    return buf;
}

char *timestamp_compact(uint64_t ns, char *buf, size_t size)
{
    time_t s = (time_t)(ns / NS);
    struct tm tm;
    gmtime_r(&s, &tm);
    snprintf(buf, size, "%04d%02d%02dT%02d%02d%02dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
             tm.tm_hour, tm.tm_min, tm.tm_sec);
    return buf;
}

/* Exactly n digits off the front, at most max. */
static int digits(struct slice *s, size_t n, unsigned max, int *ret)
{
    uint64_t v;
    if (s->n < n || slice_u64((struct slice){s->p, n}, max, &v) < 0)
        return -1;
    *ret = (int)v;
    s->p += n;
    s->n -= n;
    return 0;
}

static int literal(struct slice *s, char c)
{
    if (s->n == 0 || (s->p[0] != c && !(c == 'T' && s->p[0] == ' ')))
        return -1;
    s->p++;
    s->n--;
    return 0;
}

static int parse_zone(struct slice *s, int64_t *seconds)
{
    int h, m;
    *seconds = 0;
    if (s->n == 1 && (s->p[0] == 'Z' || s->p[0] == 'z'))
        return 0;
    if (s->n != 6 || (s->p[0] != '+' && s->p[0] != '-'))
        return -1;
    int sign = s->p[0] == '+' ? 1 : -1;
    s->p++;
    s->n--;
    if (digits(s, 2, 23, &h) < 0 || literal(s, ':') < 0 || digits(s, 2, 59, &m) < 0)
        return -1;
    *seconds = sign * (h * 3600 + m * 60);
    return 0;
}

static int parse_fraction(struct slice *s, uint64_t *ns)
{
    *ns = 0;
    if (s->n == 0 || s->p[0] != '.')
        return 0;
    s->p++;
    s->n--;
    uint64_t scale = NS / 10;
    size_t n = 0;
    for (; s->n && s->p[0] >= '0' && s->p[0] <= '9'; n++, s->p++, s->n--, scale /= 10)
        *ns += (uint64_t)(s->p[0] - '0') * scale;
    return n > 0 && n <= 9 ? 0 : -1;
}

static int parse_absolute(struct slice s, uint64_t *ret)
{
    struct tm tm = {0};
    uint64_t ns = 0;
    int64_t zone = 0;
    if (digits(&s, 4, 9999, &tm.tm_year) < 0 || literal(&s, '-') < 0 ||
        digits(&s, 2, 12, &tm.tm_mon) < 0 || literal(&s, '-') < 0 ||
        digits(&s, 2, 31, &tm.tm_mday) < 0)
        return -1;
    if (s.n && (literal(&s, 'T') < 0 || digits(&s, 2, 23, &tm.tm_hour) < 0 ||
                literal(&s, ':') < 0 || digits(&s, 2, 59, &tm.tm_min) < 0 || literal(&s, ':') < 0 ||
                digits(&s, 2, 60, &tm.tm_sec) < 0 || parse_fraction(&s, &ns) < 0 ||
                parse_zone(&s, &zone) < 0))
        return -1;
    if (tm.tm_year < 1970 || tm.tm_year > 2500 || tm.tm_mon == 0 || tm.tm_mday == 0)
        return -1;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int day = tm.tm_mday;
    int64_t t = timegm(&tm);
    if (tm.tm_mday != day) /* 31 February was folded into March */
        return -1;
    t -= zone;
    if (t < 0)
        return -1;
    *ret = (uint64_t)t * NS + ns;
    return 0;
}

static int parse_distance(struct slice s, uint64_t now, uint64_t *ret)
{
    static const char units[] = "smhd";
    static const uint64_t seconds[] = {1, 60, 3600, 86400};
    uint64_t v;
    if (s.n < 2)
        return -1;
    const char *u = memchr(units, s.p[s.n - 1], 4);
    if (u == NULL || slice_u64((struct slice){s.p, s.n - 1}, 1000000, &v) < 0)
        return -1;
    v *= seconds[u - units] * NS;
    *ret = v < now ? now - v : 0;
    return 0;
}

int timestamp_parse(const char *text, uint64_t now, uint64_t *ret, struct err *err)
{
    struct slice s = slice_str(text);
    if (parse_distance(s, now, ret) == 0 || parse_absolute(s, ret) == 0)
        return 0;
    return err_set(
        err, ERR_PARSE,
        "\"%.60s\" is not a time; write 2026-11-21T08:00:00Z, 2026-11-21, or 10m for ten "
        "minutes ago",
        text);
}
