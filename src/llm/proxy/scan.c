/*
 * See scan.h. A document is read by a small machine that knows keys, strings, numbers and
 * nesting, not whether all of it is valid. The place of a value is its path: five bits for each key
 * around it, 31 for keys that nobody asked for; lists add nothing.
 */
#include "llm/proxy/scan.h"

#include <string.h>

#include "base/mem.h"
#include "sensors/channel.h" /* NRG_MISSING */

enum key {
    NO_KEY, /* the top */
    MODEL,
    USAGE,
    RESPONSE,
    PROMPT_TOKENS,
    COMPLETION_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    INPUT_DETAILS,
    OUTPUT_DETAILS,
    CACHED,
    REASONING,
    PROMPT_EVAL,
    EVAL,
    EVALUATED,
    PREDICTED,
    CHOICES,
    DELTA,
    MESSAGE,
    CONTENT,
    TEXT,
    TOOL_CALLS,
    FUNCTION,
    TYPE,
    CACHE_READ,
    CACHE_CREATION,
    TOTAL_TOKENS,
    TOKEN,
    ERROR,
    INDEX,
    OTHER = 31
};

#define LONGEST_KEY 27

/* By their length. */
static const struct {
    const char *text;
    enum key key;
} keys[LONGEST_KEY + 1][7] = {
    [4] = {{"text", TEXT}, {"type", TYPE}},
    [5] = {{"model", MODEL},
           {"delta", DELTA},
           {"usage", USAGE},
           {"token", TOKEN},
           {"error", ERROR},
           {"index", INDEX}},
    [7] = {{"choices", CHOICES},
           {"content", CONTENT},
           {"message", MESSAGE},
           {"refusal", CONTENT},
           {"details", USAGE}},
    [8] = {{"response", RESPONSE}, {"thinking", CONTENT}, {"function", FUNCTION}},
    [9] = {{"reasoning", CONTENT}, {"arguments", CONTENT}, {"meta_info", USAGE}},
    [10] = {{"tool_calls", TOOL_CALLS}, {"eval_count", EVAL}},
    [12] = {{"input_tokens", INPUT_TOKENS},
            {"input_length", INPUT_TOKENS},
            {"partial_json", CONTENT},
            {"total_tokens", TOTAL_TOKENS}},
    [13] = {{"prompt_tokens", PROMPT_TOKENS},
            {"output_tokens", OUTPUT_TOKENS},
            {"cached_tokens", CACHED}},
    [16] = {{"reasoning_tokens", REASONING},
            {"tokens_evaluated", EVALUATED},
            {"tokens_predicted", PREDICTED},
            {"generated_tokens", OUTPUT_TOKENS}},
    [17] = {{"completion_tokens", COMPLETION_TOKENS},
            {"reasoning_content", CONTENT},
            {"prompt_eval_count", PROMPT_EVAL}},
    [20] = {{"input_tokens_details", INPUT_DETAILS}},
    [21] = {{"prompt_tokens_details", INPUT_DETAILS}, {"output_tokens_details", OUTPUT_DETAILS}},
    [23] = {{"cache_read_input_tokens", CACHE_READ}},
    [25] = {{"completion_tokens_details", OUTPUT_DETAILS}},
    [LONGEST_KEY] = {{"cache_creation_input_tokens", CACHE_CREATION}},
};

#define P1(a)             ((uint64_t)(a))
#define P2(a, b)          (P1(a) << 5 | (b))
#define P3(a, b, c)       (P2(a, b) << 5 | (c))
#define P4(a, b, c, d)    (P3(a, b, c) << 5 | (d))
#define P5(a, b, c, d, e) (P4(a, b, c, d) << 5 | (e))
#define PATH_BITS         (1ULL << 59)

/* The count that a path means; NULL: none. Of a message that begins (Anthropic's message_start) the
 * output is what was made so far, and stays that where the answer is cut: it is no count. */
static int64_t *count_at(struct nrg_llm_seen *seen, uint64_t path)
{
    if (path >> 10 == RESPONSE || path >> 15 == RESPONSE) /* of the last event of a stream */
        path &= path >> 10 == RESPONSE ? (1u << 10) - 1 : (1u << 15) - 1;
    switch (path) {
    case P2(USAGE, PROMPT_TOKENS):
    case P2(USAGE, INPUT_TOKENS):
    case P3(MESSAGE, USAGE, INPUT_TOKENS):
    case P1(PROMPT_EVAL):
    case P1(EVALUATED):
        return &seen->input;
    case P2(USAGE, COMPLETION_TOKENS):
    case P2(USAGE, OUTPUT_TOKENS):
    case P1(EVAL):
    case P1(PREDICTED):
        return &seen->output;
    case P3(USAGE, INPUT_DETAILS, CACHED):
    case P2(USAGE, CACHED):
        return &seen->cached;
    case P2(USAGE, CACHE_READ):
    case P3(MESSAGE, USAGE, CACHE_READ):
        return &seen->cache_read;
    case P2(USAGE, CACHE_CREATION):
    case P3(MESSAGE, USAGE, CACHE_CREATION):
        return &seen->cache_creation;
    case P2(USAGE, TOTAL_TOKENS):
        return &seen->total;
    case P3(USAGE, OUTPUT_DETAILS, REASONING):
        return &seen->reasoning;
    default:
        return NULL;
    }
}

