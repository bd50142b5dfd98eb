/*
 * See diagnosis.h. Of what drivers could not read, these are problems: what has a remedy, unless
 * another way reads the same (three ways lead to RAPL); nrgd that is there and not of use; and, if
 * nothing measures the processors, the first reason for that.
 */
#include "cli/doctor/diagnosis.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nrg/nrg.h>

#include "base/mem.h"
#include "sensors/files.h"
#include "sensors/nrgd/link.h"

static void add_remedy(struct nrg_finding *finding, const char *line, size_t len)
{
    struct nrg_doctor_remedy *remedy = &finding->remedies[finding->n_remedies++];
    struct nrg_fix fix;
    snprintf(remedy->text, sizeof remedy->text, "%.*s", (int)len, line);
    if (nrg_fix_find(line, len, &fix)) {
        remedy->tried = fix.tried;
        remedy->for_everybody = nrg_fix_is_for_everybody(&fix);
        nrg_copy(remedy->command, sizeof remedy->command, fix.command ? fix.command : "");
    } else if (nrg_fix_file_command(remedy->text)) {
        remedy->tried = true;
        nrg_copy(remedy->command, sizeof remedy->command, nrg_fix_file_command(remedy->text));
    }
}

int nrg_findings_add(struct nrg_findings *list, const char *what, const char *remedies,
                     const char *why, ...)
{
    if (nrg_reserve(&list->items, &list->cap, list->n + 1, sizeof *list->items))
        return -ENOMEM;
    struct nrg_finding *finding = &list->items[list->n];
    *finding =
        (struct nrg_finding){.remedies = nrg_calloc(NRG_MAX_REMEDIES, sizeof *finding->remedies)};
    if (!finding->remedies)
        return -ENOMEM;
    list->n++;
    nrg_copy(finding->what, sizeof finding->what, what);
    va_list ap;
    va_start(ap, why);
    vsnprintf(finding->why, sizeof finding->why, why, ap);
    va_end(ap);
    while (*remedies && finding->n_remedies < NRG_MAX_REMEDIES) {
        size_t len = strcspn(remedies, "\n");
        add_remedy(finding, remedies, len);
        remedies += len + (remedies[len] == '\n');
    }
    return 0;
}

/* One of several ways to the same energy: no problem where another one is open. */
static bool is_one_way(const struct nrg_unavailable *no)
{
    return !strncmp(no->driver->name, "rapl-", 5) || !strcmp(no->driver->name, "dcmi");
}

/* Registers are the last resort: they are no problem of their own where another way exists. */
static bool is_registers(const struct nrg_unavailable *no)
{
    return !strcmp(no->driver->name, "rapl-msr");
}

/* Where the PMU is missing, powercap is the way that the kernel's module opens. */
static bool is_absent_pmu(const struct nrg_unavailable *no)
{
    return !strcmp(no->driver->name, "rapl-perf") && !strstr(no->why, "perf_event_open");
}

static bool is_problem(const struct nrg_unavailable *no, bool covered)
{
    if (!strcmp(no->driver->name, "nrgd"))
        return true;
    if (is_registers(no) || is_absent_pmu(no) || !strcmp(no->driver->name, "process"))
        return false;
    return no->fix[0] && (!is_one_way(no) || !covered);
}

/* Several zones of one tree have one reason and one remedy: the first stands for all. */
static bool is_repeated(const struct nrg_findings *list, const struct nrg_unavailable *no)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct nrg_finding *finding = &list->items[i];
        size_t len = strcspn(no->fix, "\n");
        if (len && finding->n_remedies && strlen(finding->remedies[0].text) == len &&
            !strncmp(finding->remedies[0].text, no->fix, len))
            return true;
    }
    return false;
}

