/*
 * The types of options: how a value's text becomes the field of a command's values, and the words
 * of choices for messages and help. See cli.h. A field that was not given keeps its default, often
 * 0 for "no limit", so a duration of 0 is refused: "0s" must not mean "for ever".
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "cli/internal.h"

static int store_flag(const struct nrg_opt_type *type, void *field, const char *value)
{
    *(bool *)field = true;
    return 0;
}

static int store_text(const struct nrg_opt_type *type, void *field, const char *value)
{
    *(const char **)field = value ? value : "-";
    return 0;
}

static int store_item(const struct nrg_opt_type *type, void *field, const char *value)
{
    struct nrg_list *list = field;
    if (nrg_reserve(&list->items, &list->cap, list->n + 2, sizeof *list->items))
        return -ENOMEM;
    list->items[list->n++] = value;
    list->items[list->n] = NULL;
    return 0;
}

static int store_duration(const struct nrg_opt_type *type, void *field, const char *value)
{
    int64_t *field_ns = field;
    int rc = nrg_parse_duration_ns(value, field_ns);
    return rc ? rc : *field_ns > 0 ? 0 : -ERANGE;
}

static int store_rate(const struct nrg_opt_type *type, void *field, const char *value)
{
    return nrg_parse_rate_hz(value, field);
}

int nrg_store_number(const struct nrg_opt_type *type, void *field, const char *value)
{
    double number;
    int rc = nrg_parse_double(value, strlen(value), &number);
    bool limited = type->least != 0 || type->most != 0;
    if (rc || (limited && !(number >= type->least && number <= type->most)))
        return rc ? rc : -ERANGE;
    *(double *)field = number;
    return 0;
}

int nrg_store_count(const struct nrg_opt_type *type, void *field, const char *value)
{
    double number;
    int rc = nrg_store_number(type, &number, value);
    if (rc || number != (double)(int)number)
        return rc ? rc : -ERANGE;
    *(int *)field = (int)number;
    return 0;
}

int nrg_store_choice(const struct nrg_opt_type *type, void *field, const char *value)
{
    for (const struct nrg_choice *c = type->choices; c->word; c++) {
        if (value && strcmp(c->word, value))
            continue;
        *(int *)field = c->value;
        return 0;
    }
    return -EINVAL;
}

int nrg_store_choices(const struct nrg_opt_type *type, void *field, const char *value)
{
    unsigned bits = 0;
    for (const char *text = value;; text++) {
        size_t len = strcspn(text, ",");
        const struct nrg_choice *c = type->choices;
        while (c->word && (strlen(c->word) != len || memcmp(c->word, text, len) != 0))
            c++;
        if (!c->word)
            return -EINVAL;
        bits |= 1u << c->value;
        text += len;
        if (!*text)
            break;
    }
    *(unsigned *)field = bits;
    return 0;
}

static int store_seconds(const struct nrg_opt_type *type, void *field, const char *value)
{
    struct nrg_given_ns *given = field;
    given->given = true;
    return nrg_parse_scaled(value, strlen(value), 9, &given->ns);
}

static int store_range(const struct nrg_opt_type *type, void *field, const char *value)
{
    struct nrg_given_ns *given = field;
    given->given = true;
    return value ? store_duration(type, &given->ns, value) : 0;
}

/* "+02:00", "-0330", "2" */
static int store_zone(const struct nrg_opt_type *type, void *field, const char *text)
{
    const char *p = text + (*text == '+' || *text == '-');
    size_t digits = strspn(p, "0123456789"), hour_digits = digits > 2 ? digits - 2 : digits;
    const char *rest = p + digits;
    int64_t hours = 0, minutes = 0;
    bool colon = *rest == ':';
    const char *minute_text = colon ? rest + 1 : p + hour_digits;
    if (nrg_parse_i64(p, colon ? digits : hour_digits, &hours) || digits > 4)
        return -EINVAL;
    if ((colon || digits > 2) && nrg_parse_i64(minute_text, strlen(minute_text), &minutes))
        return -EINVAL;
    if ((!colon && *rest) || hours > 14 || hours < 0 || minutes < 0 || minutes > 59)
        return -EINVAL;
    *(int64_t *)field = (hours * 60 + minutes) * 60 * INT64_C(1000000000) * (*text == '-' ? -1 : 1);
    return 0;
}