static bool is_answer_text(uint64_t path)
{
    switch (path) {
    case P2(CHOICES, TEXT):
    case P2(DELTA, TEXT):
    case P2(DELTA, CONTENT):
    case P2(TOKEN, TEXT):
    case P1(TEXT):
    case P3(CHOICES, DELTA, CONTENT):
    case P3(CHOICES, MESSAGE, CONTENT):
    case P5(CHOICES, DELTA, TOOL_CALLS, FUNCTION, CONTENT):
    case P5(CHOICES, MESSAGE, TOOL_CALLS, FUNCTION, CONTENT):
    case P2(MESSAGE, CONTENT):
    case P4(MESSAGE, TOOL_CALLS, FUNCTION, CONTENT):
    case P1(RESPONSE):
    case P1(CONTENT):
    case P1(DELTA):
        return true;
    default:
        return false;
    }
}

static bool is_model(uint64_t path)
{
    return path == P1(MODEL) || path == P2(RESPONSE, MODEL) || path == P2(MESSAGE, MODEL);
}

enum state {
    VALUE, /* one is expected */
    KEY,   /* a key, or the end of the object */
    COLON,
    NEXT, /* a comma, or the end of the container */
    STRING,
    NUMBER, /* a number or word */
    DONE,   /* the document is complete */
    LOST,   /* it is none */
};

static void begin_document(struct nrg_llm_scan *s)
{
    s->state = VALUE;
    s->depth = 0;
    s->path = NO_KEY;
    s->has_text = s->is_delta = s->has_type = s->counts = false;
    s->index = 0;
}

static void forget_counts(struct nrg_llm_seen *seen)
{
    seen->input = seen->cached = seen->output = seen->reasoning = NRG_MISSING;
    seen->cache_read = seen->cache_creation = seen->total = NRG_MISSING;
}

static void add_count(int64_t *to, int64_t more)
{
    if (*to == NRG_MISSING)
        *to = more;
    else if (more != NRG_MISSING)
        *to += more;
}

void nrg_llm_scan_init(struct nrg_llm_scan *s, enum nrg_scan_form form)
{
    *s = (struct nrg_llm_scan){.form = form, .counted = NRG_MISSING};
    forget_counts(&s->seen);
    begin_document(s);
}

static void end_document(struct nrg_llm_scan *s)
{
    s->seen.texts += s->has_text && (!s->has_type || s->is_delta);
    s->has_text = false;
    if (!s->counts)
        return;
    s->several |= s->counted != NRG_MISSING && s->counted != s->index;
    s->counted = s->index;
    if (s->several)
        forget_counts(&s->seen);
}

/* Is it one of several answers, each an object in the list that the document is? */
static bool is_part(const struct nrg_llm_scan *s)
{
    return s->form == NRG_SCAN_JSON && s->depth == 1 && !(s->objects & 1);
}

static void end_part(struct nrg_llm_scan *s)
{
    add_count(&s->seen.input, s->before.input);
    add_count(&s->seen.cached, s->before.cached);
    add_count(&s->seen.output, s->before.output);
    add_count(&s->seen.reasoning, s->before.reasoning);
}

static void open_container(struct nrg_llm_scan *s, bool object)
{
    s->seen.failed |= s->path == P1(ERROR);
    if (s->depth == NRG_SCAN_DEPTH) {
        s->state = LOST;
        return;
    }
    if (object && is_part(s)) {
        s->before = s->seen;
        forget_counts(&s->seen);
    }
    s->paths[s->depth] = s->path;
    s->objects = (s->objects & ~(1u << s->depth)) | (uint32_t)object << s->depth;
    s->depth++;
    s->state = object ? KEY : VALUE;
}

static void after_value(struct nrg_llm_scan *s)
{
    s->state = s->depth ? NEXT : DONE;
}

static void close_container(struct nrg_llm_scan *s)
{
    if (!s->depth) {
        s->state = LOST;
        return;
    }
    bool object = s->objects >> (s->depth - 1) & 1;
    s->depth--;
    s->path = s->paths[s->depth];
    if (object && is_part(s))
        end_part(s);
    after_value(s);
}

static void begin_string(struct nrg_llm_scan *s)
{
    s->after = s->state;
    s->state = STRING;
    s->text_n = s->escape = 0;
}

