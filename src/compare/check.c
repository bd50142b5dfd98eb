/*
 * Whether the two sides can be compared at all, see compare.h. Refused is what makes the ratio
 * meaningless: joules of different things, or a model's joules against a sensor's. All else that
 * differs is said, and the user decides.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "compare/compare.h"

#define OTHER_LOAD  0.1 /* of all CPUs: a difference that is said */
#define OTHER_CLOCK 0.05
#define COVERED     0.98 /* less of a run with readings is said */
#define BLOCKED     2.5  /* times the variance: runs were not in turn */

static const char *const fact_words[NRG_FACTS] = {
    [NRG_FACT_SENSORS] = "sensors",
    [NRG_FACT_HOST] = "the machine",
    [NRG_FACT_CPU] = "the processor",
    [NRG_FACT_KERNEL] = "the kernel",
    [NRG_FACT_GOVERNOR] = "the frequency governor",
    [NRG_FACT_POWER_LIMITS] = "power limits",
    [NRG_FACT_CLOCK_LIMITS] = "limits of the clock",
    [NRG_FACT_GPU_DRIVER] = "the GPU's driver",
    [NRG_FACT_RATE] = "the rate of readings",
    [NRG_FACT_VERSION] = "the version of nrg that recorded",
    [NRG_FACT_PARAMETERS] = "the model's parameters",
    [NRG_FACT_INPUT] = "the input",
    [NRG_FACT_WORK] = "the work that was counted",
};

static const struct nrg_compare_run *run_at(const struct nrg_comparison *c, size_t i)
{
    size_t n_a = c->sides[0].n_runs;
    return i < n_a ? &c->sides[0].runs[i] : &c->sides[1].runs[i - n_a];
}

/* Short enough for a sentence. */
struct short_name {
    char text[48];
};

static struct short_name name_of(const struct nrg_comparison *c, int side)
{
    struct short_name name;
    snprintf(name.text, sizeof name.text, "%.40s", nrg_compare_side_name(c->sides, side));
    return name;
}

static const char *shown(const char *value)
{
    return value[0] ? value : "not known";
}

static bool is_plural(int fact)
{
    return fact == NRG_FACT_SENSORS || fact == NRG_FACT_POWER_LIMITS ||
           fact == NRG_FACT_CLOCK_LIMITS || fact == NRG_FACT_PARAMETERS;
}

/* The first run whose fact differs from the first run's; NULL: all are alike. */
static const struct nrg_compare_run *odd_one(const struct nrg_comparison *c, int fact)
{
    size_t n = c->sides[0].n_runs + c->sides[1].n_runs;
    for (size_t i = 1; i < n; i++)
        if (strcmp(run_at(c, i)->facts[fact], run_at(c, 0)->facts[fact]) != 0)
            return run_at(c, i);
    return NULL;
}

static int check_facts(struct nrg_comparison *c)
{
    int rc = 0;
    for (int f = 0; !rc && f < NRG_FACTS; f++) {
        const struct nrg_compare_run *odd = odd_one(c, f);
        if (!odd) /* alike, or there is no run */
            continue;
        const struct nrg_compare_run *first = run_at(c, 0);
        struct nrg_compare_notes *to = f == NRG_FACT_SENSORS ? &c->refusals : &c->warnings;
        rc = nrg_compare_note(to, "%s differ%s: %.90s in %.40s, %.90s in %.40s", fact_words[f],
                              is_plural(f) ? "" : "s", shown(first->facts[f]), first->file,
                              shown(odd->facts[f]), odd->file);
    }
    return rc;
}

static int check_provenance(struct nrg_comparison *c)
{
    size_t n = c->sides[0].n_runs + c->sides[1].n_runs;
    for (size_t i = 1; i < n; i++)
        if ((run_at(c, i)->provenance == NRG_ESTIMATED) !=
            (run_at(c, 0)->provenance == NRG_ESTIMATED))
            return nrg_compare_note(
                &c->refusals,
                "the energy of %.90s is %s, that of %.90s is %s: a model and a "
                "sensor differ by more than programs do",
                run_at(c, 0)->file, nrg_provenance_name(run_at(c, 0)->provenance),
                run_at(c, i)->file, nrg_provenance_name(run_at(c, i)->provenance));
    return 0;
}

