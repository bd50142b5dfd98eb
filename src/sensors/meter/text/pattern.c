/*
 * See text/pattern.h. A pattern is a list of alternatives, and an alternative is a list of segments
 * with any text between them. Within a segment every piece takes a definite number of bytes, so a
 * segment either matches at a place or does not. Segments are searched from left to right, each at
 * its first match. That is exact for such patterns (an earlier match leaves more of the line to
 * the rest) and needs no backtracking.
 */
#include "sensors/meter/text/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "sensors/meter/spec.h"

struct compiler {
    struct nrg_pattern *p;
    const char *text, *at;
    struct nrg_meter_field *fields;
    size_t *n_fields;
    struct nrg_error *err;
};

static int fail_at_cursor(const struct compiler *c, const char *what)
{
    return nrg_fail_at(c->err, -EINVAL, "pattern=", c->at - c->text + 1, "%s", what);
}

static struct nrg_piece *last_piece(struct nrg_pattern *p)
{
    return p->n_pieces ? &p->pieces[p->n_pieces - 1] : NULL;
}

static int add_piece(struct compiler *c, enum nrg_piece_kind kind, size_t field)
{
    if (c->p->n_pieces == NRG_PATTERN_PIECES)
        return fail_at_cursor(c, "the pattern has too many parts");
    c->p->pieces[c->p->n_pieces++] = (struct nrg_piece){
        .kind = kind, .at = (unsigned short)c->p->n_text, .field = (unsigned short)field};
    return 0;
}

static int add_char(struct compiler *c, char ch)
{
    struct nrg_piece *last = last_piece(c->p);
    int rc = 0;
    if (c->p->n_text == NRG_PATTERN_TEXT)
        return fail_at_cursor(c, "the pattern is too long");
    if (!last || last->kind != NRG_PIECE_TEXT)
        rc = add_piece(c, NRG_PIECE_TEXT, 0);
    if (rc)
        return rc;
    c->p->text[c->p->n_text++] = ch;
    last_piece(c->p)->len++;
    return 0;
}

/* "name[:unit[:kind]]" between braces. */
static int add_field(struct compiler *c, const char *spec, size_t len)
{
    struct nrg_meter_field field;
    double factor;
    size_t i = 0;
    int rc = nrg_meter_spec_field(spec, len, c->text, "pattern=", &field, &factor, c->err);
    if (rc)
        return rc;
    while (i < *c->n_fields && strcmp(c->fields[i].name, field.name))
        i++;
    if (i == NRG_METER_FIELDS)
        return fail_at_cursor(c, "the pattern has too many names");
    if (i == *c->n_fields) {
        c->fields[(*c->n_fields)++] = field;
        c->p->factors[i] = factor;
    } else if (c->fields[i].quantity != field.quantity || c->p->factors[i] != factor) {
        return fail_at_cursor(c, "this name is given twice, with different units");
    }
    return add_piece(c, NRG_PIECE_NUMBER, i);
}

static int add_braces(struct compiler *c)
{
    const char *close = strchr(c->at, '}');
    if (!close)
        return fail_at_cursor(c, "a '{' is not closed: '{{' means the character");
    const char *spec = c->at + 1;
    size_t len = (size_t)(close - spec);
    struct nrg_piece *last = last_piece(c->p);
    int rc;
    if (last && len > 1 && (last->kind == NRG_PIECE_NUMBER || last->kind == NRG_PIECE_TIME))
        return fail_at_cursor(c, "two values need some text between them");
    if (!len || (len == 1 && *spec == '*'))
        rc = last && last->kind == NRG_PIECE_ANY ? 0 : add_piece(c, NRG_PIECE_ANY, 0);
    else if (len == 1 && *spec == '|')
        rc = add_char(c, '|');
    else if (len == 4 && !memcmp(spec, "time", 4)) {
        c->p->has_time = true;
        rc = add_piece(c, NRG_PIECE_TIME, 0);
    } else
        rc = add_field(c, spec, len);
    c->at = close;
    return rc;
}

static int compile_one(struct compiler *c)
{
    const struct nrg_piece *last = last_piece(c->p);
    bool begins = !last || last->kind == NRG_PIECE_OR;
    if (*c->at == '^' && begins)
        return add_piece(c, NRG_PIECE_BEGIN, 0);
    if (*c->at == '|')
        return begins ? fail_at_cursor(c, "nothing stands before this '|'")
                      : add_piece(c, NRG_PIECE_OR, 0);
    if (isspace((unsigned char)*c->at))
        return last && last->kind == NRG_PIECE_BLANK ? 0 : add_piece(c, NRG_PIECE_BLANK, 0);
    if (*c->at != '{')
        return add_char(c, *c->at);
    if (c->at[1] != '{')
        return add_braces(c);
    c->at++;
    return add_char(c, '{');
}

