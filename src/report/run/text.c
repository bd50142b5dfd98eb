/*
 * The table at the end of a run. It must be readable in one look: what, how long, how much, from
 * where, who; then what was not measured. Estimated numbers have their band and say so in the same
 * line, so that one cannot be quoted without seeing it.
 */
#include "base/stats.h"
#include "record/format.h"
#include "report/run/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "record/read/span_catalog.h"
#include "report/run/serving.h"
#include "report/style.h"
#include "report/units.h"

#define MAX_SHOWN_PROCESSES 12
#define MAX_SHOWN_MISSING   6
#define MAX_SHOWN_COMMAND   60
#define MIN_NAME_WIDTH      20

/* Why spans are missing, with their numbers; recordings of earlier versions do not tell. */
static void print_reasons(const struct nrg_recording *recording, FILE *out)
{
    int64_t n;
    bool any = false;
    for (size_t i = 0; i < NRG_SPAN_DROPS; i++) {
        if (nrg_recording_integer(recording, nrg_span_drop_names[i].meta, &n) || n <= 0)
            continue;
        fprintf(out, "%s%" PRId64 " %s", any ? ", " : " (", n, nrg_span_drop_names[i].words);
        any = true;
    }
    if (any)
        fputc(')', out);
}

/* What the programs marked; nothing when none did. */
static void print_spans(const struct nrg_recording *recording, const struct nrg_text_style *st,
                        FILE *out)
{
    int64_t spans, dropped = 0, refused;
    if (nrg_recording_integer(recording, "spans", &spans))
        return;
    nrg_recording_integer(recording, "spans_dropped", &dropped);
    fprintf(out, "   %" PRId64 " spans", spans);
    if (dropped > 0)
        fprintf(out, "%s, %" PRId64 " dropped", st->warn, dropped);
    print_reasons(recording, out);
    fprintf(out, "%s", dropped > 0 ? st->off : "");
    if (!nrg_recording_integer(recording, "spans_refused", &refused) && refused > 0)
        fprintf(out, "   %s%" PRId64 " %s marked with a libnrg of another version: not recorded%s",
                st->warn, refused, refused == 1 ? "program" : "programs", st->off);
}

static void print_run_head(const struct nrg_report *r, const struct nrg_text_style *st, FILE *out)
{
    const struct nrg_summary *s = &r->runs[0];
    const char *command = nrg_recording_text(r->recording, "command_line");
    fprintf(out, "%s%s%s", st->bold, command ? command : nrg_recording_path(r->recording), st->off);
    if (s->exit_code > 0)
        fprintf(out, "   %sexit code %d%s", st->warn, s->exit_code, st->off);
    if (r->n_runs > 1)
        fprintf(out, "   (the first of %zu runs; all of them: see below)", r->n_runs);
    fprintf(out, "\nduration %s", nrg_show_seconds(s->duration_s).text);
    if (s->cpu_time_s > 0)
        fprintf(out, "   CPU time %s", nrg_show_seconds(s->cpu_time_s).text);
    if (!isnan(s->cpu_utilisation))
        fprintf(out, "   machine %.0f %% busy", 100 * s->cpu_utilisation);
    if (!isnan(s->recorder_cpu_s) && s->duration_s > 0)
        fprintf(out, "   nrg itself %.2g %% of a CPU", 100 * s->recorder_cpu_s / s->duration_s);
    if (!isnan(s->peak_memory_bytes))
        fprintf(out, "   peak memory %s", nrg_show_bytes(s->peak_memory_bytes).text);
    print_spans(r->recording, st, out);
    fprintf(out, "\n\n");
}

/* What is measured, in a word. */
static const char *subject_of(const struct nrg_report *r)
{
    const char *command = nrg_recording_text(r->recording, "command_line");
    return !command                                ? "the program"
           : !strcmp(command, "(whole machine)")   ? "all processes"
           : !strcmp(command, "(given processes)") ? "these processes"
                                                   : "this program";
}

static void print_others(const struct nrg_summary *s, FILE *out)
{
    const struct {
        const char *name;
        double energy_j;
    } rest[] = {{"others", s->other_processes_j},
                {"idle", s->idle_j},
                {"not attributed", s->program.unattributed_j}};
    const char *before = " (";
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        if (isnan(rest[i].energy_j) || (i == 2 && !(fabs(rest[i].energy_j) > 0)))
            continue;
        fprintf(out, "%s%s %s", before, rest[i].name, nrg_show_energy(rest[i].energy_j).text);
        before = ", ";
    }
    fputs(before[0] == ',' ? ")" : "", out);
}

