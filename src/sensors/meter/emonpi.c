/*
 * emonPi, emonTx, RFM12Pi and RFM69Pi: a line per radio packet, "OK node b0 b1 ... (-rssi)". The
 * bytes are a packed struct of the sender (meter/layout.h); OKX is the hexadecimal form, "?" marks
 * a packet that arrived broken. Newer senders print "MSG:1,Vrms:239.5,P1:104,E1:12345" themselves.
 *
 * The radio has a checksum, the text has none, so a packet is only used when it is exactly as long
 * as the layout. Noise on the line spoils single bytes. Where the length still fits, only the
 * values of the spoilt bytes are missing and the others are used, because every lost line is a gap
 * in the power curve. The first line may have lost its beginning, but is whole if it has an "OK".
 *
 * A serial line may carry several nodes: node=5,8 with layout= for all or layout.8= for one.
 * Without node= the first node that fits is kept; `nrg meter watch` shows the others.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "sensors/drivers.h"
#include "sensors/meter/decoders.h"
#include "sensors/meter/emonpi_packet.h"
#include "sensors/meter/layout.h"
#include "sensors/meter/line.h"

#define MAX_NODES      8
#define MAX_FAULTS     3
#define ANY_NODE       (-1)
#define MAX_AVERAGE_NS (60 * NRG_NS_PER_S)

/* Six of each, as on the boards. */
#define SIX(name) name "1," name "2," name "3," name "4," name "5," name "6"

static const struct {
    const char *name, *text;
} built_in[] = {
    {"notes", "power1,power2,power3,Vrms"},
    {"emonpi", "power1,power2,power1_plus_2,Vrms," SIX("temp") ",pulse:uint32"},
    {"emontx3", "power1,power2,power3,power4,Vrms," SIX("temp") ",pulse:uint32"},
    {"emontxshield", "power1,power2,power3,power4,Vrms"},
    {"emontx4", "MSG:uint32 none,V1*0.01V," SIX("P") ",E1:int32,E2:int32,E3:int32,E4:int32,"
                                                     "E5:int32,E6:int32,pulse:uint32"},
    {"emontx4-3phase", "MSG:uint32 none,V1*0.01V,V2*0.01V,V3*0.01V," SIX(
                           "P") ",E1:int32,E2:int32,"
                                "E3:int32,E4:int32,E5:int32,E6:int32,pulse:uint32"},
    {"msg", "Vrms," SIX("P") "," SIX("E")},
};

struct node {
    int id;
    struct nrg_layout layout;
    size_t first; /* index of its first value */
};

struct emonpi {
    struct nrg_meter_lines lines;
    struct node nodes[MAX_NODES];
    size_t n_nodes, n_values;
    int kept;           /* the node of a meter without node=, ANY_NODE until it is known */
    int64_t printed_ns; /* when the last MSG line was sent */
    double values[NRG_METER_FIELDS];
};

static const char *layout_text(const char *text)
{
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (!strcmp(built_in[i].name, text))
            return built_in[i].text;
    return text;
}

static int add_node(struct emonpi *e, int id, struct nrg_uri *uri, struct nrg_meter_field *fields,
                    size_t *n_fields, bool several, struct nrg_error *err)
{
    char key[24], prefix[16] = "";
    struct node *node = &e->nodes[e->n_nodes];
    snprintf(key, sizeof key, "layout.%d", id);
    const char *all = nrg_uri_text(uri, "layout"), *own = several ? nrg_uri_text(uri, key) : NULL;
    const char *text = own ? own : all ? all : "emonpi";
    node->id = id;
    node->first = *n_fields;
    int rc = nrg_layout_parse(&node->layout, layout_text(text), err);
    if (rc)
        return rc;
    if (node->layout.bytes > NRG_EMON_PAYLOAD && strcmp(text, "msg"))
        return nrg_fail(err, -EINVAL, uri->text, "the layout has %zu bytes, a packet at most %d",
                        node->layout.bytes, NRG_EMON_PAYLOAD);
    if (several)
        snprintf(prefix, sizeof prefix, "node%d.", id);
    rc = nrg_layout_fields(&node->layout, prefix, strcmp(text, "msg") != 0, fields, n_fields);
    if (rc)
        return nrg_fail(err, rc, uri->text, "more than %d values", NRG_METER_FIELDS);
    e->n_nodes++;
    return 0;
}

static int add_nodes(struct emonpi *e, struct nrg_uri *uri, struct nrg_meter_field *fields,
                     size_t *n_fields, struct nrg_error *err)
{
    const char *text = nrg_uri_text(uri, "node");
    bool several = text && strchr(text, ',');
    int rc = text ? 0 : add_node(e, ANY_NODE, uri, fields, n_fields, false, err);
    size_t len;
    for (const char *item; !rc && (item = nrg_next_item(&text, &len));) {
        int64_t id;
        if (nrg_parse_i64(item, len, &id) || id < 0 || id > 1023 || e->n_nodes == MAX_NODES)
            return nrg_fail(err, -EINVAL, uri->text,
                            "node= wants up to %d numbers such as 5 or 5,8", MAX_NODES);
        rc = add_node(e, (int)id, uri, fields, n_fields, several, err);
    }
    if (!rc && !*n_fields)
        rc = nrg_fail(err, -EINVAL, uri->text, "no value of the layout has a unit");
    return rc;
}

