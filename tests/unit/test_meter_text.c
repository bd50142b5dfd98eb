/* Lines of unknown meters: units, numbers, patterns, columns and times, bad ones among them. */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "sensors/meter/text/pattern.h"
#include "sensors/meter/text/table.h"
#include "sensors/meter/time.h"

static struct nrg_meter_field fields[NRG_METER_FIELDS];
static size_t n_fields;
static double values[NRG_METER_FIELDS];

static void units_of_names(void **state)
{
    static const struct {
        const char *name, *unit;
    } cases[] = {{"power", "W"},          {"P1", "W"},   {"Power (mW)", "mW"}, {"power [kW]", "kW"},
                 {"bus_mv", "mV"},        {"Vrms", "V"}, {"total_kWh", "kWh"}, {"Irms2", "A"},
                 {"temp1", "C"},          {"E1", "Wh"},  {"phase", NULL},      {"", NULL},
                 {"power (furlong)", "W"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct nrg_meter_unit *unit =
            nrg_meter_unit_of_name(cases[i].name, strlen(cases[i].name));
        if (cases[i].unit)
            assert_string_equal(unit ? unit->name : "none", cases[i].unit);
        else
            assert_null(unit);
    }
}

static int spec(const char *text, struct nrg_meter_field *field, double *factor)
{
    struct nrg_error err;
    return nrg_meter_spec_field(text, strlen(text), text, "columns=", field, factor, &err);
}

static void specs(void **state)
{
    struct nrg_meter_field f;
    double factor;
    (void)state;
    assert_int_equal(spec("import:kWh", &f, &factor), 0);
    assert_string_equal(f.name, "import");
    assert_int_equal(f.quantity, NRG_ENERGY);
    assert_int_equal(f.kind, NRG_COUNTER);
    assert_true(factor == 3.6e6);
    assert_int_equal(spec("x:W:counter", &f, &factor), 0);
    assert_int_equal(f.kind, NRG_COUNTER);
    assert_int_equal(spec("Vrms:int16*0.01V", &f, &factor), 0);
    assert_int_equal(f.quantity, NRG_VOLTAGE);
    assert_true(factor == 0.01);
    assert_int_equal(spec(" bus load  mW ", &f, &factor), 0);
    assert_string_equal(f.name, "bus load");
    assert_true(factor == 1e-3);
    assert_int_equal(spec("flow*1e-3 kW:W", &f, &factor), -EINVAL);
    assert_int_equal(spec("x:VA", &f, &factor), -EINVAL);
    assert_int_equal(spec("x", &f, &factor), -EINVAL);
    assert_int_equal(spec(":W", &f, &factor), -EINVAL);
    assert_int_equal(spec("x:parsec", &f, &factor), -EINVAL);
    assert_int_equal(spec("x:W:sum", &f, &factor), -EINVAL);
    assert_int_equal(spec("a_name_that_is_much_longer_than_any_channel:W", &f, &factor), -EINVAL);
}

static void numbers(void **state)
{
    double v = 0;
    (void)state;
    assert_int_equal(nrg_meter_scan("12.5 W", 6, false, &v), 4);
    assert_true(v == 12.5);
    assert_int_equal(nrg_meter_scan("-3e2x", 5, false, &v), 4);
    assert_true(v == -300);
    assert_int_equal(nrg_meter_scan("5eV", 3, false, &v), 1);
    assert_int_equal(nrg_meter_scan("12,5", 4, true, &v), 4);
    assert_true(v == 12.5);
    assert_int_equal(nrg_meter_scan("12,5", 4, false, &v), 2);
    assert_int_equal(nrg_meter_scan(".", 1, false, &v), 0);
    assert_int_equal(nrg_meter_scan("0x10", 4, false, &v), 1);
    assert_int_equal(nrg_meter_scan("nan", 3, false, &v), 0);
    assert_int_equal(nrg_meter_scan("1e999", 5, false, &v), 0);
    assert_int_equal(nrg_meter_scan("1234567890123456789012345678901234567890", 40, false, &v), 0);
}

static void values_with_units(void **state)
{
    const struct nrg_meter_field power = {.name = "p", .quantity = NRG_POWER};
    double v;
    (void)state;
    assert_int_equal(nrg_meter_value(" 1500 mW ", 9, false, &power, 1, &v), 0);
    assert_float_equal(v, 1.5, 1e-9);
    assert_int_equal(nrg_meter_value("1.5kW", 5, false, &power, 1, &v), 0);
    assert_float_equal(v, 1500, 1e-9);
    assert_int_equal(nrg_meter_value("7", 1, false, &power, 1e-3, &v), 0);
    assert_float_equal(v, 0.007, 1e-12);
    assert_int_equal(nrg_meter_value("7 V", 3, false, &power, 1, &v), -EINVAL);
    assert_int_equal(nrg_meter_value("7 apples", 8, false, &power, 1, &v), -EINVAL);
    assert_int_equal(nrg_meter_value("", 0, false, &power, 1, &v), 0);
    assert_true(isnan(v));
    assert_int_equal(nrg_meter_value("NaN", 3, false, &power, 1, &v), 0);
    assert_true(isnan(v));
    assert_int_equal(nrg_meter_value("1e14kW", 6, false, &power, 1, &v), -EINVAL);
}

static bool match(const char *text, const char *line)
{
    struct nrg_pattern pattern;
    struct nrg_error err = {0};
    struct nrg_pattern_match m = {.values = values};
    n_fields = 0;
    if (nrg_pattern_compile(&pattern, text, fields, &n_fields, &err))
        fail_msg("%s: %lld: %s", text, err.offset, err.what);
    return nrg_pattern_match(&pattern, line, strlen(line), n_fields, &m);
}

static void patterns(void **state)
{
    (void)state;
    assert_true(match("P={power} W", "U=230.1 V P=-12.5 W cos 0.9"));
    assert_true(values[0] == -12.5);
    assert_true(match("P = {load:mW}", "x P=  1500"));
    assert_true(values[0] == 1.5);
    assert_false(match("P={power} W", "P=12 V"));
    assert_false(match("P={power}", "P=W"));
    assert_true(match("{power}", "CPU load: 42.5"));
    assert_true(values[0] == 42.5);
    assert_false(match("^{power}", "CPU 42.5"));
    assert_true(match("V:{voltage},{}P1:{P1},{}P2:{P2}", "MSG:1,V:239.5,x:9,P1:104,P2:-3,E1:7"));
    assert_int_equal(n_fields, 3);
    assert_true(values[0] == 239.5 && values[1] == 104 && values[2] == -3);
    assert_true(match("\"apower\": {power}", "{\"id\":0, \"apower\":4.3}"));
    assert_true(values[0] == 4.3);
    assert_true(match("{{{power}}", "{7}"));
    assert_true(values[0] == 7);
    assert_true(match("a{|}{power}", "a|7"));
    assert_false(match("P{power}", "P"));
}

static void alternatives_of_patterns(void **state)
{
    (void)state;
    assert_true(match("P={power}|U={voltage}", "U=230"));
    assert_true(isnan(values[0]) && values[1] == 230);
    assert_true(match("P={power}|U={voltage}", "P=5 U=230"));
    assert_true(values[0] == 5 && isnan(values[1]));
    assert_false(match("P={power}|U={voltage}", "I=5"));
    assert_true(match("a {power} b {voltage}|{power}", "a 5 c"));
    assert_true(values[0] == 5 && isnan(values[1])); /* what half a match left is gone */
}

static void bad_patterns(void **state)
{
    static const char *const bad[] = {"no value",      "{power",          "{a b c:X}",
                                      "{power}{load}", "|{power}",        "{power}|",
                                      "{p:W}x{p:mW}",  "{power:W:often}", "{}"};
    struct nrg_pattern pattern;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct nrg_error err = {0};
        n_fields = 0;
        assert_int_equal(nrg_pattern_compile(&pattern, bad[i], fields, &n_fields, &err), -EINVAL);
        assert_true(err.what[0]);
    }
    char longest[2000] = "{power}";
    memset(longest + 7, 'x', sizeof longest - 8);
    n_fields = 0;
    assert_int_equal(nrg_pattern_compile(&pattern, longest, fields, &n_fields, NULL), -EINVAL);
}

