/*
 * See redact.h. The text is walked once; at each place the shapes are tried, the surest first. A
 * shape says how many bytes it is long here; 0: it is not here. In doubt it is replaced: a model's
 * name that looks like a serial number is lost, a serial number is not sent.
 */
#include "cli/doctor/redact.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define HEX       "0123456789abcdefABCDEF"
#define LONG_HEX  16 /* an id, wherever it stands */
#define SHORT_HEX 12 /* one, if it stands alone and has letters and digits */
#define LONG_DEC  20 /* a time since 1970 in ns has 19 digits */
#define SERIAL    10 /* letters and digits in capitals, at least */
#define MIXED     8  /* the same, if they alternate */
#define KEY       20 /* of both cases, and digits */

/* A place in the text, which ends with a NUL. */
struct at {
    const char *text, *p;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) != 0;
}

static bool begins_word(const struct at *a)
{
    return a->p == a->text || !is_word(a->p[-1]);
}

static bool is_hex(char c)
{
    return isxdigit((unsigned char)c) != 0;
}

static size_t span(const char *p, const char *set)
{
    return strspn(p, set);
}

/* 8-4-4-4-12, also with '_' as in names of control groups. */
static size_t find_uuid(const struct at *a)
{
    static const size_t groups[] = {8, 4, 4, 4, 12};
    const char *p = a->p;
    if (a->p > a->text && is_hex(a->p[-1]))
        return 0;
    for (size_t i = 0; i < 5; i++) {
        if (span(p, HEX) != groups[i])
            return 0;
        p += groups[i];
        if (i < 4 && *p != '-' && *p != '_')
            return 0;
        p += i < 4;
    }
    return (size_t)(p - a->p);
}

/* `width` digits each, with one separator between them: how many groups, and their length. */
static size_t count_groups(const char *p, size_t width, const char *separators, size_t *len)
{
    size_t n = 0;
    char separator = '\0';
    for (const char *q = p;; q++) {
        if (span(q, HEX) != width)
            return *q && n && strchr(separators, q[-1]) && !is_word(*q) ? n : 0;
        q += width;
        *len = (size_t)(q - p);
        n++;
        separator = separator ? separator : *q;
        if (!*q || *q != separator || !strchr(separators, *q))
            return n;
    }
}

static bool has_letter(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (isalpha((unsigned char)p[i]))
            return true;
    return false;
}

/* MAC, EUI-64, IPoIB; InfiniBand's GUID; Cisco's way to write a MAC. */
static size_t find_hardware(const struct at *a)
{
    size_t len = 0;
    if (!begins_word(a))
        return 0;
    size_t n = count_groups(a->p, 2, ":-", &len);
    if ((n == 6 || n == 8 || n == 20) && !is_word(a->p[len]))
        return len;
    n = count_groups(a->p, 4, ":", &len);
    if (n == 4 && !is_word(a->p[len]))
        return len;
    n = count_groups(a->p, 4, ".", &len);
    return n == 3 && !is_word(a->p[len]) && has_letter(a->p, len) ? len : 0;
}

/* "lo" names nobody. */
static size_t find_ip(const struct at *a)
{
    char text[64];
    struct in6_addr address;
    size_t n = span(a->p, HEX ":."), groups = 0;
    if (!begins_word(a) || (a->p > a->text && a->p[-1] == '.'))
        return 0;
    size_t v4 = span(a->p, "0123456789.");
    while (v4 && a->p[v4 - 1] == '.')
        v4--;
    while (n && (a->p[n - 1] == '.' || (n > 1 && a->p[n - 1] == ':' && a->p[n - 2] != ':')))
        n--;
    if (v4 < sizeof text && v4 >= 7) {
        memcpy(text, a->p, v4);
        text[v4] = '\0';
        if (inet_pton(AF_INET, text, &address) == 1 && !is_word(a->p[v4]))
            return strncmp(text, "127.", 4) && strcmp(text, "0.0.0.0") ? v4 : 0;
    }
    if (n >= sizeof text || n < 4)
        return 0;
    memcpy(text, a->p, n);
    text[n] = '\0';
    for (size_t i = 0; i < n; i++)
        groups += is_hex(text[i]) && (!i || text[i - 1] == ':');
    return groups >= 2 && !is_word(a->p[n]) && inet_pton(AF_INET6, text, &address) == 1 ? n : 0;
}

/* Masks of /proc/PID/status, which are as long as an id. */
static bool is_mask(const struct at *a)
{
    const char *line = a->p;
    while (line > a->text && line[-1] != '\n')
        line--;
    return !strncmp(line, "Cap", 3) || !strncmp(line, "Sig", 3) || !strncmp(line, "Shd", 3);
}