static struct node *find_node(struct emonpi *e, long id)
{
    for (size_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].id == id || (e->nodes[i].id == ANY_NODE && (e->kept == id || e->kept < 0)))
            return &e->nodes[i];
    return NULL;
}

static void emit_reading(struct emonpi *e, int64_t sent_ns, int64_t average_ns, double rssi_dbm,
                         struct nrg_meter_out *out)
{
    const struct nrg_meter_reading reading = {.sent_ns = sent_ns,
                                              .average_ns = average_ns,
                                              .values = e->values,
                                              .n_values = e->n_values,
                                              .rssi_dbm = rssi_dbm};
    out->reading(out, &reading);
}

static void forget_values(struct emonpi *e)
{
    for (size_t i = 0; i < e->n_values; i++)
        e->values[i] = NAN;
}

/* Marks values with a spoilt byte as missing. True when a value is left. */
static bool spoil_values(struct emonpi *e, const struct node *node, const struct nrg_emon_packet *p)
{
    double *value = e->values + node->first;
    bool left = false;
    size_t at = 0;
    for (size_t i = 0; i < node->layout.n; i++) {
        const struct nrg_layout_item *item = &node->layout.items[i];
        size_t end = at + item->spec.type.bytes;
        bool spoilt = false;
        for (; at < end; at++)
            spoilt |= p->spoilt[at];
        if (!item->recorded)
            continue;
        if (spoilt)
            *value = NAN;
        left |= !isnan(*value++);
    }
    return left;
}

static const char *take_packet(struct emonpi *e, const struct nrg_emon_packet *p, int64_t sent_ns,
                               bool *harmless, struct nrg_meter_out *out)
{
    const struct node *node = find_node(e, p->node);
    *harmless = !node;
    if (!node)
        return "a packet of another node: node= chooses";
    if (p->n < node->layout.bytes || (p->n > node->layout.bytes && !node->layout.open_end))
        return "the packet has another length than the layout";
    if (p->faults > MAX_FAULTS || (p->faults && node->layout.open_end))
        return "something among the bytes is not a number";
    forget_values(e);
    nrg_layout_unpack(&node->layout, p->bytes, e->values + node->first);
    if (!spoil_values(e, node, p) && p->faults)
        return "no value of it is whole";
    e->kept = (int)p->node;
    emit_reading(e, sent_ns, 0, p->rssi_dbm, out);
    return NULL;
}

/* The packet's length is that of its node's layout: nothing was lost or added. */
static bool packet_fits(struct emonpi *e, const struct nrg_emon_packet *p)
{
    const struct node *node = find_node(e, p->node);
    return node && (p->n == node->layout.bytes || node->layout.open_end);
}

/* If the length does not fit the layout, noise may have hit a separator: tries again without. */
static const char *read_decimal(struct emonpi *e, const char *at, struct nrg_emon_packet *p,
                                const char **end)
{
    struct nrg_emon_packet other;
    const char *why = nrg_emon_decimal(at, false, p, end), *other_end;
    if (!why && packet_fits(e, p))
        return NULL;
    if (!why && p->n && p->spoilt[p->n - 1]) {
        p->n--; /* perhaps noise hit the bracket after the bytes */
        if (packet_fits(e, p))
            return NULL;
        p->n++;
    }
    if (!nrg_emon_decimal(at, true, &other, &other_end) && packet_fits(e, &other)) {
        *p = other;
        p->faults++;
        *end = other_end;
        return NULL;
    }
    return why;
}

/* How many letters of "OK " are wrong; X in the third place is the hexadecimal form. */
static unsigned wrong_letters(const char *at)
{
    if (!at[0] || !at[1] || !at[2])
        return 3;
    return (unsigned)(at[0] != 'O') + (at[1] != 'K') + (at[2] != ' ' && at[2] != 'X');
}

static const char *parse_ok(struct emonpi *e, const char *at, int64_t sent_ns, bool *harmless,
                            struct nrg_meter_out *out)
{
    struct nrg_emon_packet p = {.rssi_dbm = NAN};
    bool hex = at[2] == 'X';
    unsigned wrong = wrong_letters(at);
    const char *end = at;
    at = nrg_emon_skip_group(at + 3);
    const char *why = hex ? nrg_emon_hex(at, &p, &end) : read_decimal(e, at, &p, &end);
    if (!why && !nrg_emon_tail(end, &p.rssi_dbm)) {
        p.rssi_dbm = NAN;
        p.faults++;
    }
    if (!why && hex && p.faults)
        why = "something unknown behind the bytes";
    if (!why && wrong && p.faults)
        why = "neither OK nor its bytes are whole";
    p.faults += wrong;
    return why ? why : take_packet(e, &p, sent_ns, harmless, out);
}

