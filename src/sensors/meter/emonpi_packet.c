/* See emonpi_packet.h. Text comes from a noisy line: every number is bounded while it is read. */
#include "sensors/meter/emonpi_packet.h"

#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "sensors/meter/uri.h"

/* "(-28)" and " -> ack", in this order, either may be missing. */
bool nrg_emon_tail(const char *at, double *rssi_dbm)
{
    *rssi_dbm = NAN;
    at += strspn(at, " ");
    if (*at == '(') {
        size_t len = strcspn(at, ")");
        if (!at[len] || nrg_parse_double(at + 1, len - 1, rssi_dbm))
            return false;
        at += len + 1;
        at += strspn(at, " ");
    }
    if (!strncmp(at, "-> ack", 6))
        at += 6;
    return !at[strspn(at, " ")];
}

static bool is_blank(char c)
{
    return c == ' ';
}

/* For a line where noise hit a blank: everything but digits separates. */
static bool is_no_number(char c)
{
    return c && c != '(' && c != '-' && !(c >= '0' && c <= '9');
}

/* Decimal numbers: the node, then the bytes, up to the bracket, the arrow or the end. */
const char *nrg_emon_decimal(const char *at, bool by_numbers, struct nrg_emon_packet *p,
                             const char **end)
{
    bool (*separates)(char) = by_numbers ? is_no_number : is_blank;
    *p = (struct nrg_emon_packet){.rssi_dbm = NAN};
    for (bool first = true;; first = false) {
        size_t len = 0;
        long number = 0;
        while (separates(*at))
            at++;
        *end = at;
        if (!*at || *at == '(' || !strncmp(at, "->", 2))
            return first ? "no node after OK" : NULL;
        bool whole = true;
        for (; at[len] && !separates(at[len]); len++) {
            whole &= at[len] >= '0' && at[len] <= '9' && len < 4;
            number = whole ? number * 10 + (at[len] - '0') : 0;
        }
        at += len;
        if (first && !whole)
            return "no node after OK";
        if (first) {
            p->node = number;
            continue;
        }
        if (p->n == NRG_EMON_PAYLOAD)
            return "more than 66 bytes";
        p->spoilt[p->n] = !whole || number > 255;
        p->faults += p->spoilt[p->n];
        p->bytes[p->n++] = (uint8_t)number;
    }
}

/* Pairs of digits, with or without blanks: the node, then the bytes. */
const char *nrg_emon_hex(const char *at, struct nrg_emon_packet *p, const char **end)
{
    for (bool first = true;; first = false) {
        at += strspn(at, " ");
        *end = at;
        int high = nrg_hex_digit(at[0]), low = high < 0 ? -1 : nrg_hex_digit(at[1]);
        if (high < 0)
            return first ? "no node after OKX" : NULL;
        if (low < 0)
            return "half a byte";
        at += 2;
        if (first)
            p->node = high * 16 + low;
        else if (p->n == NRG_EMON_PAYLOAD)
            return "more than 66 bytes";
        else
            p->bytes[p->n++] = (uint8_t)(high * 16 + low);
    }
}

/* Receivers that listen to all groups name the group: "OK G210 5 ...". */
const char *nrg_emon_skip_group(const char *at)
{
    const char *p = at + strspn(at, " ");
    if (*p != 'G')
        return at;
    size_t digits = strspn(p + 1, "0123456789abcdefABCDEF");
    return digits && p[1 + digits] == ' ' ? p + 1 + digits : at;
}
