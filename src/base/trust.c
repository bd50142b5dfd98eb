/*
 * See trust.h. The path is walked like the kernel does it, link by link: whoever can replace a link
 * or a folder decides what is found behind it. In a folder with the sticky bit (/tmp) others can't
 * replace what is not theirs, so there the owner of each entry decides. Access lists need no look
 * of their own: what they give to others shows in the group's bits.
 */
#include "base/trust.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define MAX_LINKS 40

struct walk {
    char done[PATH_MAX]; /* what was walked, without links; "" is the root folder */
    char rest[PATH_MAX];
    unsigned links;
    bool root_alone; /* not the user, no group, no sticky folder */
    struct nrg_error *err;
};

/* The group that has the user's name and nobody else in it, as useradd makes one for each user. */
static bool is_own_group(gid_t gid)
{
    const struct passwd *user = getpwuid(geteuid());
    if (!user || user->pw_gid != gid)
        return false;
    char name[256];
    nrg_copy(name, sizeof name, user->pw_name);
    const struct group *group = getgrgid(gid);
    return group && !strcmp(group->gr_name, name) && (!group->gr_mem || !group->gr_mem[0]);
}

static int refuse(struct walk *w, const char *path, const char *why)
{
    return nrg_fail(w->err, -EPERM, path[0] ? path : "/", "%s", why);
}

static int check_entry(struct walk *w, const char *path, const struct stat *st)
{
    if (st->st_uid != 0 && (w->root_alone || st->st_uid != geteuid()))
        return refuse(w, path, w->root_alone ? "belongs to a user" : "belongs to another user");
    if (S_ISLNK(st->st_mode) || (!w->root_alone && S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX))
        return 0;
    if (st->st_mode & S_IWOTH)
        return refuse(w, path, "can be written by everybody");
    if (st->st_mode & S_IWGRP && (w->root_alone || (st->st_gid != 0 && !is_own_group(st->st_gid))))
        return refuse(w, path, "can be written by its group");
    return 0;
}

/* The link's target takes the link's place in what is left to walk. */
static int follow_link(struct walk *w, const char *path)
{
    char target[PATH_MAX], rest[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return -errno;
    target[n] = '\0';
    if (++w->links > MAX_LINKS)
        return -ELOOP;
    if (snprintf(rest, sizeof rest, "%s/%s", target, w->rest) >= (int)sizeof rest)
        return -ENAMETOOLONG;
    memcpy(w->rest, rest, sizeof rest);
    if (target[0] == '/')
        w->done[0] = '\0';
    return 0;
}

static int enter(struct walk *w, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    if (!strcmp(name, ".."))
        *(strrchr(w->done, '/') ? strrchr(w->done, '/') : w->done) = '\0';
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return 0;
    if (snprintf(path, sizeof path, "%s/%s", w->done, name) >= (int)sizeof path)
        return -ENAMETOOLONG;
    if (lstat(path, &st))
        return -errno;
    int rc = check_entry(w, path, &st);
    if (rc || S_ISLNK(st.st_mode))
        return rc ? rc : follow_link(w, path);
    memcpy(w->done, path, sizeof path);
    return 0;
}

static int trust(const char *path, bool root_alone, struct nrg_error *err)
{
    struct walk w = {.err = err, .root_alone = root_alone};
    struct stat st;
    char name[NAME_MAX + 1];
    if (path[0] != '/' || strlen(path) >= sizeof w.rest)
        return nrg_fail(err, -EINVAL, path, "is no path from the root folder on");
    nrg_copy(w.rest, sizeof w.rest, path);
    int rc = stat("/", &st) ? -errno : check_entry(&w, "", &st);
    while (!rc && w.rest[0]) {
        size_t len = strcspn(w.rest, "/"), skip = len + (w.rest[len] == '/');
        if (len >= sizeof name)
            return nrg_fail(err, -ENAMETOOLONG, path, "%s", strerror(ENAMETOOLONG));
        memcpy(name, w.rest, len);
        name[len] = '\0';
        memmove(w.rest, w.rest + skip, strlen(w.rest + skip) + 1);
        rc = enter(&w, name);
    }
    return rc == -EPERM || !rc ? rc : nrg_fail(err, rc, path, "%s", strerror(-rc));
}

int nrg_trust_file(const char *path, struct nrg_error *err)
{
    return trust(path, false, err);
}

int nrg_trust_system_file(const char *path, struct nrg_error *err)
{
    return trust(path, true, err);
}