/* Mean over the runs of a side that have it; NAN. `offset`: of a double in struct nrg_compare_run.
 */
static double mean_of(const struct nrg_compare_side *side, size_t offset)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < side->n_runs; i++) {
        double x;
        memcpy(&x, (const char *)&side->runs[i] + offset, sizeof x);
        if (!isnan(x)) {
            sum += x;
            n++;
        }
    }
    return n > 0 ? sum / n : NAN;
}

static int check_load(struct nrg_comparison *c)
{
    size_t others = offsetof(struct nrg_compare_run, others);
    double a = mean_of(&c->sides[0], others), b = mean_of(&c->sides[1], others);
    if (isnan(a) || isnan(b) || fabs(a - b) < OTHER_LOAD)
        return 0;
    return nrg_compare_note(&c->warnings,
                            "other programs used %.0f %% of the processors during %s and %.0f %% "
                            "during %s: the machine's energy has theirs in it",
                            100 * a, name_of(c, 0).text, 100 * b, name_of(c, 1).text);
}

static int check_clocks(struct nrg_comparison *c)
{
    static const char *const whose[NRG_COMPARE_CLOCKS] = {"the processors", "the GPUs"};
    int rc = 0;
    for (size_t i = 0; !rc && i < NRG_COMPARE_CLOCKS; i++) {
        size_t at = offsetof(struct nrg_compare_run, clock_hz) + i * sizeof(double);
        double a = mean_of(&c->sides[0], at), b = mean_of(&c->sides[1], at);
        if (!isnan(a) && !isnan(b) && fabs(log(b / a)) > OTHER_CLOCK)
            rc = nrg_compare_note(&c->warnings,
                                  "%s ran at %.2f GHz during %s and at %.2f GHz during %s: part "
                                  "of the difference may be the clock's",
                                  whose[i], a * 1e-9, name_of(c, 0).text, b * 1e-9,
                                  name_of(c, 1).text);
    }
    return rc;
}

/* Logs that were imported say where they are from, not what ran. */
static bool is_other_command(const struct nrg_compare_run *a, const struct nrg_compare_run *b)
{
    return !(a->imported && b->imported) && strcmp(a->command, b->command) != 0;
}

/* Runs of one side that are not of one command are no repetitions of anything. */
static int check_commands(struct nrg_comparison *c)
{
    int rc = 0;
    for (int s = 0; !rc && s < 2; s++) {
        const struct nrg_compare_side *side = &c->sides[s];
        const struct nrg_compare_run *first = side->runs;
        size_t i = 1;
        while (i < side->n_runs && !is_other_command(&side->runs[i], first))
            i++;
        if (i < side->n_runs)
            rc = nrg_compare_note(
                &c->warnings, "runs of %s are not of one command: %.90s in %.40s, %.90s in %.40s",
                name_of(c, s).text, shown(first->command), first->file,
                shown(side->runs[i].command), side->runs[i].file);
    }
    return rc;
}

/* A run can't be of A and of B. */
static int check_both_sides(struct nrg_comparison *c)
{
    const struct nrg_compare_run *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < c->sides[1].n_runs; i++) {
        const struct nrg_compare_run *run = &c->sides[1].runs[i];
        if (nrg_compare_side_run(&c->sides[0], run) && !n++)
            first = run;
    }
    if (!first)
        return 0;
    return nrg_compare_note(&c->refusals,
                            "%zu run%s given on both sides (%.120s%s): nothing is to "
                            "be learnt from a run against itself",
                            n, n == 1 ? " is" : "s are", first->file, n > 1 ? ", ..." : "");
}

static const char *closing(size_t n)
{
    return n > 1 ? ", ...)" : n ? ")" : "";
}

