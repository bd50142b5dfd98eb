/* See resize_symbols.h. Integer arithmetic; anything unknown makes the result unknown. */
#include "graph/resize_symbols.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define MAX_DEPTH 32

static const struct nrg_symbol *symbol_of(const struct nrg_model *model, int64_t dim)
{
    for (size_t i = 0; i < model->n_symbols; i++)
        if (model->symbols[i].dim == dim)
            return &model->symbols[i];
    return NULL;
}

int64_t nrg_symbols_find(const struct nrg_model *model, const char *name, int64_t fallback)
{
    static const char *const aliases[][2] = {{"batch", "batch_size"},
                                             {"batch", "N"},
                                             {"seq", "sequence"},
                                             {"seq", "seq_len"},
                                             {"seq", "sequence_length"}};
    for (size_t i = 0; i < model->n_symbols; i++)
        if (!strcmp(model->symbols[i].name, name))
            return model->symbols[i].dim;
    for (size_t a = 0; a < sizeof aliases / sizeof *aliases; a++)
        for (size_t i = 0; !strcmp(aliases[a][0], name) && i < model->n_symbols; i++)
            if (!strcasecmp(model->symbols[i].name, aliases[a][1]))
                return model->symbols[i].dim;
    return fallback;
}

int nrg_symbols_set(struct nrg_symbols *s, int64_t dim, int64_t value)
{
    return nrg_append(&s->items, &s->n, &s->cap, &(struct nrg_symbol_value){dim, value},
                      sizeof *s->items);
}

void nrg_symbols_release(struct nrg_symbols *s)
{
    free(s->items);
    s->items = NULL;
    s->n = s->cap = 0;
}

/* ---- expressions ---- */

struct parser {
    const struct nrg_symbols *symbols;
    const char *at;
    int depth;
    bool wrong;
};

static int64_t parse_sum(struct parser *p);

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

static int64_t given_value(const struct nrg_symbols *s, int64_t dim)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i].dim == dim)
            return s->items[i].value;
    return NRG_DIM_UNKNOWN;
}

/* A symbol by its name: as given, else as in the example. */
static int64_t named_value(struct parser *p, const char *name, size_t len)
{
    const struct nrg_model *model = p->symbols->model;
    for (size_t i = 0; i < model->n_symbols; i++) {
        const struct nrg_symbol *s = &model->symbols[i];
        if (strlen(s->name) != len || memcmp(s->name, name, len))
            continue;
        int64_t value = given_value(p->symbols, s->dim);
        return value >= 0 ? value : s->example;
    }
    return NRG_DIM_UNKNOWN;
}

static int64_t parse_factor(struct parser *p)
{
    int64_t value = 0;
    skip_blanks(p);
    if (*p->at == '(') {
        p->at++;
        value = ++p->depth < MAX_DEPTH ? parse_sum(p) : -1;
        p->depth--;
        skip_blanks(p);
        p->wrong |= *p->at != ')';
        p->at += *p->at == ')';
    } else if (isdigit((unsigned char)*p->at)) {
        for (; isdigit((unsigned char)*p->at); p->at++)
            if (__builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, *p->at - '0', &value))
                p->wrong = true;
    } else {
        const char *start = p->at;
        while (isalnum((unsigned char)*p->at) || *p->at == '_')
            p->at++;
        value = named_value(p, start, (size_t)(p->at - start));
        p->wrong |= value < 0 || p->at == start;
    }
    return p->wrong ? 0 : value;
}

static int64_t parse_term(struct parser *p)
{
    int64_t value = parse_factor(p);
    for (skip_blanks(p); !p->wrong && (*p->at == '*' || *p->at == '/'); skip_blanks(p)) {
        bool divide = *p->at == '/';
        p->at += divide && p->at[1] == '/' ? 2 : 1;
        if (*p->at == '*') { /* a power: no file has had one, so it is not guessed */
            p->wrong = true;
            return 0;
        }
        int64_t next = parse_factor(p);
        if (divide && next <= 0)
            p->wrong = true;
        else if (divide)
            value /= next;
        else
            p->wrong |= __builtin_mul_overflow(value, next, &value);
    }
    return value;
}

static int64_t parse_sum(struct parser *p)
{
    int64_t value = parse_term(p);
    for (skip_blanks(p); !p->wrong && (*p->at == '+' || *p->at == '-'); skip_blanks(p)) {
        bool minus = *p->at++ == '-';
        int64_t next = parse_term(p);
        p->wrong |= minus ? __builtin_sub_overflow(value, next, &value)
                          : __builtin_add_overflow(value, next, &value);
    }
    return value;
}

int64_t nrg_symbols_value(const struct nrg_symbols *s, int64_t dim)
{
    const struct nrg_symbol *symbol = symbol_of(s->model, dim);
    int64_t value = given_value(s, dim);
    if (value >= 0 || !symbol)
        return value;
    struct parser p = {.symbols = s, .at = symbol->name};
    value = parse_sum(&p);
    skip_blanks(&p);
    return p.wrong || *p.at || value < 0 ? NRG_DIM_UNKNOWN : value;
}