/* Without /sys all sensors have the same reason, which is said once (surroundings.c). */
static int diagnose_sensors(const struct nrg_probe *probe, struct nrg_diagnosis *out)
{
    bool has_sys = nrg_root_exists(&probe->ctx->root, "/sys/class");
    bool covered = nrg_cpu_is_covered(probe);
    int rc = 0;
    for (size_t u = 0; !rc && u < probe->n_unavailable; u++) {
        const struct nrg_unavailable *no = &probe->unavailable[u];
        bool problem = has_sys && is_problem(no, covered);
        if (problem && is_repeated(&out->problems, no))
            continue;
        rc = nrg_findings_add(problem ? &out->problems : &out->notes, no->what,
                              problem ? no->fix : "", "%s", no->why);
    }
    if (!rc && has_sys && !covered && !out->problems.n)
        rc = nrg_findings_add(&out->problems, "no energy sensor", "",
                              "nothing here measures the processors: energy is estimated from CPU "
                              "time; a meter at the plug can be added (--meter)");
    return rc;
}

/* Named in the group's line, but not a member as far as the kernel knows. */
static bool joined_since_login(const struct nrg_root *root)
{
    char text[8192], name[80];
    const struct passwd *user = getpwuid(geteuid());
    if (!user || nrg_root_read_head(root, "/etc/group", text, sizeof text) <= 0)
        return false;
    snprintf(name, sizeof name, "%.64s", user->pw_name);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *members = strncmp(line, "nrg:", 4) ? NULL : strrchr(line, ':');
        for (char *at = members; at && (at = strstr(at + 1, name));)
            if ((at[-1] == ':' || at[-1] == ',') && (!at[strlen(name)] || at[strlen(name)] == ','))
                return true;
    }
    return false;
}

/* The driver said why, and waited for it long enough. */
static bool is_out_of_reach(const struct nrg_probe *probe)
{
    for (size_t u = 0; u < probe->n_unavailable; u++)
        if (!strcmp(probe->unavailable[u].what, "nrgd"))
            return true;
    return false;
}

static int diagnose_daemon(const struct nrg_context *ctx, const struct nrg_probe *probe,
                           struct nrg_diagnosis *out)
{
    struct nrg_nrgd_link link;
    char fix[NRG_FIX_BYTES];
    const char *path = nrg_nrgd_socket();
    if (!path[0] || !nrg_root_is_live(&ctx->root) || is_out_of_reach(probe) ||
        nrg_nrgd_connect(&link, path, NRG_NS_PER_S, NULL))
        return 0;
    char program[sizeof link.welcome.program];
    nrg_copy_clean(program, sizeof program, link.welcome.program, strlen(link.welcome.program));
    bool coarse = link.welcome.view == NRG_VIEW_COARSE;
    nrg_nrgd_close(&link);
    int rc = 0;
    if (strcmp(program, NRG_VERSION) != 0)
        rc = nrg_findings_add(&out->problems, "nrgd of another release",
                              nrg_fixes(&ctx->root, NRG_DAEMON_OTHER, fix),
                              "nrgd is %s, nrg is " NRG_VERSION, program);
    if (!rc && coarse && joined_since_login(&ctx->root))
        rc = nrg_findings_add(&out->problems, "group nrg",
                              nrg_fixes(&ctx->root, NRG_DAEMON_LOGIN, fix),
                              "you are in group nrg, but not since you logged in");
    return rc;
}

int nrg_diagnose(const struct nrg_context *ctx, const struct nrg_probe *probe,
                 struct nrg_diagnosis *out)
{
    *out = (struct nrg_diagnosis){0};
    int rc = diagnose_sensors(probe, out);
    if (!rc)
        rc = diagnose_daemon(ctx, probe, out);
    if (!rc)
        rc = nrg_diagnose_surroundings(ctx, out);
    if (rc)
        nrg_diagnosis_release(out);
    return rc;
}

static void release_findings(struct nrg_findings *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i].remedies);
    free(list->items);
    *list = (struct nrg_findings){0};
}

void nrg_diagnosis_release(struct nrg_diagnosis *diagnosis)
{
    release_findings(&diagnosis->problems);
    release_findings(&diagnosis->notes);
}