static void table(struct nrg_table *t, const char *columns)
{
    struct nrg_error err = {0};
    n_fields = 0;
    if (nrg_table_init(t, columns, NULL, NULL, fields, &n_fields, &err))
        fail_msg("%s: %s", columns, err.what);
}

static enum nrg_table_line row(struct nrg_table *t, const char *line)
{
    struct nrg_table_row r = {.values = values};
    enum nrg_table_line kind = nrg_table_read(t, line, strlen(line), fields, n_fields, &r);
    assert_int_equal(kind == NRG_TABLE_REFUSED, r.why[0] != '\0');
    return kind;
}

static void columns_in_order(void **state)
{
    struct nrg_table t;
    (void)state;
    table(&t, "time,power:mW,-,voltage");
    assert_int_equal(row(&t, "1700000000.5,1500,x,230.5"), NRG_TABLE_ROW);
    assert_true(values[0] == 1.5 && values[1] == 230.5);
    assert_int_equal(row(&t, "1700000001;1,5;x;230,5"), NRG_TABLE_ROW); /* decimal commas */
    assert_float_equal(values[0], 0.0015, 1e-12);
    assert_int_equal(row(&t, "1700000001 2 x 230"), NRG_TABLE_ROW);
    assert_int_equal(row(&t, "1700000001,,x,230"), NRG_TABLE_ROW);
    assert_true(isnan(values[0]) && values[1] == 230);
    assert_int_equal(row(&t, "1700000001,5"), NRG_TABLE_REFUSED);
    assert_int_equal(row(&t, "1700000001,abc,x,230"), NRG_TABLE_REFUSED);
    assert_int_equal(row(&t, "1700000001,,x,"), NRG_TABLE_REFUSED);
    assert_int_equal(row(&t, "some banner, with words"), NRG_TABLE_REFUSED);
}