static size_t find_hex(const struct at *a)
{
    bool prefix = !strncasecmp(a->p, "0x", 2);
    const char *p = a->p + (prefix ? 2 : 0);
    size_t n = span(p, HEX), digits = span(p, "0123456789");
    if (n < SHORT_HEX || (a->p > a->text && is_hex(a->p[-1])) || is_mask(a))
        return 0;
    if (digits == n && !prefix) /* a number */
        return n >= LONG_DEC ? n : 0;
    bool alone = begins_word(a) && !is_word(p[n]);
    bool mixed = strcspn(p, "0123456789") < n;
    return n >= LONG_HEX || (alone && mixed) ? (size_t)(p - a->p) + n : 0;
}

/* Names of network devices after their address. */
static size_t find_device(const struct at *a)
{
    bool named = !strncmp(a->p, "enx", 3) || !strncmp(a->p, "wlx", 3) || !strncmp(a->p, "wwx", 3);
    return named && begins_word(a) && span(a->p + 3, HEX) == 12 ? 15 : 0;
}

struct mix {
    size_t upper, lower, digits, changes;
};

static size_t look_at_word(const char *p, struct mix *mix)
{
    size_t n = 0;
    *mix = (struct mix){0};
    for (; is_word(p[n]); n++) {
        bool digit = isdigit((unsigned char)p[n]);
        mix->digits += digit;
        mix->upper += isupper((unsigned char)p[n]) != 0;
        mix->lower += islower((unsigned char)p[n]) != 0;
        mix->changes += n && digit != (isdigit((unsigned char)p[n - 1]) != 0);
    }
    return n;
}

static size_t find_serial(const struct at *a)
{
    struct mix mix;
    size_t n = begins_word(a) ? look_at_word(a->p, &mix) : 0;
    if (!n || !mix.digits || !mix.upper)
        return 0;
    bool capitals =
        !mix.lower && ((n >= SERIAL && mix.digits >= 3) || (n >= MIXED && mix.changes >= 3));
    return capitals || (n >= KEY && mix.lower && mix.digits >= 2) ? n : 0;
}

/* Units of systemd have an '@' and end like this. */
static bool is_unit(const char *p, size_t len)
{
    static const char *const ends[] = {".service", ".slice", ".socket", ".scope",
                                       ".mount",   ".timer", ".target", ".device"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (len > n && !strncmp(p + len - n, ends[i], n))
            return true;
    }
    return span(p, "0123456789") == len;
}

static bool is_own_host(const struct nrg_identity *id, const char *p, size_t len)
{
    for (size_t i = 0; i < id->n; i++)
        if (id->names[i].kind == NRG_NAME_HOST && strlen(id->names[i].text) == len &&
            !strncasecmp(id->names[i].text, p, len))
            return true;
    return false;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

static size_t find_email(const struct nrg_identity *id, const struct at *a)
{
    size_t local = span(a->p, LETTERS "._%+");
    if (!local || a->p[local] != '@' || (a->p > a->text && strchr(LETTERS "._%+", a->p[-1])))
        return 0;
    const char *host = a->p + local + 1;
    size_t len = span(host, LETTERS "._");
    while (len && (host[len - 1] == '.' || host[len - 1] == '-'))
        len--;
    if (!len || is_unit(host, len) || is_own_host(id, host, len))
        return 0;
    return local + 1 + len;
}

/* What follows a word that says so: "serial: X", "ID_SERIAL=X", "\"ssid\": \"X\"". Its place. */
static const char *find_named(const struct at *a, size_t *len)
{
    static const char *const words[] = {
        "serial", "uuid",       "guid",    "wwn",     "wwid",        "ssid",     "machine-id",
        "asset",  "machine_id", "boot_id", "hostid",  "hostname",    "nodename", "imei",
        "imsi",   "iccid",      "hwaddr",  "macaddr", "mac address", "password", "service tag"};
    const char *p = NULL;
    for (size_t i = 0; !p && i < sizeof words / sizeof *words; i++)
        if (!strncasecmp(a->p, words[i], strlen(words[i])))
            p = a->p + strlen(words[i]);
    if (!p)
        return NULL;
    p += span(p, LETTERS "_");
    if (!strncasecmp(p, " number", 7) || !strncasecmp(p, " tag", 4))
        p += *p && p[1] == 't' ? 4 : 7;
    p += span(p, "\"' \t");
    if (*p != ':' && *p != '=')
        return NULL;
    p++;
    p += span(p, "\"' \t");
    *len = strcspn(p, "\"'\n,;");
    return *len && *p != '<' ? p : NULL;
}

/* A component of a path that somebody chose, or that has an id in it. */
static size_t find_in_path(const struct at *a, const char **by)
{
    static const struct {
        const char *folder, *by;
    } folders[] = {{"/home/", "<home>"},
                   {"/Users/", "<home>"},
                   {"/run/media/", "<home>"},
                   {"/media/", "<home>"},
                   {"/by-id/", "/by-id/<id>"},
                   {"/by-uuid/", "/by-uuid/<id>"},
                   {"/by-partuuid/", "/by-partuuid/<id>"},
                   {"/by-label/", "/by-label/<id>"},
                   {"/by-partlabel/", "/by-partlabel/<id>"}};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t n = strlen(folders[i].folder);
        size_t len = strncmp(a->p, folders[i].folder, n) ? 0 : strcspn(a->p + n, "/ \t\n\"',:;)");
        *by = folders[i].by;
        if (len && a->p[n] != '<')
            return n + len;
    }
    return 0;
}