/* Spans that one side has and the other has not: what is in both is compared. */
static int check_spans(struct nrg_comparison *c)
{
    size_t n[2] = {0, 0};
    const char *first[2] = {"", ""};
    for (size_t i = 0; i < c->n_only; i++) {
        const struct nrg_compare_only *only = &c->only[i];
        if (strcmp(only->kind, "module") != 0 && strcmp(only->kind, "operator") != 0)
            continue;
        if (!n[only->side]++)
            first[only->side] = only->name;
    }
    if (!n[0] && !n[1])
        return 0;
    struct short_name a = name_of(c, 0), b = name_of(c, 1);
    return nrg_compare_note(&c->warnings,
                            "the sides have different spans: %zu of %s's modules and operators are "
                            "not in %s%s%.60s%s, %zu of %s's are not in %s%s%.60s%s; what both "
                            "have is compared",
                            n[0], a.text, b.text, n[0] ? " (" : "", first[0], closing(n[0]), n[1],
                            b.text, a.text, n[1] ? " (" : "", first[1], closing(n[1]));
}

static int check_files(struct nrg_comparison *c)
{
    size_t cut = c->sides[0].n_cut + c->sides[1].n_cut;
    size_t damaged = c->sides[0].n_damaged + c->sides[1].n_damaged;
    size_t again = c->sides[0].n_again + c->sides[1].n_again;
    int rc = 0;
    if (again)
        rc = nrg_compare_note(&c->warnings,
                              "%zu run%s given more than once (the same recording, or a "
                              "copy of it) and count%s once",
                              again, again == 1 ? " is" : "s are", again == 1 ? "s" : "");
    if (!rc && cut)
        rc = nrg_compare_note(&c->warnings,
                              "%zu run%s of %s and %zu of %s have no end (the recorder was "
                              "killed, or is at work) and are left out",
                              c->sides[0].n_cut, c->sides[0].n_cut == 1 ? "" : "s",
                              name_of(c, 0).text, c->sides[1].n_cut, name_of(c, 1).text);
    if (!rc && damaged)
        rc = nrg_compare_note(
            &c->warnings, "%zu recording%s damaged: what can't be read of %s is missing here",
            damaged, damaged == 1 ? " is" : "s are", damaged == 1 ? "it" : "them");
    return rc;
}

static int check_runs(struct nrg_comparison *c)
{
    size_t n = c->sides[0].n_runs + c->sides[1].n_runs, failed = 0, gaps = 0, unknown = 0;
    int rc = 0;
    for (size_t i = 0; i < n; i++) {
        failed += run_at(c, i)->exit_code > 0;
        gaps += run_at(c, i)->covered < COVERED;
        unknown += !(run_at(c, i)->energy_j > 0);
    }
    if (unknown)
        rc = nrg_compare_note(&c->warnings, "%zu of %zu runs have no energy and are left out",
                              unknown, n);
    if (!rc && failed)
        rc = nrg_compare_note(&c->warnings, "%zu of %zu runs ended with an error", failed, n);
    if (!rc && gaps)
        rc =
            nrg_compare_note(&c->warnings,
                             "%zu of %zu runs have gaps in their readings: their energy is that of "
                             "the rest",
                             gaps, n);
    return rc;
}

static int check_design(struct nrg_comparison *c)
{
    const struct nrg_effect *e = &c->quantities[NRG_COMPARE_ENERGY];
    size_t least =
        c->sides[0].n_runs < c->sides[1].n_runs ? c->sides[0].n_runs : c->sides[1].n_runs;
    int rc = 0;
    if (least < 2)
        rc = nrg_compare_note(&c->warnings,
                              "one run of a side does not tell how much runs vary: there is no "
                              "interval; at least 3 of each side are needed");
    else if (least < 3)
        rc = nrg_compare_note(&c->warnings, "two runs of a side tell little about how much runs "
                                            "vary; 5 of each side are a good start");
    if (!rc && e->design > BLOCKED)
        rc = nrg_compare_note(
            &c->warnings, "the sides were not run in turn, so that a drift of the machine looks "
                          "like a difference: the interval is wider for it (nrg compare --run "
                          "alternates)");
    if (!rc && e->skewed)
        rc = nrg_compare_note(&c->warnings,
                              "a few runs lie far off the others (rank test: p = %.3g)", e->p_rank);
    return rc;
}

int nrg_compare_check(struct nrg_comparison *c)
{
    int (*const checks[])(struct nrg_comparison *) = {
        check_both_sides, check_provenance, check_facts, check_files, check_commands,
        check_load,       check_clocks,     check_runs,  check_spans, check_design};
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof checks / sizeof *checks; i++)
        rc = checks[i](c);
    return rc;
}