static void names_in_the_first_line(void **state)
{
    struct nrg_table t;
    (void)state;
    table(&t, "power,voltage");
    assert_int_equal(row(&t, "Voltage (mV);Time;Power (kW)"), NRG_TABLE_NAMES);
    assert_int_equal(row(&t, "230000;5;1.5"), NRG_TABLE_ROW);
    assert_true(values[0] == 1500 && values[1] == 230);
    table(&t, NULL);
    assert_int_equal(row(&t, "41.5"), NRG_TABLE_ROW);
    assert_true(values[0] == 41.5);
    assert_int_equal(row(&t, "timestamp,node,power_mw"), NRG_TABLE_NAMES);
    assert_int_equal(row(&t, "1700000000,5,250"), NRG_TABLE_ROW);
    assert_true(values[0] == 0.25);
}

/* nvidia-smi --query-gpu=...: a line per GPU. */
static void rows_of_several_devices(void **state)
{
    struct nrg_table t;
    struct nrg_error err = {0};
    (void)state;
    n_fields = 0;
    assert_int_equal(nrg_table_init(&t, NULL, "index:0,1", NULL, fields, &n_fields, &err), 0);
    assert_int_equal(n_fields, 2);
    assert_string_equal(fields[1].name, "power-1");
    assert_int_equal(row(&t, "timestamp, power.limit [W], index, power.draw [mW]"),
                     NRG_TABLE_NAMES);
    assert_int_equal(row(&t, "2026/11/16 08:06:32.791, 300.00, 1, 61000"), NRG_TABLE_ROW);
    assert_true(isnan(values[0]) && values[1] == 61);
    assert_int_equal(row(&t, "2026/11/16 08:06:32.792, 300.00, 0, 60.50 W"), NRG_TABLE_ROW);
    assert_true(values[0] == 60.5 && isnan(values[1]));
    assert_int_equal(row(&t, "2026/11/16 08:06:32.792, 300.00, 0, [N/A]"), NRG_TABLE_REFUSED);
    assert_int_equal(row(&t, "2026/11/16 08:06:32.792, 300.00, 2, 60.50 W"), NRG_TABLE_REFUSED);

    /* Without rows= there is one device, and a second one is not mixed into it. */
    table(&t, NULL);
    assert_int_equal(row(&t, "uuid, power.draw [W]"), NRG_TABLE_NAMES);
    assert_int_equal(row(&t, "GPU-1, 5"), NRG_TABLE_ROW);
    assert_int_equal(row(&t, "GPU-2, 6"), NRG_TABLE_REFUSED);
    assert_int_equal(row(&t, "GPU-1, 7"), NRG_TABLE_ROW);
    static const char *const bad[] = {"index", ":0", "index:", "index:0,0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        n_fields = 0;
        assert_int_equal(nrg_table_init(&t, NULL, bad[i], NULL, fields, &n_fields, NULL), -EINVAL);
    }
}

