/*
 * See stream.h. One buffer; a token that lies across its end is collected piece by piece. A
 * tokeniser with a bit per open bracket instead of a recursive parser: depth costs nothing, and the
 * caller may stop anywhere.
 */
#include "base/json/stream.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "base/internal.h"
#include "base/mem.h"
#include "base/parse.h"

int nrg_json_init(struct nrg_json_stream *s, FILE *in, const char *name, unsigned flags)
{
    *s = (struct nrg_json_stream){.in = in, .name = name, .flags = flags};
    s->buffer = malloc(NRG_JSON_BUFFER);
    s->text = malloc(NRG_JSON_TEXT_MAX + 1);
    if (s->buffer && s->text) {
        s->text[0] = '\0';
        return 0;
    }
    nrg_json_release(s);
    return -ENOMEM;
}

void nrg_json_release(struct nrg_json_stream *s)
{
    free(s->buffer);
    free(s->text);
    s->buffer = s->text = NULL;
}

uint64_t nrg_json_position(const struct nrg_json_stream *s)
{
    return s->before_bytes + s->at;
}

/* When a read failed, that is the error, not the incomplete text that it leaves. */
static int read_error(const struct nrg_json_stream *s, struct nrg_error *err)
{
    return nrg_fail_at(err, s->error, s->name, (long long)nrg_json_position(s), "cannot read: %s",
                       nrg_input_why(-s->error));
}

/* The file ends where a value should go on. */
static int cut_off(struct nrg_json_stream *s, struct nrg_error *err)
{
    if (s->error)
        return read_error(s, err);
    if (!(s->flags & NRG_JSON_MAY_BE_CUT))
        return nrg_json_fail(s, err, "the file ends inside of a value: was it cut off?");
    s->truncated = true;
    s->depth = 0;
    s->started = true;
    s->state = NRG_JSON_S_AFTER;
    return NRG_JSON_END;
}

static int skip_blanks(struct nrg_json_stream *s)
{
    for (;;) {
        int c = nrg_json_peek(s);
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return c;
        s->at++;
    }
}

static int open_bracket(struct nrg_json_stream *s, bool object, struct nrg_error *err)
{
    if (s->depth == NRG_JSON_DEPTH)
        return nrg_json_fail(s, err, "more than %d brackets are open", NRG_JSON_DEPTH);
    s->is_object[s->depth++] = object;
    s->state = NRG_JSON_S_FIRST;
    return object ? NRG_JSON_OBJECT : NRG_JSON_ARRAY;
}

static int close_bracket(struct nrg_json_stream *s, int c, struct nrg_error *err)
{
    bool object = c == '}';
    if (s->is_object[s->depth - 1] != object)
        return nrg_json_fail(s, err, "'%c' closes what '%c' opened", c, object ? '[' : '{');
    s->at++;
    s->depth--;
    s->state = NRG_JSON_S_AFTER;
    return object ? NRG_JSON_OBJECT_END : NRG_JSON_ARRAY_END;
}

static int classify_word(struct nrg_json_stream *s, struct nrg_error *err)
{
    static const struct {
        const char *text;
        enum nrg_json_token token;
    } words[] = {{"true", NRG_JSON_TRUE},       {"false", NRG_JSON_FALSE},
                 {"null", NRG_JSON_NULL},       {"NaN", NRG_JSON_NUMBER},
                 {"Infinity", NRG_JSON_NUMBER}, {"-Infinity", NRG_JSON_NUMBER},
                 {"nan", NRG_JSON_NUMBER},      {"inf", NRG_JSON_NUMBER},
                 {"-inf", NRG_JSON_NUMBER},     {"-nan", NRG_JSON_NUMBER}};
    s->state = NRG_JSON_S_AFTER;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (nrg_json_is(s, words[i].text))
            return (int)words[i].token;
    if (s->len && (s->text[0] == '-' || (s->text[0] >= '0' && s->text[0] <= '9')))
        return NRG_JSON_NUMBER;
    char shown[40];
    nrg_copy_clean(shown, sizeof shown, s->text, s->len);
    return nrg_json_fail(s, err, shown[0] ? "'%s' is not a value" : "a value is missing%s", shown);
}