/* Names of storage that begin with what they are. */
static size_t find_storage(const struct at *a)
{
    static const char *const begins[] = {"iqn.", "nqn.", "eui.", "naa.", "t10."};
    for (size_t i = 0; begins_word(a) && i < sizeof begins / sizeof *begins; i++)
        if (!strncmp(a->p, begins[i], 4))
            return strcspn(a->p, " \t\n\"',;/)");
    return 0;
}

static size_t find_name(const struct nrg_identity *id, const struct at *a, const char **by)
{
    static const char *const shown[] = {"<host>", "<host>", "<user>", "<home>"};
    size_t token = span(a->p, LETTERS ".");
    for (size_t i = 0; begins_word(a) && i < id->n; i++) {
        const struct nrg_name *name = &id->names[i];
        size_t len = strlen(name->text);
        *by = shown[name->kind];
        if (name->kind == NRG_NAME_DOMAIN && token >= len && *a->p != '.' &&
            !strncasecmp(a->p + token - len, name->text, len) &&
            (token == len || a->p[token - len - 1] == '.'))
            return token;
        if (strncasecmp(a->p, name->text, len) || is_word(a->p[len]))
            continue;
        if (name->kind == NRG_NAME_HOST) /* with its domain, whichever that is */
            while (a->p[len] == '.' && is_word(a->p[len + 1]))
                len += 1 + span(a->p + len + 1, LETTERS);
        return len;
    }
    return 0;
}

/* How many bytes are replaced here, and by what; those before `*keep` stay. */
static size_t find_secret(const struct nrg_identity *id, const struct at *a, const char **by,
                          size_t *keep)
{
    size_t len;
    const char *value = find_named(a, &len);
    *keep = value ? (size_t)(value - a->p) : 0;
    *by = "<id>";
    if (value)
        return len;
    if ((len = find_in_path(a, by)) || (len = find_name(id, a, by)))
        return len;
    *by = "<email>";
    if ((len = find_email(id, a)))
        return len;
    *by = "<id>";
    if ((len = find_uuid(a)) || (len = find_storage(a)) || (len = find_device(a)))
        return len;
    *by = "<address>";
    if ((len = find_hardware(a)) || (len = find_ip(a)))
        return len;
    *by = "<id>";
    return (len = find_hex(a)) ? len : find_serial(a);
}

static int redact(const struct nrg_identity *id, const char *text, size_t len, struct nrg_str *out)
{
    int rc = nrg_str_add(out, "", 0);
    for (size_t i = 0; !rc && i < len;) {
        const struct at at = {text, text + i};
        const char *by;
        size_t keep, secret = find_secret(id, &at, &by, &keep);
        rc = nrg_str_add(out, at.p, secret ? keep : 1);
        if (!rc && secret)
            rc = nrg_str_add(out, by, strlen(by));
        i += secret ? keep + secret : 1;
    }
    return rc;
}

char *nrg_redact(const struct nrg_identity *id, const char *text, size_t len)
{
    struct nrg_str out = {0};
    char *copy = nrg_calloc(1, len + 1); /* ends, and has no NUL before */
    int rc = copy ? 0 : -1;
    for (size_t i = 0; !rc && i < len; i++)
        copy[i] = text[i] ? text[i] : ' ';
    rc = rc ? rc : redact(id, copy, len, &out);
    free(copy);
    if (!rc)
        return out.text;
    nrg_str_release(&out);
    return NULL;
}
