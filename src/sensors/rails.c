/* See rails.h. Tables, because boards differ in names rather than in rules. */
#include "sensors/rails.h"

#include <stddef.h>
#include <string.h>

/* Supplies of a whole module; labelled rails that are not in `inside` are parts of them. */
static const char *const inputs[] = {"VDD_IN",    "POM_5V_IN",  "5V_IN", "VIN",
                                     "VDD_TOTAL", "SYS_VIN_HV", NULL};

/* Rails that are inside others than the module's input, or (NULL) inside none. */
static const struct inside {
    const char *label, *parent, *else_parent;
} inside[] = {
    {"VDDQ_VDD2_1V8AO", "VIN_SYS_5V0", NULL}, /* AGX Orin */
    {"VIN_SYS_5V0", "VIN", NULL},             /* AGX Thor: a meter of its own before the board */
    {"SYS_VIN_MV", NULL, NULL},               /* AGX Xavier's second supply */
    {"SYS5V", NULL, NULL},
    {"VDD_MUX", NULL, NULL}, /* TX1 and TX2: the carrier board's own supply */
    {"VDD_5V0_IO_SYS", "VDD_MUX", NULL},
    {"VDD_5V_IO_SYS", "VDD_MUX", NULL},
    {"VDD_3V3_SYS", "VDD_MUX", NULL},
    {"VDD_3V3_SYS_M2", "VDD_3V3_SYS", "VDD_MUX"},
    {"VDD_M2_IN", "VDD_MUX", NULL},
    {"VDD_3V3_IO_SLP", "VDD_3V3_SYS", "VDD_MUX"},
    {"VDD_3V3_IO", "VDD_3V3_SYS", "VDD_MUX"},
    {"VDD_1V8_IO", "VDD_5V0_IO_SYS", "VDD_MUX"},
    {NULL, NULL, NULL},
};

/* Rails of boards without an input rail, and of the modules whose input is not shown. */
static const char *const disjoint[] = {
    "GPU",         "CPU",         "SOC",         "CV",
    "VDDRQ",       "VDD_GPU_SOC", "VDD_CPU_CV",  "VDD_GPU",
    "VDD_CPU",     "VDD_SOC",     "VDD_SYS_GPU", "VDD_CPU_SOC_MSS",
    "VDD_SYS_CPU", "VDD_SYS_SOC", "VDD_SYS_DDR", "VDD_CPU_GPU_CV",
    "POM_5V_GPU",  "POM_5V_CPU",  NULL};

static bool is_label(const char *label, const char *name)
{
    size_t len = strlen(label);
    return !strncmp(label, name, len) && (name[len] == '\0' || name[len] == '-');
}

static bool is_one_of(const char *const *labels, const char *name)
{
    size_t i = 0;
    while (labels[i] && !is_label(labels[i], name))
        i++;
    return labels[i] != NULL;
}

bool nrg_rail_is_input(const char *label)
{
    return is_one_of(inputs, label);
}

bool nrg_rail_is_disjoint(const char *label)
{
    bool known = is_one_of(disjoint, label);
    for (const struct inside *i = inside; !known && i->label; i++)
        known = is_label(i->label, label);
    return known;
}

const char *nrg_rail_parent(const char *label, bool (*is_there)(const char *label, const void *arg),
                            const void *arg)
{
    for (const struct inside *i = inside; i->label; i++) {
        if (strcmp(i->label, label))
            continue;
        if (i->parent && is_there(i->parent, arg))
            return i->parent;
        return i->else_parent && is_there(i->else_parent, arg) ? i->else_parent : "";
    }
    for (size_t i = 0; inputs[i] && !nrg_rail_is_input(label); i++)
        if (is_there(inputs[i], arg))
            return inputs[i];
    return "";
}