static void bad_columns(void **state)
{
    static const char *const bad[] = {"", "-", "time", "time,time,power", "power,power", "x"};
    struct nrg_table t;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        n_fields = 0;
        assert_int_equal(nrg_table_init(&t, bad[i], NULL, NULL, fields, &n_fields, NULL), -EINVAL);
    }
    n_fields = 0;
    assert_int_equal(nrg_table_init(&t, "power", NULL, "ab", fields, &n_fields, NULL), -EINVAL);
}

static int64_t time_of(struct nrg_meter_times *times, const char *text)
{
    int64_t t_ns = -1;
    if (nrg_meter_time(times, text, strlen(text), 5 * NRG_NS_PER_S, &t_ns))
        return -1;
    return t_ns;
}

static void times_of_other_clocks(void **state)
{
    const int64_t date_ns = INT64_C(1700000000) * NRG_NS_PER_S, ms = NRG_NS_PER_MS;
    struct nrg_meter_times times = {.real_minus_mono_ns = date_ns - 1000 * NRG_NS_PER_S,
                                    .zone_ns = 3600 * NRG_NS_PER_S,
                                    .first_ns = NRG_MISSING};
    (void)state;
    assert_int_equal(time_of(&times, "1700000000.25"), 1000 * NRG_NS_PER_S + 250 * ms);
    assert_int_equal(time_of(&times, " 1700000000250 "), 1000 * NRG_NS_PER_S + 250 * ms);
    assert_int_equal(time_of(&times, "1700000000250000"), 1000 * NRG_NS_PER_S + 250 * ms);
    assert_int_equal(time_of(&times, "1700000000250000000"), 1000 * NRG_NS_PER_S + 250 * ms);
    assert_int_equal(time_of(&times, "2023-11-14T22:13:20Z"), 1000 * NRG_NS_PER_S);
    assert_int_equal(time_of(&times, "2023-11-14 23:13:20"), 1000 * NRG_NS_PER_S); /* local */
    assert_int_equal(time_of(&times, "2023-11-14T22:13:20.5+00:00"),
                     1000 * NRG_NS_PER_S + 500 * ms);
    assert_int_equal(time_of(&times, "2023/11/14 23:13:20.250"), 1000 * NRG_NS_PER_S + 250 * ms);
    assert_int_equal(time_of(&times, "2023/11-14 23:13:20"), -1);
    assert_int_equal(time_of(&times, "7.5"), 5 * NRG_NS_PER_S); /* from any start */
    assert_int_equal(time_of(&times, "8.5"), 6 * NRG_NS_PER_S);
    assert_int_equal(time_of(&times, "yesterday"), -1);
    assert_int_equal(time_of(&times, ""), -1);
    assert_int_equal(time_of(&times, "99999999999999999999999"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_of_names),
        cmocka_unit_test(specs),
        cmocka_unit_test(numbers),
        cmocka_unit_test(values_with_units),
        cmocka_unit_test(patterns),
        cmocka_unit_test(alternatives_of_patterns),
        cmocka_unit_test(bad_patterns),
        cmocka_unit_test(columns_in_order),
        cmocka_unit_test(names_in_the_first_line),
        cmocka_unit_test(bad_columns),
        cmocka_unit_test(rows_of_several_devices),
        cmocka_unit_test(times_of_other_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
