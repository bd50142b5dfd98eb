/*
 * The table at the end of a run. It must be readable in one look: what, how long, how much, from
 * where, who; then what was not measured. Estimated numbers carry their band and say so in the
 * same line, so that nobody can quote one without seeing it.
 */
#include "report/run/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "record/database.h"
#include "report/units.h"

#define MAX_SHOWN_PROCESSES 12
#define MAX_SHOWN_MISSING   6
#define MAX_SHOWN_COMMAND   60
#define MIN_NAME_WIDTH      20

struct style {
    const char *bold, *dim, *warn, *off;
};

static struct style style_of(bool colour)
{
    return colour ? (struct style){"\033[1m", "\033[2m", "\033[33m", "\033[0m"}
                  : (struct style){"", "", "", ""};
}

/* What the programs marked; nothing when none did. */
static void print_spans(const struct nrg_recording *recording, const struct style *st, FILE *out)
{
    int64_t spans, dropped = 0;
    if (nrg_recording_integer(recording, "spans", &spans))
        return;
    nrg_recording_integer(recording, "spans_dropped", &dropped);
    fprintf(out, "   %" PRId64 " spans", spans);
    if (dropped > 0)
        fprintf(out, "%s, %" PRId64 " dropped%s", st->warn, dropped, st->off);
}

static void print_head(const struct nrg_report *r, const struct style *st, FILE *out)
{
    const struct nrg_summary *s = &r->runs[0];
    const char *command = nrg_recording_text(r->recording, "command_line");
    char a[32], b[32];
    fprintf(out, "%s%s%s", st->bold, command ? command : nrg_recording_path(r->recording), st->off);
    if (s->exit_code > 0)
        fprintf(out, "   %sexit code %d%s", st->warn, s->exit_code, st->off);
    if (r->n_runs > 1)
        fprintf(out, "   (the first of %zu runs; all of them: see below)", r->n_runs);
    fprintf(out, "\nduration %s", nrg_show_seconds(a, sizeof a, s->duration_s));
    if (s->cpu_time_s > 0)
        fprintf(out, "   CPU time %s", nrg_show_seconds(a, sizeof a, s->cpu_time_s));
    if (!isnan(s->cpu_utilisation))
        fprintf(out, "   machine %.0f %% busy", 100 * s->cpu_utilisation);
    if (!isnan(s->peak_memory_bytes))
        fprintf(out, "   peak memory %s", nrg_show_bytes(b, sizeof b, s->peak_memory_bytes));
    print_spans(r->recording, st, out);
    fprintf(out, "\n\n");
}

/* How far below its top domain a domain stands. */
static int depth_of(const struct nrg_summary *s, const struct nrg_domain *d)
{
    int depth = 0;
    const char *parent = d->channel->channel.parent;
    while (parent[0] && depth < 4) {
        const struct nrg_domain *above = NULL;
        for (size_t i = 0; i < s->n_domains; i++)
            if (!strcmp(s->domains[i].channel->channel.name, parent))
                above = &s->domains[i];
        if (!above)
            break;
        depth++;
        parent = above->channel->channel.parent;
    }
    return depth;
}

static void print_band(double low_j, double high_j, double uncertainty_j, bool estimated, char *buf,
                       size_t size)
{
    char a[32], b[32];
    if (estimated && high_j > low_j)
        snprintf(buf, size, "%s .. %s", nrg_show_energy(a, sizeof a, low_j),
                 nrg_show_energy(b, sizeof b, high_j));
    else if (!estimated && uncertainty_j > 0)
        snprintf(buf, size, "± %s", nrg_show_energy(a, sizeof a, uncertainty_j));
    else /* a gauge that never moved, an imported estimate: not known, which is not ± 0 */
        nrg_copy(buf, size, "-");
}

/* Pads by what is seen, not by bytes: the plus-minus sign takes two. */
static void print_padded(FILE *out, const char *text, int width)
{
    int seen = 0;
    for (const char *p = text; *p; p++)
        seen += (*p & 0xc0) != 0x80;
    fprintf(out, "%s%*s", text, seen < width ? width - seen : 1, "");
}