static int store_watts(const struct nrg_opt_type *type, void *field, const char *text)
{
    struct nrg_idle_full *watts = field;
    const char *colon = strchr(text, ':');
    if (!colon || nrg_parse_double(text, (size_t)(colon - text), &watts->idle_w) ||
        nrg_parse_double(colon + 1, strlen(colon + 1), &watts->full_w))
        return -EINVAL;
    return watts->idle_w > 0 && watts->full_w >= watts->idle_w ? 0 : -ERANGE;
}

static int store_bytes(const struct nrg_opt_type *type, void *field, const char *text)
{
    return nrg_parse_bytes(text, field);
}

const char *nrg_choice_word(const struct nrg_choice *choices, int value)
{
    while (choices->word && choices->value != value)
        choices++;
    return choices->word;
}

const char *nrg_choice_words(const struct nrg_choice *choices, bool notes, char *buf, size_t size)
{
    size_t len = 0;
    buf[0] = '\0';
    for (const struct nrg_choice *c = choices; c->word && len < size; c++) {
        const char *between = c == choices ? "" : c[1].word ? ", " : " or ";
        bool note = notes && c->note;
        int n = snprintf(buf + len, size - len, "%s%s%s%s%s", between, c->word, note ? " (" : "",
                         note ? c->note : "", note ? ")" : "");
        len += n > 0 ? (size_t)n : 0;
    }
    return buf;
}

#define VALUE_TYPE(name, function, text)                                                           \
    const struct nrg_opt_type name = {                                                             \
        .takes = NRG_TAKES_VALUE, .store = (function), .wants = (text)}
#define OPTIONAL_TYPE(name, function, text)                                                        \
    const struct nrg_opt_type name = {                                                             \
        .takes = NRG_TAKES_OPTIONAL, .store = (function), .wants = (text)}

const struct nrg_opt_type nrg_opt_flag = {.takes = NRG_TAKES_NOTHING, .store = store_flag};
VALUE_TYPE(nrg_opt_string, store_text, "a text");
const struct nrg_opt_type nrg_opt_duration = {.takes = NRG_TAKES_VALUE,
                                              .store = store_duration,
                                              .wants = "a duration such as 10s, 250ms or 2min",
                                              .examples = "100ms 1s 10s 1min"};
const struct nrg_opt_type nrg_opt_rate = {.takes = NRG_TAKES_VALUE,
                                          .store = store_rate,
                                          .wants =
                                              "a rate such as 1Hz, 100Hz or 1kHz (up to 100kHz)",
                                          .examples = "1Hz 10Hz 100Hz 1kHz"};
VALUE_TYPE(nrg_opt_number, nrg_store_number, "a number");
VALUE_TYPE(nrg_opt_seconds, store_seconds, "seconds, such as -0.25");
VALUE_TYPE(nrg_opt_zone, store_zone, "hours and minutes such as +02:00");
VALUE_TYPE(nrg_opt_watts, store_watts, "IDLE:FULL in watts, such as 40:180");
VALUE_TYPE(nrg_opt_bytes, store_bytes, "a size such as 80GB");
OPTIONAL_TYPE(nrg_opt_file, store_text, "a file");
OPTIONAL_TYPE(nrg_opt_range, store_range, "how far to look, such as 5s");
const struct nrg_opt_type nrg_opt_list = {
    .takes = NRG_TAKES_VALUE, .store = store_item, .wants = "a text", .is_list = true};
const struct nrg_opt_type nrg_opt_count = {.takes = NRG_TAKES_VALUE,
                                           .store = nrg_store_count,
                                           .wants = "a whole number, 1 or more",
                                           .least = 1,
                                           .most = 1e9};