static enum key key_of(const char *text, size_t n)
{
    for (size_t i = 0; n <= LONGEST_KEY && keys[n][i].text; i++)
        if (!memcmp(keys[n][i].text, text, n))
            return keys[n][i].key;
    return OTHER;
}

static void take_key(struct nrg_llm_scan *s)
{
    enum key key = key_of(s->text, s->text_n);
    uint64_t around = s->paths[s->depth - 1];
    /* So deep that nothing is looked for: it must not become a short path again. */
    s->path = around >= PATH_BITS ? around : around << 5 | key;
    s->state = COLON;
}

static void take_string(struct nrg_llm_scan *s)
{
    static const char delta[] = ".delta";
    size_t n = s->text_n;
    s->text[n] = 0;
    if (is_model(s->path) && n) {
        if (memcmp(s->seen.model, s->text, n + 1) != 0) { /* most events say it again */
            nrg_copy_clean(s->seen.model, sizeof s->seen.model, s->text, n);
            s->opening.n = 0;
        }
    } else if (s->path == P1(TYPE)) {
        s->has_type |= !strncmp(s->text, "response.", 9);
        s->is_delta = n >= sizeof delta && !strcmp(s->text + n - sizeof delta + 1, delta);
    } else if (count_at(&s->seen, s->path)) {
        s->seen.lies++;
        s->counts = true;
    }
    s->seen.failed |= n && s->path == P1(ERROR);
    s->has_text |= n && is_answer_text(s->path);
    after_value(s);
}

/* A number, or null, true, false. */
static void take_number(struct nrg_llm_scan *s)
{
    bool is_index = s->path == P1(INDEX);
    int64_t *count = is_index ? &s->index : count_at(&s->seen, s->path), value = 0;
    bool whole = s->text_n > 0 && s->text_n <= 9;
    s->text[s->text_n] = 0;
    after_value(s);
    if (!count || !strcmp(s->text, "null"))
        return;
    s->counts |= !is_index;
    for (unsigned i = 0; i < s->text_n; i++) {
        whole &= s->text[i] >= '0' && s->text[i] <= '9';
        value = whole ? value * 10 + (s->text[i] - '0') : 0;
    }
    if (whole)
        *count = value;
    else
        s->seen.lies += !is_index;
}

static void keep_byte(struct nrg_llm_scan *s, char c)
{
    if (s->text_n < sizeof s->text - 1)
        s->text[s->text_n++] = c;
}

static void keep_bytes(struct nrg_llm_scan *s, const char *at, size_t n)
{
    size_t room = sizeof s->text - 1 - s->text_n;
    n = n < room ? n : room;
    memcpy(s->text + s->text_n, at, n);
    s->text_n += (unsigned)n;
}

static void end_string(struct nrg_llm_scan *s)
{
    s->state = s->after;
    if (s->after == KEY)
        take_key(s);
    else
        take_string(s);
}

/* How many bytes of the next ones come before a quote or a backslash. It does not look far: else
 * each of many backslashes would look for the same distant quote. */
static size_t plain_bytes(const char *at, size_t n)
{
    n = n < 64 ? n : 64;
    const char *quote = memchr(at, '"', n);
    n = quote ? (size_t)(quote - at) : n;
    const char *escape = memchr(at, '\\', n);
    return escape ? (size_t)(escape - at) : n;
}

/* Takes bytes of a string up to its end. Only a key or a model keeps more than one. */
static size_t take_string_bytes(struct nrg_llm_scan *s, const char *at, size_t n)
{
    size_t i = 0;
    bool keep = s->after == KEY || is_model(s->path) || s->path == P1(TYPE);
    while (i < n) {
        if (s->escape) {
            s->escape = 0;
            keep_byte(s, '?'); /* no key or count has one; a model's name is shown without */
            i++;
            continue;
        }
        size_t plain = plain_bytes(at + i, n - i);
        if (plain && (keep || !s->text_n))
            keep_bytes(s, at + i, keep ? plain : 1);
        i += plain;
        if (i < n && at[i] == '"') {
            end_string(s);
            return i + 1;
        }
        s->escape = i < n && at[i] == '\\';
        i += s->escape;
    }
    return i;
}

static void begin_value(struct nrg_llm_scan *s, char c)
{
    if (c == '{' || c == '[')
        open_container(s, c == '{');
    else if (c == '"')
        begin_string(s);
    else if (c == ']')
        close_container(s);
    else if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
             c == '-' || c == '+' || c == '.') {
        s->state = NUMBER;
        s->text_n = 0;
        keep_byte(s, c);
    } else {
        s->state = LOST;
    }
}