static int name_width(const struct nrg_summary *s)
{
    int width = MIN_NAME_WIDTH;
    for (size_t i = 0; i < s->n_domains; i++) {
        int seen =
            2 * depth_of(s, &s->domains[i]) + (int)strlen(s->domains[i].channel->channel.name);
        width = seen > width ? seen : width;
    }
    return width;
}

static void print_domain(const struct nrg_summary *s, const struct nrg_domain *d, int width,
                         const struct style *st, FILE *out)
{
    const struct nrg_recorded_channel *c = d->channel;
    bool estimated = c->channel.provenance == NRG_ESTIMATED;
    char name[64], energy[32], band[80], mean[32], peak[32];
    snprintf(name, sizeof name, "%*s%s", 2 * depth_of(s, d), "", c->channel.name);
    print_band(d->low_j, d->high_j, d->uncertainty_j, estimated, band, sizeof band);
    fprintf(out, "%-*s %12s  ", width, name, nrg_show_energy(energy, sizeof energy, d->energy_j));
    print_padded(out, band, 22);
    fprintf(out, "%11s %11s  %s%s%s (%s)\n", nrg_show_power(mean, sizeof mean, d->mean_w),
            nrg_show_power(peak, sizeof peak, d->peak_w), estimated ? st->warn : "",
            nrg_provenance_name(c->channel.provenance), estimated ? st->off : "", c->driver);
}

/* What the total adds; of very many the first ones. */
static void list_added(const struct nrg_summary *s, char *names, size_t size)
{
    size_t len = 0, left_out = 0;
    names[0] = '\0';
    for (size_t i = 0; i < s->n_domains; i++) {
        const char *name = s->domains[i].channel->channel.name;
        if (!s->domains[i].in_total)
            continue;
        if (left_out || len + strlen(name) + 32 > size)
            left_out++;
        else
            len += (size_t)snprintf(names + len, size - len, "%s%s", len ? " + " : "", name);
    }
    if (left_out)
        snprintf(names + len, size - len, " + %zu more", left_out);
}

/* What the chips do not see: supplies, fans, disks, the board. */
static void print_wall(const struct nrg_summary *s, const struct style *st, FILE *out)
{
    const struct nrg_wall *w = &s->wall;
    char a[32], b[32], c[32], d[32], e[32];
    if (!w->domain || !(w->energy_j > 0))
        return;
    fprintf(out, "%s against the parts (%s, not added): %s to %s", w->name,
            w->domain->channel->driver, nrg_show_energy(a, sizeof a, w->energy_j),
            nrg_show_energy(b, sizeof b, w->parts_j));
    if (!isnan(w->ratio))
        fprintf(out, ", ratio %.3f", w->ratio);
    fprintf(out, "; left over %s%s ± %s, %s%s\n", w->left_over_j < 0 ? st->warn : "",
            nrg_show_energy(c, sizeof c, w->left_over_j),
            nrg_show_energy(d, sizeof d, w->left_over_uncertainty_j),
            nrg_show_power(e, sizeof e, w->left_over_w), w->left_over_j < 0 ? st->off : "");
    if (w->covered < 0.999)
        fprintf(out, "%sof the %.1f %% of the time that its readings cover%s\n", st->dim,
                100 * w->covered, st->off);
}

static void print_total(const struct nrg_report *r, const struct nrg_summary *s, int width,
                        const struct style *st, FILE *out)
{
    char a[32], band[80], mean[32], names[200];
    bool estimated = s->total_provenance == NRG_ESTIMATED;
    if (isnan(s->total_j)) {
        fprintf(out,
                "%sno energy was measured%s: see below, and nrg sensors; nrg run --sensor estimate "
                "estimates instead\n",
                st->warn, st->off);
        return;
    }
    list_added(s, names, sizeof names);
    print_band(s->total_low_j, s->total_high_j, s->total_uncertainty_j, estimated, band,
               sizeof band);
    fprintf(out, "%s%-*s %12s%s  ", st->bold, width, "total",
            nrg_show_energy(a, sizeof a, s->total_j), st->off);
    print_padded(out, band, 22);
    fprintf(out, "%11s %11s  %s: %s\n",
            nrg_show_power(mean, sizeof mean, s->total_j / s->duration_s), "",
            nrg_provenance_name(s->total_provenance), names);
    if (s->measured_j > 0 && s->estimated_j > 0) {
        char b[32];
        fprintf(out, "%-*s %12s of it measured, %s estimated\n", width, "",
                nrg_show_energy(a, sizeof a, s->measured_j),
                nrg_show_energy(b, sizeof b, s->estimated_j));
    }
    print_wall(s, st, out);
    fprintf(out, "%s%.4g Wh   energy-delay %.4g J·s", st->dim, s->total_j / 3600,
            s->total_j * s->duration_s);
    if (r->options.carbon_g_per_kwh > 0)
        fprintf(out, "   %.4g g CO2e at %g g/kWh", s->total_j / 3.6e6 * r->options.carbon_g_per_kwh,
                r->options.carbon_g_per_kwh);
    fprintf(out, "%s\n", st->off);
}

