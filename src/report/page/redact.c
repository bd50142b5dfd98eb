/*
 * What --redact leaves of a page's head. A path may hold blanks, so that a command line does not
 * tell where its program's name ends: the kernel's name of the process does. What a recorder noted
 * about sensors quotes paths, arguments and hosts; of it only the number of notes is kept.
 */
#include <string.h>

#include "base/json/set.h"
#include "report/page/internal.h"

/* What the page shows of a report; anything else, such as a server's address, goes. */
static const char *const shown[] = {
    "schema",
    "command",
    "duration_s",
    "program",
    "total",
    "domains",
    "processes",
    "idle_j",
    "idle_w",
    "idle_method",
    "missing",
    "other_processes_j",
    "metadata",
    "carbon_g",
    "cost",
    "carbon_intensity_g_per_kwh",
    "price_per_kwh",
    "exit_code",
    "cpu_utilisation",
    "peak_memory_bytes",
    NULL,
};

/* Texts about the machine and the run that name nobody. */
static const char *const harmless[] = {
    "nrg_version", "cpu", "cpus", "kernel", "architecture", "spans", "spans_dropped", NULL,
};

static void keep_only(json_t *o, const char *const *keys)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(o, next, key, value)
    {
        size_t i = 0;
        while (keys[i] && strcmp(key, keys[i]))
            i++;
        if (!keys[i])
            json_object_del(o, key);
    }
}

/* The program's name without its folder and arguments. */
static void keep_first_word(json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    if (!text)
        return;
    size_t n = strcspn(text, " \t\n");
    const char *slash = memrchr(text, '/', n);
    const char *word = slash ? slash + 1 : text;
    json_object_set_new(o, key, json_stringn(word, n - (size_t)(word - text)));
}

/* Puts a process's name in place of its command, also where that is the whole run's. */
static void name_process(json_t *report, json_t *process)
{
    json_t *name = json_object_get(process, "name");
    json_t *command = json_object_get(process, "command");
    if (!name) {
        keep_first_word(process, "command");
        return;
    }
    if (json_equal(command, json_object_get(report, "command")))
        json_object_set(report, "command", name);
    json_object_set(process, "command", name);
}

static void redact_processes(json_t *report)
{
    json_t *whole = json_deep_copy(json_object_get(report, "command")), *process;
    size_t i;
    json_array_foreach(json_object_get(report, "processes"), i, process)
    {
        name_process(report, process);
        json_object_del(process, "container");
        json_object_del(process, "unit");
    }
    if (json_equal(whole, json_object_get(report, "command")))
        keep_first_word(report, "command"); /* no process has it */
    json_decref(whole);
}

static void redact_missing(json_t *missing, const struct nrg_summary *s)
{
    size_t left_out = 0;
    for (size_t i = s->n_missing; i-- > 0;)
        if (s->missing[i].recorded) {
            json_array_remove(missing, i);
            left_out++;
        }
    if (left_out)
        json_array_append_new(
            missing,
            json_pack("{s:s, s:o}", "what", "sensors", "why",
                      json_sprintf("%zu note%s left out, because they may name files and hosts: "
                                   "nrg report has them",
                                   left_out, left_out == 1 ? " was" : "s were")));
}

void nrg_page_redact_report(json_t *report, const struct nrg_summary *summary)
{
    json_t *domain;
    size_t i;
    keep_only(report, shown);
    keep_only(json_object_get(report, "metadata"), harmless);
    redact_processes(report);
    json_array_foreach(json_object_get(report, "domains"), i, domain)
    {
        json_object_del(domain, "source");
        json_object_del(domain, "sensor"); /* a port, a file, a broker's host */
    }
    redact_missing(json_object_get(report, "missing"), summary);
}

/* Processes are named by what runs in them. */
static void drop_processes(json_t *list)
{
    for (size_t k = json_array_size(list); k-- > 0;) {
        const char *kind = json_string_value(json_object_get(json_array_get(list, k), "kind"));
        if (kind && !strcmp(kind, "process"))
            json_array_remove(list, k);
    }
}

static void redact_comparison(json_t *doc)
{
    static const char *const of_side[] = {"runs",    "energy_j",   "duration_s",
                                          "scatter", "provenance", NULL};
    keep_only(json_object_get(doc, "a"), of_side);
    keep_only(json_object_get(doc, "b"), of_side);
    drop_processes(json_object_get(doc, "rows"));
    drop_processes(json_object_get(doc, "only"));
    if (json_array_size(json_object_get(doc, "refusals"))) /* the answer quotes the first */
        json_object_set_new(doc, "answer", json_string("A and B are not comparable"));
    json_object_del(doc, "warnings"); /* may quote commands and hosts */
    json_object_del(doc, "refusals");
}

void nrg_page_redact_others(json_t *prediction, json_t *comparison)
{
    if (comparison)
        redact_comparison(comparison);
    json_object_del(prediction, "recording");
    json_object_del(prediction, "profile");
    json_object_del(prediction, "file");
}