static int read_value(struct nrg_json_stream *s, int c, struct nrg_error *err)
{
    if (c == '{' || c == '[') {
        s->at++;
        return open_bracket(s, c == '{', err);
    }
    if (c == '"') {
        s->at++;
        if (!nrg_json_read_text(s))
            return cut_off(s, err);
        s->state = NRG_JSON_S_AFTER;
        return NRG_JSON_STRING;
    }
    nrg_json_read_word(s);
    if (nrg_json_peek(s) < 0 && s->depth)
        return cut_off(s, err); /* the cut may have shortened a number */
    return classify_word(s, err);
}

static int read_key(struct nrg_json_stream *s, int c, struct nrg_error *err)
{
    if (c != '"')
        return nrg_json_fail(s, err, "a name in quotes is missing");
    s->at++;
    if (!nrg_json_read_text(s))
        return cut_off(s, err);
    c = skip_blanks(s);
    if (c < 0)
        return cut_off(s, err);
    if (c != ':')
        return nrg_json_fail(s, err, "':' is missing behind a name");
    s->at++;
    s->state = NRG_JSON_S_MEMBER;
    return NRG_JSON_KEY;
}

static int end_document(struct nrg_json_stream *s, int c, struct nrg_error *err)
{
    if (s->error)
        return read_error(s, err);
    return c < 0 || s->truncated ? NRG_JSON_END
                                 : nrg_json_fail(s, err, "something follows the end");
}

/* After a value: a comma and what follows it, or a closing bracket. */
static int read_after_value(struct nrg_json_stream *s, int c, struct nrg_error *err)
{
    if (c == ']' || c == '}')
        return close_bracket(s, c, err);
    if (c != ',')
        return nrg_json_fail(s, err, "',' or a closing bracket is missing");
    s->at++;
    c = skip_blanks(s);
    if (c < 0)
        return cut_off(s, err);
    if ((c == ']' || c == '}') && s->flags & NRG_JSON_MAY_BE_CUT)
        return close_bracket(s, c, err);
    return s->is_object[s->depth - 1] ? read_key(s, c, err) : read_value(s, c, err);
}

int nrg_json_next(struct nrg_json_stream *s, struct nrg_error *err)
{
    if (!s->started) {
        s->started = true;
        nrg_json_skip_mark(s);
        int first = skip_blanks(s);
        return first < 0 ? end_document(s, first, err) : read_value(s, first, err);
    }
    if (s->truncated)
        return NRG_JSON_END;
    int c = skip_blanks(s);
    if (!s->depth)
        return end_document(s, c, err);
    if (c < 0)
        return cut_off(s, err);
    if (s->state == NRG_JSON_S_AFTER)
        return read_after_value(s, c, err);
    if (s->state == NRG_JSON_S_FIRST && (c == ']' || c == '}'))
        return close_bracket(s, c, err);
    return s->state == NRG_JSON_S_FIRST && s->is_object[s->depth - 1] ? read_key(s, c, err)
                                                                      : read_value(s, c, err);
}

int nrg_json_skip_rest(struct nrg_json_stream *s, struct nrg_error *err)
{
    if (!nrg_json_skip_brackets(s))
        return cut_off(s, err);
    s->depth--;
    s->state = NRG_JSON_S_AFTER;
    return 0;
}

int nrg_json_skip_value(struct nrg_json_stream *s, struct nrg_error *err)
{
    int c = skip_blanks(s);
    if (s->state != NRG_JSON_S_MEMBER || (c != '{' && c != '[')) {
        int token = nrg_json_next(s, err);
        if (token == NRG_JSON_OBJECT || token == NRG_JSON_ARRAY)
            return nrg_json_skip_rest(s, err);
        return token < 0 ? token : 0;
    }
    /* A value that is too deep to be read can still be skipped. */
    s->at++;
    if (!nrg_json_skip_brackets(s))
        return cut_off(s, err);
    s->state = NRG_JSON_S_AFTER;
    return 0;
}

bool nrg_json_is(const struct nrg_json_stream *s, const char *text)
{
    size_t len = strlen(text);
    return s->len == len && !memcmp(s->text, text, len);
}

int nrg_json_double(const struct nrg_json_stream *s, double *out)
{
    char *end;
    if (s->cut || !s->len || memchr(s->text, '\0', s->len))
        return -EINVAL;
    double number = strtod(s->text, &end);
    if (*end)
        return -EINVAL;
    *out = number;
    return 0;
}

int nrg_json_scaled(const struct nrg_json_stream *s, int power, int64_t *out)
{
    return s->cut ? -ERANGE : nrg_parse_scaled(s->text, s->len, power, out);
}