int nrg_pattern_compile(struct nrg_pattern *pattern, const char *text,
                        struct nrg_meter_field *fields, size_t *n_fields, struct nrg_error *err)
{
    struct compiler c = {pattern, text, text, fields, n_fields, err};
    int rc = 0;
    memset(pattern, 0, sizeof *pattern);
    for (; !rc && *c.at; c.at++)
        rc = compile_one(&c);
    if (!rc && !*n_fields)
        rc = nrg_fail(err, -EINVAL, "pattern=", "names no value: write {power} where it stands");
    if (!rc && last_piece(pattern)->kind == NRG_PIECE_OR)
        rc = nrg_fail(err, -EINVAL, "pattern=", "nothing stands after the last '|'");
    return rc;
}

struct matcher {
    const struct nrg_pattern *p;
    const char *line;
    size_t len;
    struct nrg_pattern_match *out;
};

static size_t skip_blanks(const struct matcher *m, size_t at)
{
    while (at < m->len && isspace((unsigned char)m->line[at]))
        at++;
    return at;
}

/* A time is a run without blanks or separators, or a date with a blank before the time of day. */
static size_t time_length(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && (isalnum((unsigned char)text[n]) || strchr("-:.+", text[n])))
        n++;
    if (n == 10 && n + 1 < len && text[4] == '-' && text[n] == ' ' &&
        isdigit((unsigned char)text[n + 1]))
        return n + 1 + time_length(text + n + 1, len - n - 1);
    return n;
}

/* The place after the piece, or SIZE_MAX. */
static size_t match_piece(const struct matcher *m, const struct nrg_piece *piece, size_t at)
{
    size_t left = m->len - at, used;
    double number;
    switch (piece->kind) {
    case NRG_PIECE_TEXT:
        return left >= piece->len && !memcmp(m->line + at, m->p->text + piece->at, piece->len)
                   ? at + piece->len
                   : SIZE_MAX;
    case NRG_PIECE_BLANK:
        return skip_blanks(m, at);
    case NRG_PIECE_NUMBER:
        used = nrg_meter_scan(m->line + at, left, false, &number);
        number *= m->p->factors[piece->field];
        if (!used || !(fabs(number) < 1e15))
            return SIZE_MAX;
        m->out->values[piece->field] = number;
        return at + used;
    case NRG_PIECE_TIME:
        used = time_length(m->line + at, left);
        m->out->time = m->line + at;
        m->out->time_len = used;
        return used ? at + used : SIZE_MAX;
    case NRG_PIECE_BEGIN:
        return at ? SIZE_MAX : 0;
    default:
        return SIZE_MAX;
    }
}

static bool in_segment(const struct nrg_piece *piece, const struct nrg_piece *end)
{
    return piece < end && piece->kind != NRG_PIECE_ANY && piece->kind != NRG_PIECE_OR;
}

static bool starts_inside_number(const struct matcher *m, const struct nrg_piece *piece, size_t at)
{
    return piece->kind == NRG_PIECE_NUMBER && at &&
           (isalnum((unsigned char)m->line[at - 1]) || strchr(".+-", m->line[at - 1]));
}

static size_t match_segment_at(const struct matcher *m, const struct nrg_piece *piece,
                               const struct nrg_piece *end, size_t at)
{
    if (starts_inside_number(m, piece, at))
        return SIZE_MAX; /* "-5" is not 5, "P1" no 1 */
    for (; at != SIZE_MAX && in_segment(piece, end); piece++)
        at = match_piece(m, piece, at);
    return at;
}

static bool match_alternative(const struct matcher *m, const struct nrg_piece *piece,
                              const struct nrg_piece *end)
{
    size_t at = 0;
    while (piece < end && piece->kind != NRG_PIECE_OR) {
        if (piece->kind == NRG_PIECE_ANY) {
            piece++;
            continue;
        }
        size_t found = SIZE_MAX;
        for (size_t from = at; found == SIZE_MAX && from <= m->len; from++)
            found = match_segment_at(m, piece, end, from);
        if (found == SIZE_MAX)
            return false;
        at = found;
        while (in_segment(piece, end))
            piece++;
    }
    return true;
}

bool nrg_pattern_match(const struct nrg_pattern *pattern, const char *line, size_t len,
                       size_t n_fields, struct nrg_pattern_match *match)
{
    struct matcher m = {pattern, line, len, match};
    const struct nrg_piece *piece = pattern->pieces, *end = piece + pattern->n_pieces;
    while (piece < end) {
        match->time = NULL;
        for (size_t i = 0; i < n_fields; i++)
            match->values[i] = NAN;
        if (match_alternative(&m, piece, end))
            break;
        while (piece < end && piece->kind != NRG_PIECE_OR)
            piece++;
        piece++;
    }
    for (size_t i = 0; piece < end && i < n_fields; i++)
        if (!isnan(match->values[i]))
            return true;
    return false;
}