static bool same_name(const char *item, const char *key, size_t len)
{
    static const struct {
        const char *key, *name;
    } other[] = {{"P", "power"}, {"T", "temp"}};
    if (strlen(item) == len && !strncasecmp(item, key, len))
        return true;
    if (len == 2 && !memcmp(key, "V1", 2) && !strcasecmp(item, "Vrms"))
        return true; /* one phase has one voltage, whatever it is called */
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(other[i].name);
        if (len > 1 && *key == *other[i].key && !strncmp(item, other[i].name, n) &&
            strlen(item + n) == len - 1 && !memcmp(item + n, key + 1, len - 1))
            return true;
    }
    return false;
}

/* A value that was sent in its unit: only a scale that the user gave applies. */
static void set_value(struct emonpi *e, const char *key, size_t len, double sent, size_t *known)
{
    const struct node *node = &e->nodes[0];
    size_t at = node->first;
    for (size_t i = 0; i < node->layout.n; i++) {
        const struct nrg_layout_item *item = &node->layout.items[i];
        if (!item->recorded)
            continue;
        if (same_name(item->spec.name, key, len)) {
            e->values[at] = nrg_layout_value(item, sent);
            ++*known;
        }
        at++;
    }
}

#define KEY_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define NO_VALUE    " \t\"{}"

static const char *parse_pairs(struct emonpi *e, const char *at, size_t *known)
{
    forget_values(e);
    for (;;) {
        double sent;
        at += strspn(at, NO_VALUE ",");
        if (!*at)
            return NULL;
        size_t key = strspn(at, KEY_LETTERS);
        const char *value = at + key + strspn(at + key, NO_VALUE);
        if (!key || *value != ':')
            return "no KEY:VALUE pairs";
        value++;
        value += strspn(value, NO_VALUE);
        size_t len = strcspn(value, "," NO_VALUE);
        if (nrg_parse_double(value, len, &sent))
            return "a value that is not a number";
        set_value(e, at, key, sent, known);
        at = value + len;
        if (*at && !strchr("," NO_VALUE, *at))
            return "no KEY:VALUE pairs";
    }
}

/* Such senders sample all the time: a line is the mean since the last line. */
static const char *parse_message(struct emonpi *e, const struct nrg_meter_line *line,
                                 bool *harmless, struct nrg_meter_out *out)
{
    size_t known = 0;
    const char *why = parse_pairs(e, line->text, &known);
    if (why)
        return why;
    *harmless = !known;
    if (!known)
        return "none of its keys is in the layout";
    int64_t since_ns = e->printed_ns ? line->sent_ns - e->printed_ns : 0;
    e->printed_ns = line->sent_ns;
    emit_reading(e, line->sent_ns, since_ns > 0 && since_ns < MAX_AVERAGE_NS ? since_ns : 0, NAN,
                 out);
    return NULL;
}

/* Boards print settings with colons when they start; readings begin with MSG. */
static bool is_message(const char *text)
{
    text += strspn(text, NO_VALUE);
    return !strncmp(text, "MSG", 3) && strchr(text, ':');
}

static void on_line(void *arg, const struct nrg_meter_line *line, struct nrg_meter_out *out)
{
    struct emonpi *e = arg;
    const char *at = line->text + strspn(line->text, " "), *why;
    bool harmless = false;
    if (wrong_letters(at) > 1 && *at && !wrong_letters(at + 1))
        at++; /* noise hit the end of the line before */
    if (wrong_letters(at) <= 1) {
        why = parse_ok(e, at, line->sent_ns, &harmless, out);
    } else if (is_message(at)) {
        why = parse_message(e, line, &harmless, out);
    } else {
        harmless = true; /* a broken packet broke on the air: the serial line is fine */
        why = *at == '?'      ? "a packet that arrived broken"
              : line->partial ? "its beginning is missing"
                              : "text, no packet";
    }
    if (why)
        nrg_meter_refuse(out, line, why, harmless);
}

static int init_emonpi(void *state, struct nrg_uri *uri, struct nrg_meter_field *fields,
                       size_t *n_fields, struct nrg_error *err)
{
    struct emonpi *e = state;
    e->kept = ANY_NODE;
    e->lines.mends = true;
    e->lines.on_line = on_line;
    int rc = add_nodes(e, uri, fields, n_fields, err);
    e->n_values = *n_fields;
    return rc;
}

static void reset_emonpi(void *state)
{
    struct emonpi *e = state;
    nrg_meter_lines_reset(e);
    e->printed_ns = 0;
}

const struct nrg_meter_decoder nrg_decoder_emonpi = {
    .state_size = sizeof(struct emonpi),
    .init = init_emonpi,
    .feed = nrg_meter_lines_feed,
    .reset = reset_emonpi,
    .end = nrg_meter_lines_end,
};

const struct nrg_driver nrg_driver_emonpi = NRG_METER_DRIVER(
    "emonpi", "emonPi, emonTx and RFM69Pi energy monitors on a serial line", nrg_meter_probe);