/* Bytes of what is shown of a command: whole characters only. */
static int shown_bytes(const char *text)
{
    int bytes = 0, seen = 0;
    for (; text[bytes]; bytes++)
        if ((text[bytes] & 0xc0) != 0x80 && seen++ == MAX_SHOWN_COMMAND)
            break;
    return bytes;
}

static void print_process(const struct nrg_process_energy *p, bool command, FILE *out)
{
    char cpu[32], time_s[32], dram[32], gpu[32], rss[32];
    const char *what = p->info->command[0] ? p->info->command : p->info->name;
    double bytes = p->peak_rss_bytes == NRG_MISSING ? NAN : (double)p->peak_rss_bytes;
    if (p->info->pid > 0)
        fprintf(out, "%8d", p->info->pid);
    else
        fprintf(out, "%8s", "");
    fprintf(
        out, " %11s %11s %11s %11s %11s  %.*s%s%s%s%s\n",
        nrg_show_seconds(time_s, sizeof time_s, p->cpu_time_s),
        nrg_show_energy(cpu, sizeof cpu, p->cpu_j), nrg_show_energy(dram, sizeof dram, p->dram_j),
        nrg_show_energy(gpu, sizeof gpu, p->gpu_j), nrg_show_bytes(rss, sizeof rss, bytes),
        shown_bytes(what), what, p->info->container[0] ? "  [" : "", p->info->container,
        p->info->container[0] ? "]" : "", p->still_running && command ? "  (still running)" : "");
}

static void print_rest(const char *label, double energy_j, FILE *out)
{
    char a[32];
    if (!isnan(energy_j))
        fprintf(out, "%8s %11s %11s %11s %11s %11s  %s\n", "", "",
                nrg_show_energy(a, sizeof a, energy_j), "", "", "", label);
}

static void print_processes(const struct nrg_report *r, const struct nrg_summary *s,
                            const struct style *st, FILE *out)
{
    size_t shown = r->options.all_processes ? s->n_processes : MAX_SHOWN_PROCESSES;
    if (!s->n_processes)
        return;
    fprintf(out, "\n%s%8s %11s %11s %11s %11s %11s  %s%s\n", st->dim, "PID", "CPU TIME",
            "CPU ENERGY", "DRAM", "GPU", "PEAK RSS", "COMMAND", st->off);
    double rest_s = 0, rest_j = 0;
    for (size_t i = 0; i < s->n_processes; i++) {
        if (i < shown) {
            print_process(&s->processes[i], s->exit_code >= 0, out);
            continue;
        }
        rest_s += s->processes[i].cpu_time_s;
        rest_j += s->processes[i].cpu_j;
    }
    if (s->n_processes > shown) {
        char a[32], b[32];
        fprintf(out, "%8s %11s %11s %11s %11s %11s  %zu more processes\n", "",
                nrg_show_seconds(a, sizeof a, rest_s), nrg_show_energy(b, sizeof b, rest_j), "", "",
                "", s->n_processes - shown);
    }
    char label[80];
    print_rest("other processes of this machine", s->other_processes_j, out);
    snprintf(label, sizeof label, "idle machine (%s)", s->idle_method ? s->idle_method : "");
    print_rest(label, s->idle_j, out);
    if (s->split == NRG_SPLIT_BUSY_TIME)
        fprintf(out,
                "%senergy per process by the busy-time rule: idle power is charged to whoever "
                "is busy%s\n",
                st->dim, st->off);
}

/* The first process of each container stands for it. */
static bool is_first_of_container(const struct nrg_summary *s, size_t i)
{
    const char *name = s->processes[i].info->container;
    for (size_t k = 0; k < i; k++)
        if (!strcmp(s->processes[k].info->container, name))
            return false;
    return name[0] != '\0';
}