/* The line that people quote: the program's energy, what it is a part of, and how sure it is. */
static void print_program(const struct nrg_report *r, const struct nrg_summary *s,
                          const struct nrg_text_style *st, FILE *out)
{
    const struct nrg_program *p = &s->program;
    bool estimated = s->total_provenance == NRG_ESTIMATED;
    if (isnan(s->total_j))
        return;
    if (isnan(p->energy_j)) {
        fprintf(out, "%s: %snot known%s of the machine's %s: %s\n\n", subject_of(r), st->warn,
                st->off, nrg_show_energy(s->total_j).text, p->why);
        return;
    }
    fprintf(out, "%s%s: %s%s of the machine's %s", st->bold, subject_of(r),
            nrg_show_energy(p->energy_j).text, st->off, nrg_show_energy(s->total_j).text);
    print_others(s, out);
    if (estimated)
        fprintf(out, "   %sestimated%s", st->warn, st->off);
    fprintf(out, "\n%s .. %s; shared out by %s\n\n", nrg_show_energy(p->low_j).text,
            nrg_show_energy(p->high_j).text, p->share_method);
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

/* "-" of a gauge that never moved: not known, which is not ± 0. */
static struct nrg_shown show_band(double energy_j, double low_j, double high_j)
{
    return high_j > low_j ? nrg_show_band(energy_j, low_j, high_j, "±") : (struct nrg_shown){"-"};
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
                         const struct nrg_text_style *st, FILE *out)
{
    const struct nrg_recorded_channel *c = d->channel;
    bool estimated = c->channel.provenance == NRG_ESTIMATED;
    char name[64];
    snprintf(name, sizeof name, "%*s%s", 2 * depth_of(s, d), "", c->channel.name);
    fprintf(out, "%-*s %12s  ", width, name, nrg_show_energy(d->energy_j).text);
    nrg_text_pad(out, show_band(d->energy_j, d->low_j, d->high_j).text, 21);
    fprintf(out, " %11s %11s  %s%s%s (%s)\n", nrg_show_power(d->mean_w).text,
            nrg_show_power(d->peak_w).text, estimated ? st->warn : "",
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
static void print_wall(const struct nrg_summary *s, const struct nrg_text_style *st, FILE *out)
{
    const struct nrg_wall *w = &s->wall;
    if (!w->domain || !(w->energy_j > 0))
        return;
    fprintf(out, "%s against the parts (%s, not added): %s to %s", w->name,
            w->domain->channel->driver, nrg_show_energy(w->energy_j).text,
            nrg_show_energy(w->parts_j).text);
    if (!isnan(w->ratio))
        fprintf(out, ", ratio %.3f", w->ratio);
    fprintf(out, "; left over %s%s ± %s, %s%s\n", w->left_over_j < 0 ? st->warn : "",
            nrg_show_energy(w->left_over_j).text, nrg_show_energy(w->left_over_uncertainty_j).text,
            nrg_show_power(w->left_over_w).text, w->left_over_j < 0 ? st->off : "");
    if (w->covered < NRG_MOSTLY_COVERED)
        fprintf(out, "%sof the %.1f %% of the time that its readings cover%s\n", st->dim,
                100 * w->covered, st->off);
}

static void print_no_total(const struct nrg_summary *s, const struct nrg_text_style *st, FILE *out)
{
    if (s->n_domains)
        fprintf(out,
                "%sno total%s: nothing says what these measure, so they are not added; --covers "
                "RAIL=machine does\n",
                st->warn, st->off);
    else
        fprintf(out,
                "%sno energy was measured%s: see below, and nrg sensors; nrg run --sensor estimate "
                "estimates instead\n",
                st->warn, st->off);
}

static void print_total(const struct nrg_report *r, const struct nrg_summary *s, int width,
                        const struct nrg_text_style *st, FILE *out)
{
    char names[200];
    if (isnan(s->total_j)) {
        print_no_total(s, st, out);
        return;
    }
    list_added(s, names, sizeof names);
    struct nrg_shown band = show_band(s->total_j, s->total_low_j, s->total_high_j);
    fprintf(out, "%s%-*s %12s%s  ", st->bold, width, "total", nrg_show_energy(s->total_j).text,
            st->off);
    nrg_text_pad(out, band.text, 21);
    fprintf(out, " %11s %11s  %s: %s\n", nrg_show_power(s->total_mean_w).text, "",
            nrg_provenance_name(s->total_provenance), names);
    if (s->measured_j > 0 && s->estimated_j > 0)
        fprintf(out, "%-*s %12s of it measured, %s estimated\n", width, "",
                nrg_show_energy(s->measured_j).text, nrg_show_energy(s->estimated_j).text);
    if (s->total_covered < NRG_MOSTLY_COVERED)
        fprintf(out,
                "%-*s %sreadings cover %.1f %% of the time: the energy is too low by what was used "
                "in the rest%s\n",
                width, "", st->warn, 100 * s->total_covered, st->off);
    print_wall(s, st, out);
    fprintf(out, "%s%.4g Wh   energy-delay %.4g J·s", st->dim, s->total_j / 3600,
            s->total_j * s->duration_s);
    if (r->options.carbon_g_per_kwh > 0)
        fprintf(out, "   %.4g g CO2e at %g g/kWh", s->total_j / 3.6e6 * r->options.carbon_g_per_kwh,
                r->options.carbon_g_per_kwh);
    if (r->options.price_per_kwh > 0)
        fprintf(out, "   costs %.4g at %g per kWh", s->total_j / 3.6e6 * r->options.price_per_kwh,
                r->options.price_per_kwh);
    fprintf(out, "%s\n", st->off);
}

static void print_process(const struct nrg_process_energy *p, bool command, FILE *out)
{
    const char *what = p->info->command[0] ? p->info->command : p->info->name;
    double bytes = p->peak_rss_bytes == NRG_MISSING ? NAN : (double)p->peak_rss_bytes;
    if (p->info->pid > 0)
        fprintf(out, "%8d", p->info->pid);
    else
        fprintf(out, "%8s", "");
    fprintf(out, " %11s %11s %11s %11s %11s  %.*s%s%s%s%s\n", nrg_show_seconds(p->cpu_time_s).text,
            nrg_show_energy(p->cpu_j).text, nrg_show_energy(p->dram_j).text,
            nrg_show_energy(p->gpu_j).text, nrg_show_bytes(bytes).text,
            (int)nrg_text_bytes(what, MAX_SHOWN_COMMAND), what, p->info->container[0] ? "  [" : "",
            p->info->container, p->info->container[0] ? "]" : "",
            p->still_running && command ? "  (still running)" : "");
}

static void print_rest(const char *label, double energy_j, FILE *out)
{
    if (!isnan(energy_j))
        fprintf(out, "%8s %11s %11s %11s %11s %11s  %s\n", "", "", nrg_show_energy(energy_j).text,
                "", "", "", label);
}

static void print_processes(const struct nrg_report *r, const struct nrg_summary *s,
                            const struct nrg_text_style *st, FILE *out)
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
    if (s->n_processes > shown)
        fprintf(out, "%8s %11s %11s %11s %11s %11s  %zu more processes\n", "",
                nrg_show_seconds(rest_s).text, nrg_show_energy(rest_j).text, "", "", "",
                s->n_processes - shown);
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

static void print_containers(const struct nrg_summary *s, const struct nrg_text_style *st,
                             FILE *out)
{
    bool any = false;
    for (size_t i = 0; i < s->n_processes; i++) {
        struct nrg_container_use use = nrg_container_use(s, i);
        if (!use.processes)
            continue;
        if (!any)
            fprintf(out, "\n%s%8s %11s %11s  %s%s\n", st->dim, "PROCS", "CPU TIME", "CPU ENERGY",
                    "CONTAINER", st->off);
        any = true;
        fprintf(out, "%8zu %11s %11s  %s\n", use.processes, nrg_show_seconds(use.cpu_time_s).text,
                nrg_show_energy(use.cpu_j).text, s->processes[i].info->container);
    }
}

/* On a machine without sensors each driver has its own reason: the first few are enough here. */
static void print_missing(const struct nrg_summary *s, const struct nrg_text_style *st, FILE *out)
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

static void print_spread(const char *what, const struct nrg_spread *e, FILE *out)
{
    fprintf(out, "%s %s mean, %s standard deviation, 95 %% interval of the mean %s .. %s\n", what,
            nrg_show_energy(e->mean).text, nrg_show_energy(e->sd).text,
            nrg_show_energy(e->low).text, nrg_show_energy(e->high).text);
}

static void print_repeats(const struct nrg_report *r, const struct nrg_text_style *st, FILE *out)
{
    struct nrg_spread program = nrg_report_spread(r, nrg_report_program_j);
    struct nrg_spread machine = nrg_report_spread(r, nrg_report_machine_j);
    struct nrg_spread t = nrg_report_spread(r, nrg_report_duration_s);
    int indent = snprintf(NULL, 0, "%zu runs", r->n_runs);
    fprintf(out, "\n%s%zu runs%s   ", st->bold, r->n_runs, st->off);
    if (!isnan(program.mean)) {
        print_spread(subject_of(r), &program, out);
        fprintf(out, "%*s   ", indent, "");
    }
    print_spread("machine", &machine, out);
    fprintf(out, "%*s   duration %s mean, %s standard deviation\n", indent, "",
            nrg_show_seconds(t.mean).text, nrg_show_seconds(t.sd).text);
}

void nrg_report_text(const struct nrg_report *r, FILE *out)
{
    struct nrg_text_style st = nrg_text_style(r->options.colour);
    const struct nrg_summary *s = &r->runs[0];
    print_run_head(r, &st, out);
    print_program(r, s, &st, out);
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
    if (nrg_recording_has_spans(r->recording))
        fprintf(out, "\n%sit has spans: nrg attribute %s says what each part used%s\n", st.dim,
                nrg_recording_path(r->recording), st.off);
    nrg_serving_text(&r->serving, &st, out);
    print_missing(s, &st, out);
}
