/* See gate.h. */
#include "compare/gate.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/parse.h"

static const struct {
    const char *word;
    enum nrg_compare_quantity what;
} words[] = {
    {"energy", NRG_COMPARE_ENERGY},      {"program_energy", NRG_COMPARE_PROGRAM},
    {"program", NRG_COMPARE_PROGRAM},    {"duration", NRG_COMPARE_DURATION},
    {"time", NRG_COMPARE_DURATION},      {"mean_power", NRG_COMPARE_POWER},
    {"power", NRG_COMPARE_POWER},        {"energy_delay", NRG_COMPARE_ENERGY_DELAY},
    {"peak_memory", NRG_COMPARE_MEMORY}, {"memory", NRG_COMPARE_MEMORY},
};

static const char *skip_blanks(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static int find_word(const char *text, size_t len, enum nrg_compare_quantity *what)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == len && !strncmp(words[i].word, text, len)) {
            *what = words[i].what;
            return 0;
        }
    return -EINVAL;
}

int nrg_gate_parse(struct nrg_gate *gate, const char *text)
{
    double percent;
    text = skip_blanks(text);
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    if (find_word(text, len, &gate->what))
        return -EINVAL;
    text = skip_blanks(text + len);
    if (*text != '>' && *text != '<')
        return -EINVAL;
    gate->more = *text == '>';
    text = skip_blanks(text + 1);
    text += *text == '+';
    len = strcspn(text, "% \t");
    const char *rest = skip_blanks(text + len);
    if (nrg_parse_double(text, len, &percent) || !isfinite(percent) || percent <= -100 ||
        *rest != '%' || *skip_blanks(rest + 1))
        return -EINVAL;
    gate->ratio = 1 + percent / 100;
    return 0;
}

const char *const nrg_gate_words[] = {
    [NRG_GATE_NOT_MET] = "not met", [NRG_GATE_MET] = "met", [NRG_GATE_UNDECIDED] = "undecided"};

enum nrg_gate_result nrg_gate_judge(const char *condition, const struct nrg_comparison *c)
{
    struct nrg_gate gate;
    if (nrg_gate_parse(&gate, condition))
        return NRG_GATE_UNDECIDED;
    const struct nrg_effect *e = &c->quantities[gate.what];
    if (isnan(e->low))
        return NRG_GATE_UNDECIDED;
    bool met = gate.more ? e->low > gate.ratio : e->high < gate.ratio;
    return met ? NRG_GATE_MET : NRG_GATE_NOT_MET;
}
