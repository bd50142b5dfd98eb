/* See identity.h. */
#include "cli/doctor/identity.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"

#define MAX_BYTES  65536 /* of a file that is looked through */
#define LEAST_USER 1000  /* below are the system's own, which every machine has */
#define MOST_USER  59999
#define BLANKS     " \t\r"

static bool is_common(enum nrg_name_kind kind, const char *text, size_t len)
{
    static const char *const common[] = {"localhost", "localdomain", "(none)", "none",  "unknown",
                                         "root",      "/",           "/root",  "/home", "linux"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (strlen(common[i]) == len && !strncasecmp(common[i], text, len))
            return true;
    /* "local" or "lan" is a word; with a dot in it a domain is one. */
    return len < 2 || (kind == NRG_NAME_DOMAIN && !memchr(text, '.', len)) ||
           (kind == NRG_NAME_HOME && (len < 4 || *text != '/')) ||
           (len > 4 && !strncmp(text, "ip6-", 4));
}

int nrg_identity_add(struct nrg_identity *id, enum nrg_name_kind kind, const char *text, size_t len)
{
    struct nrg_name name = {.kind = kind};
    while (len && text[len - 1] == '.' && kind != NRG_NAME_HOME)
        len--;
    if (is_common(kind, text, len) || len >= sizeof name.text)
        return 0;
    memcpy(name.text, text, len);
    for (size_t i = 0; i < id->n; i++)
        if (!strcmp(id->names[i].text, name.text))
            return 0;
    return nrg_append(&id->names, &id->n, &id->cap, &name, sizeof name);
}

/* A host with its domain is known by both, and without it. */
static int add_host(struct nrg_identity *id, const char *text, size_t len)
{
    const char *dot = memchr(text, '.', len);
    size_t label = dot ? (size_t)(dot - text) : len;
    if (is_common(NRG_NAME_HOST, text, label))
        return 0;
    int rc = nrg_identity_add(id, NRG_NAME_HOST, text, len);
    if (!rc && dot)
        rc = nrg_identity_add(id, NRG_NAME_HOST, text, label);
    if (!rc && dot)
        rc = nrg_identity_add(id, NRG_NAME_DOMAIN, dot + 1, len - label - 1);
    return rc;
}

/* The real name comes first in the field, up to a comma. */
static int add_person(struct nrg_identity *id, const char *name, size_t name_len, const char *real,
                      size_t real_len, const char *home, size_t home_len)
{
    const char *comma = memchr(real, ',', real_len);
    size_t len = comma ? (size_t)(comma - real) : real_len;
    int rc = nrg_identity_add(id, NRG_NAME_HOME, home, home_len);
    if (!rc && len >= 4)
        rc = nrg_identity_add(id, NRG_NAME_USER, real, len);
    return rc ? rc : nrg_identity_add(id, NRG_NAME_USER, name, name_len);
}

/* Those with a login of their own; names of two letters would be found in everything. */
static int take_passwd(struct nrg_identity *id, char *line)
{
    char *field[7] = {line};
    uint64_t uid;
    for (size_t i = 1; i < 7; i++) {
        char *colon = strchr(field[i - 1], ':');
        if (!colon)
            return 0;
        *colon = '\0';
        field[i] = colon + 1;
    }
    if (nrg_parse_u64(field[2], strlen(field[2]), &uid) || uid < LEAST_USER || uid > MOST_USER ||
        strlen(field[0]) < 3)
        return 0;
    return add_person(id, field[0], strlen(field[0]), field[4], strlen(field[4]), field[5],
                      strlen(field[5]));
}

static int take_hostname(struct nrg_identity *id, char *line)
{
    return *line == '#' ? 0 : add_host(id, line, strcspn(line, BLANKS));
}

static int take_domain(struct nrg_identity *id, char *line)
{
    return nrg_identity_add(id, NRG_NAME_DOMAIN, line, strcspn(line, BLANKS));
}

static int take_hosts(struct nrg_identity *id, char *line)
{
    int rc = 0;
    line[strcspn(line, "#")] = '\0';
    line += strcspn(line, BLANKS); /* the address is recognised by its shape */
    while (!rc && *(line += strspn(line, BLANKS))) {
        size_t len = strcspn(line, BLANKS);
        rc = add_host(id, line, len);
        line += len;
    }
    return rc;
}

static int take_resolver(struct nrg_identity *id, char *line)
{
    int rc = 0;
    if (strncmp(line, "search", 6) != 0 && strncmp(line, "domain", 6) != 0)
        return 0;
    line += 6;
    while (!rc && *(line += strspn(line, BLANKS))) {
        size_t len = strcspn(line, BLANKS);
        rc = nrg_identity_add(id, NRG_NAME_DOMAIN, line, len);
        line += len;
    }
    return rc;
}

static int learn_file(struct nrg_identity *id, const struct nrg_root *root, const char *path,
                      int (*take)(struct nrg_identity *, char *))
{
    char *text = nrg_calloc(1, MAX_BYTES), *rest = text;
    int rc = text ? 0 : -ENOMEM;
    if (!rc && nrg_root_read_head(root, path, text, MAX_BYTES) <= 0)
        rest = NULL;
    while (!rc && rest && *rest) {
        char *line = rest;
        rest += strcspn(rest, "\n");
        if (*rest)
            *rest++ = '\0';
        rc = take(id, line);
    }
    free(text);
    return rc;
}

/* Who asks, and on which machine. */
static int learn_process(struct nrg_identity *id)
{
    static const char *const users[] = {"SUDO_USER", "LOGNAME", "USER"};
    const struct passwd *user = getpwuid(getuid());
    const char *home = getenv("HOME");
    struct utsname system;
    int rc = home ? nrg_identity_add(id, NRG_NAME_HOME, home, strlen(home)) : 0;
    if (!rc && user)
        rc = add_person(id, user->pw_name, strlen(user->pw_name), "", 0, user->pw_dir,
                        strlen(user->pw_dir));
    for (size_t i = 0; !rc && i < sizeof users / sizeof *users; i++) {
        const char *name = getenv(users[i]);
        rc = name ? nrg_identity_add(id, NRG_NAME_USER, name, strlen(name)) : 0;
    }
    if (!rc && !uname(&system)) {
        rc = add_host(id, system.nodename, strlen(system.nodename));
        if (!rc)
            rc =
                nrg_identity_add(id, NRG_NAME_DOMAIN, system.domainname, strlen(system.domainname));
    }
    return rc;
}

/* The longest first, so that a host's whole name goes before its first label. */
static int by_length(const void *a, const void *b)
{
    size_t x = strlen(((const struct nrg_name *)a)->text);
    size_t y = strlen(((const struct nrg_name *)b)->text);
    return (x < y) - (x > y);
}

int nrg_identity_learn(struct nrg_identity *id, const struct nrg_root *root)
{
    static const struct {
        const char *path;
        int (*take)(struct nrg_identity *, char *);
    } files[] = {{"/etc/hostname", take_hostname},
                 {"/proc/sys/kernel/hostname", take_hostname},
                 {"/proc/sys/kernel/domainname", take_domain},
                 {"/etc/mailname", take_hostname},
                 {"/etc/hosts", take_hosts},
                 {"/etc/resolv.conf", take_resolver},
                 {"/etc/passwd", take_passwd}};
    *id = (struct nrg_identity){0};
    int rc = learn_process(id);
    for (size_t i = 0; !rc && i < sizeof files / sizeof *files; i++)
        rc = learn_file(id, root, files[i].path, files[i].take);
    if (rc)
        nrg_identity_release(id);
    else if (id->n)
        qsort(id->names, id->n, sizeof *id->names, by_length);
    return rc;
}

void nrg_identity_release(struct nrg_identity *id)
{
    free(id->names);
    *id = (struct nrg_identity){0};
}