static void take_next(struct nrg_llm_scan *s, char c)
{
    bool object = s->depth && s->objects >> (s->depth - 1) & 1;
    if (c == ',') {
        s->state = object ? KEY : VALUE;
        s->path = s->paths[s->depth - 1];
    } else if (c == '}' || c == ']') {
        close_container(s);
    } else {
        s->state = LOST;
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void take_mark(struct nrg_llm_scan *s, char c)
{
    if (s->state == VALUE)
        begin_value(s, c);
    else if (s->state == KEY && c == '"')
        begin_string(s);
    else if (s->state == KEY && c == '}')
        close_container(s);
    else if (s->state == COLON && c == ':')
        s->state = VALUE;
    else if (s->state == NEXT)
        take_next(s, c);
    else
        s->state = LOST;
}

#define OPENING_DEPTH (sizeof(((struct nrg_scan_opening *)0)->paths) / sizeof(uint64_t))

/* Keeps the first n bytes of a document, which has come to its first text. What they say is no
 * count, so they can be left out another time. */
static void keep_opening(struct nrg_llm_scan *s, const char *at, size_t n)
{
    struct nrg_scan_opening *o = &s->opening;
    if (n > sizeof o->bytes || s->depth > OPENING_DEPTH || s->counts)
        return;
    memcpy(o->bytes, at, n);
    memcpy(o->paths, s->paths, s->depth * sizeof *s->paths);
    o->n = n;
    o->depth = s->depth;
    o->objects = s->objects;
    o->path = s->path;
    o->index = s->index;
    o->is_delta = s->is_delta;
    o->has_type = s->has_type;
}

/* How many bytes of a document are those of the opening; the machine is behind them then. */
static size_t skip_opening(struct nrg_llm_scan *s, const char *at, size_t n)
{
    const struct nrg_scan_opening *o = &s->opening;
    if (!o->n || n < o->n || memcmp(o->bytes, at, o->n) != 0)
        return 0;
    memcpy(s->paths, o->paths, o->depth * sizeof *s->paths);
    s->depth = o->depth;
    s->objects = o->objects;
    s->path = o->path;
    s->index = o->index;
    s->is_delta = o->is_delta;
    s->has_type = o->has_type;
    begin_string(s);
    return o->n;
}

static void take_document(struct nrg_llm_scan *s, const char *at, size_t n)
{
    bool opens = s->state == VALUE && !s->depth; /* up to its first text */
    size_t i = opens ? skip_opening(s, at, n) : 0;
    opens &= !i;
    while (i < n && s->state != LOST && s->state != DONE) {
        char c = at[i];
        if (s->state == STRING) {
            i += take_string_bytes(s, at + i, n - i);
            continue;
        }
        if (s->state == NUMBER) {
            if (!is_space(c) && c != ',' && c != '}' && c != ']') {
                keep_byte(s, c);
                i++;
                continue;
            }
            take_number(s);
            continue;
        }
        if (!is_space(c))
            take_mark(s, c);
        i++;
        if (opens && s->state == STRING && s->after == VALUE && is_answer_text(s->path)) {
            keep_opening(s, at, i);
            opens = false;
        }
    }
    if (s->state == DONE)
        end_document(s);
}

/* The part of a line of events that is a document, which begins behind "data:". */
static void take_event_bytes(struct nrg_llm_scan *s, const char *at, size_t n)
{
    static const char data[] = "data:";
    size_t i = 0;
    for (; i < n && s->line < 5; i++)
        s->line = s->line >= 0 && at[i] == data[s->line] ? s->line + 1 : 6;
    if (s->line == 5)
        take_document(s, at + i, n - i);
}

static void take_line_bytes(struct nrg_llm_scan *s, const char *at, size_t n)
{
    if (s->form == NRG_SCAN_EVENTS)
        take_event_bytes(s, at, n);
    else
        take_document(s, at, n);
}

void nrg_llm_scan_feed(struct nrg_llm_scan *s, const char *at, size_t n)
{
    const char *end = at + n;
    if (s->form == NRG_SCAN_NOTHING)
        return;
    if (s->form == NRG_SCAN_JSON) {
        take_document(s, at, n);
        return;
    }
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        take_line_bytes(s, at, (size_t)((stop ? stop : end) - at));
        if (!stop)
            return;
        begin_document(s);
        s->line = 0;
        at = stop + 1;
    }
}

static int64_t or_none(int64_t count)
{
    return count == NRG_MISSING ? 0 : count;
}

void nrg_llm_seen_settle(struct nrg_llm_seen *seen, const struct nrg_llm_api *api)
{
    if (api->prompt_apart && seen->input != NRG_MISSING)
        seen->input += or_none(seen->cache_read) + or_none(seen->cache_creation);
    if (api->prompt_apart && seen->cache_read != NRG_MISSING)
        seen->cached = seen->cache_read;
    if (api->no_text && seen->input == NRG_MISSING)
        seen->input = seen->total;
}