static void print_containers(const struct nrg_summary *s, const struct style *st, FILE *out)
{
    bool any = false;
    for (size_t i = 0; i < s->n_processes; i++) {
        if (!is_first_of_container(s, i))
            continue;
        struct nrg_container_use use = nrg_container_use(s, s->processes[i].info->container);
        char a[32], b[32];
        if (!any)
            fprintf(out, "\n%s%8s %11s %11s  %s%s\n", st->dim, "PROCS", "CPU TIME", "CPU ENERGY",
                    "CONTAINER", st->off);
        any = true;
        fprintf(out, "%8zu %11s %11s  %s\n", use.processes,
                nrg_show_seconds(a, sizeof a, use.cpu_time_s),
                nrg_show_energy(b, sizeof b, use.cpu_j), s->processes[i].info->container);
    }
}

/* On a machine without sensors each driver has its own reason: the first few are enough here. */
static void print_missing(const struct nrg_summary *s, const struct style *st, FILE *out)
{
    if (!s->n_missing)
        return;
    fprintf(out, "\n%snot measured, or with a caveat:%s\n", st->dim, st->off);
    for (size_t i = 0; i < s->n_missing && i < MAX_SHOWN_MISSING; i++)
        fprintf(out, "  %s: %s\n", s->missing[i].what, s->missing[i].why);
    if (s->n_missing > MAX_SHOWN_MISSING)
        fprintf(out, "  and %zu more: --json lists all, nrg sensors says what to do\n",
                s->n_missing - MAX_SHOWN_MISSING);
}

static void print_repeats(const struct nrg_report *r, const struct style *st, FILE *out)
{
    double energy[1000], duration[1000];
    char a[32], b[32], c[32], d[32];
    size_t n = r->n_runs < 1000 ? r->n_runs : 1000;
    for (size_t i = 0; i < n; i++) {
        energy[i] = r->runs[i].total_j;
        duration[i] = r->runs[i].duration_s;
    }
    struct nrg_spread e = nrg_spread_of(energy, n), t = nrg_spread_of(duration, n);
    fprintf(out,
            "\n%s%zu runs%s   energy %s mean, %s standard deviation, 95 %% interval of the mean %s "
            ".. %s\n",
            st->bold, n, st->off, nrg_show_energy(a, sizeof a, e.mean),
            nrg_show_energy(b, sizeof b, e.sd), nrg_show_energy(c, sizeof c, e.low),
            nrg_show_energy(d, sizeof d, e.high));
    fprintf(out, "%*s   duration %s mean, %s standard deviation\n",
            (int)snprintf(NULL, 0, "%zu runs", n), "", nrg_show_seconds(a, sizeof a, t.mean),
            nrg_show_seconds(b, sizeof b, t.sd));
}

/* Recordings made before there were spans do not have the table: -1. */
static void print_where_next(const struct nrg_report *r, const struct style *st, FILE *out)
{
    static const char count[] =
        "SELECT count(*) FROM span_name WHERE kind NOT IN ('counter', 'mark')";
    if (nrg_database_number(nrg_recording_database(r->recording), count) > 0)
        fprintf(out, "\n%sit has spans: nrg attribute %s says what each part used%s\n", st->dim,
                nrg_recording_path(r->recording), st->off);
}

void nrg_report_text(const struct nrg_report *r, FILE *out)
{
    struct style st = style_of(r->options.colour);
    const struct nrg_summary *s = &r->runs[0];
    print_head(r, &st, out);
    int width = name_width(s);
    if (s->n_domains)
        fprintf(out, "%s%-*s %12s  %-22s%11s %11s  %s%s\n", st.dim, width, "DOMAIN", "ENERGY",
                "UNCERTAINTY", "MEAN", "PEAK", "SOURCE", st.off);
    for (size_t i = 0; i < s->n_domains; i++)
        print_domain(s, &s->domains[i], width, &st, out);
    print_total(r, s, width, &st, out);
    print_processes(r, s, &st, out);
    print_containers(s, &st, out);
    if (r->n_runs > 1)
        print_repeats(r, &st, out);
    print_where_next(r, &st, out);
    print_missing(s, &st, out);
}
