/* MQTT messages to values: payloads after the devices' formats as they are known, and wrong ones.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "sensors/mqtt/payload.h"

#define S NRG_NS_PER_S

static struct nrg_mqtt_plan plan;
static struct nrg_mqtt_reading reading;
static const int64_t now_ns = 1000 * S;

/* `query` as in "fields=a:W"; "" for none. */
static int make(const char *topic, const char *query)
{
    struct nrg_uri uri;
    struct nrg_error err = {0};
    char text[512];
    snprintf(text, sizeof text, "mqtt://host/x%s%s", *query ? "?" : "", query);
    if (nrg_uri_parse(&uri, text, &err))
        fail_msg("%s: %s", text, err.what);
    int rc = nrg_mqtt_plan_init(&plan, &uri, topic, &err);
    /* Monotonic 1000 s is 2023-11-14 22:13:20 UTC. */
    plan.times.real_minus_mono_ns = INT64_C(1700000000) * S - now_ns;
    plan.times.zone_ns = 0;
    return rc;
}

static bool hear_from(const char *topic, const char *payload, bool retained)
{
    const struct nrg_mqtt_message m = {topic, payload, strlen(payload), retained, now_ns};
    return nrg_mqtt_decode(&plan, &m, &reading);
}

static bool hear(const char *payload)
{
    return hear_from(plan.topic, payload, false);
}

static void close_to(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

static void plain_numbers(void **state)
{
    (void)state;
    assert_int_equal(make("emon/emonpi/power1", ""), 0);
    assert_int_equal(plan.n_fields, 1);
    assert_string_equal(plan.fields[0].name, "power1");
    assert_true(hear("104.5"));
    assert_true(reading.values[0] == 104.5);
    assert_int_equal(reading.t_ns, now_ns);
    assert_true(hear(" -3 W\n"));
    assert_true(reading.values[0] == -3);
    assert_false(hear("on"));
    assert_false(hear(""));
    assert_false(hear("nan"));
    assert_false(hear("12 V"));
}

static void shelly_first_generation_counts_watt_minutes(void **state)
{
    (void)state;
    assert_int_equal(make("shellies/shellyplug-s-1/relay/0/energy", ""), 0);
    assert_int_equal(plan.fields[0].quantity, NRG_ENERGY);
    assert_int_equal(plan.fields[0].kind, NRG_COUNTER);
    assert_true(hear("1000"));
    assert_true(reading.values[0] == 60000);
    assert_int_equal(make("shellies/em/emeter/0/total", ""), 0);
    assert_true(hear("2"));
    assert_true(reading.values[0] == 7200);
    assert_int_equal(make("shellies/x/relay/0/power", ""), 0);
    assert_int_equal(plan.fields[0].quantity, NRG_POWER);
}

static void tasmota(void **state)
{
    (void)state;
    assert_int_equal(make("tele/plug/SENSOR", ""), 0);
    assert_true(hear("{\"Time\":\"2023-11-14T22:13:20\",\"ENERGY\":{\"TotalStartTime\":\"x\","
                     "\"Total\":1.234,\"Yesterday\":0.1,\"Power\":101,\"Voltage\":230,"
                     "\"Current\":0.439}}"));
    assert_true(reading.values[0] == 101);
    assert_true(fabs(reading.values[1] - 1.234 * 3.6e6) < 1e-3);
    assert_true(reading.values[2] == 230 && reading.values[3] == 0.439);
    assert_true(hear("{\"StatusSNS\":{\"Time\":\"2023\",\"ENERGY\":{\"Power\":7}}}"));
    assert_true(reading.values[0] == 7 && isnan(reading.values[1]));
    assert_true(hear("{\"ENERGY\":{\"Power\":[10,20,30],\"Voltage\":[230,231,229]}}"));
    assert_true(reading.values[0] == 60 && reading.values[2] == 230);
    assert_false(hear("{\"Time\":\"2023-11-14T22:13:20\",\"Switch1\":\"ON\"}"));
    assert_true(reading.harmless);
    assert_false(hear("{\"ENERGY\":{\"Power\":null}}"));
    assert_false(hear("{\"ENERGY\":[1,2]}"));
}

static void shelly_second_generation(void **state)
{
    (void)state;
    assert_int_equal(make("shellyplusplugs-1/status/switch:0", ""), 0);
    assert_true(hear("{\"id\":0,\"output\":true,\"apower\":8.9,\"voltage\":237.5,\"current\":0.062,"
                     "\"aenergy\":{\"total\":6.532,\"by_minute\":[45.199],\"minute_ts\":1}}"));
    assert_true(reading.values[0] == 8.9 && reading.values[2] == 237.5);
    assert_true(fabs(reading.values[1] - 6.532 * 3600) < 1e-6);
    assert_int_equal(make("shellyplusplugs-1/events/rpc", ""), 0);
    assert_true(hear("{\"src\":\"s\",\"method\":\"NotifyStatus\",\"params\":{\"ts\":1700000000.1,"
                     "\"switch:0\":{\"id\":0,\"apower\":12.5}}}"));
    assert_true(reading.values[0] == 12.5 && isnan(reading.values[1]));
    assert_false(hear("{\"method\":\"NotifyStatus\",\"params\":{\"ts\":1,\"sys\":{}}}"));
}

static void shelly_energy_meters(void **state)
{
    (void)state;
    assert_int_equal(make("shellyproem50/status/em1:1", ""), 0);
    assert_true(hear("{\"id\":1,\"current\":2.598,\"voltage\":234.9,\"act_power\":501.8,"
                     "\"aprt_power\":612.4,\"pf\":0.84,\"freq\":50}"));
    assert_true(reading.values[0] == 501.8 && reading.values[2] == 234.9);
    assert_true(reading.values[3] == 2.598);
    assert_true(hear("{\"id\":1,\"total_act_energy\":1000.5,\"total_act_ret_energy\":3}"));
    close_to(reading.values[1], 1000.5 * 3600);
    assert_int_equal(make("shellyproem50/events/rpc", ""), 0);
    assert_true(hear("{\"params\":{\"ts\":1,\"em1:0\":{\"id\":0,\"act_power\":7.5}}}"));
    assert_true(reading.values[0] == 7.5);
    assert_false(hear("{\"params\":{\"ts\":1,\"em1:1\":{\"id\":1,\"act_power\":9}}}"));
    assert_int_equal(make("shellypro3em/status/em:0", ""), 0);
    assert_true(hear("{\"id\":0,\"a_act_power\":2403.7,\"b_act_power\":409.1,\"n_current\":null,"
                     "\"total_current\":13.753,\"total_act_power\":3048.1}"));
    assert_true(reading.values[0] == 3048.1 && reading.values[3] == 13.753);
}

static void phases_are_added_up(void **state)
{
    (void)state;
    assert_int_equal(make("tele/dual/SENSOR", ""), 0);
    assert_true(hear("{\"ENERGY\":{\"Total\":[9,1],\"Power\":[61,20],\"Voltage\":233,"
                     "\"Current\":[0.378,0.1]}}"));
    assert_true(reading.values[0] == 81 && reading.values[2] == 233);
    close_to(reading.values[1], 10 * 3.6e6);
    close_to(reading.values[3], 0.478);
    assert_int_equal(make("zigbee2mqtt/shelly", ""), 0);
    assert_true(hear("{\"current_l1\":0.125,\"current_l2\":0.5,\"energy_l1\":2.056,"
                     "\"energy_l2\":0.006,\"power_apparent_l1\":9,\"power_l1\":8,\"power_l2\":2,"
                     "\"voltage_l1\":228.08}"));
    assert_true(reading.values[0] == 10 && reading.values[2] == 228.08);
    close_to(reading.values[1], 2.062 * 3.6e6);
    close_to(reading.values[3], 0.625);
}

/* Zigbee's first phase has the plain name; others have letters, which are no units. */
static void phases_with_letters(void **state)
{
    (void)state;
    assert_int_equal(make("zigbee2mqtt/three", ""), 0);
    assert_true(hear("{\"current\":1,\"current_phase_b\":2,\"current_phase_c\":4,\"energy\":7,"
                     "\"power\":10,\"power_phase_b\":20,\"power_phase_c\":40,\"voltage\":231,"
                     "\"power_factor_phase_c\":0.5,\"voltage_phase_b\":230}"));
    assert_true(reading.values[0] == 70 && reading.values[2] == 231 && reading.values[3] == 7);
    close_to(reading.values[1], 7 * 3.6e6);
    assert_true(hear("{\"power\":61,\"power_phase_a\":10,\"power_phase_b\":20}"));
    assert_true(reading.values[0] == 61);
    assert_true(hear("{\"power_phase_a\":10,\"power_phase_b\":20,\"power_phase_c\":30}"));
    assert_true(reading.values[0] == 60 && isnan(reading.values[3]));
    assert_true(hear("{\"power_a\":1,\"power_b\":2,\"power_c\":3,\"current_a\":4,"
                     "\"current_b\":5,\"current_c\":6,\"voltage_a\":229,\"voltage_b\":1}"));
    assert_true(reading.values[0] == 6 && reading.values[2] == 229 && reading.values[3] == 15);
    assert_false(hear("{\"power_phase_b\":20,\"power_phase_c\":30}"));
    assert_int_equal(make("x/y", ""), 0);
    assert_true(hear("{\"load_mw\":1500,\"mains_a\":2.5,\"bus_v\":12}"));
    close_to(reading.values[0], 1.5);
    assert_true(reading.values[2] == 12 && reading.values[3] == 2.5);
}

static void numbers_in_quotes(void **state)
{
    (void)state;
    assert_int_equal(make("homeassistant/sensor/plug_power/state", ""), 0);
    assert_true(hear("\"61.5\""));
    assert_true(reading.values[0] == 61.5);
    assert_false(hear("\"unavailable\""));
    assert_false(hear("\"\""));
    assert_false(hear("\""));
    assert_int_equal(make("x/y", ""), 0);
    assert_true(hear("\"61.5 W\""));
    assert_false(hear("\"61.5\"")); /* watts? */
}

static void zigbee_counts_kwh(void **state)
{
    (void)state;
    assert_int_equal(make("zigbee2mqtt/z1/energy", ""), 0);
    assert_int_equal(plan.fields[0].kind, NRG_COUNTER);
    assert_true(hear("12.05"));
    close_to(reading.values[0], 12.05 * 3.6e6);
    assert_int_equal(make("z2m/plug", ""), 0);
    assert_true(hear("{\"current\":0.27,\"energy\":1.54,\"linkquality\":63,\"power\":61}"));
    assert_true(reading.values[0] == 61);
    close_to(reading.values[1], 1.54 * 3.6e6);
}

/* A name is a hint; what no name and no text tells is not guessed. */
static void unknown_units_are_refused(void **state)
{
    static const char *const unknown[] = {"esp/sensor/plug_energy/state", "home/plug/energy",
                                          "lab/x", "esp/sensor/apparent_power/state", "home/total"};
    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_int_equal(make(unknown[i], ""), 0);
        assert_false(hear("12.05"));
        assert_non_null(strstr(reading.why, "unit="));
        assert_false(reading.harmless);
    }
    assert_int_equal(make("esp/sensor/plug_energy/state", "unit=kWh"), 0);
    assert_string_equal(plan.fields[0].name, "plug_energy");
    assert_true(hear("12.05"));
    close_to(reading.values[0], 12.05 * 3.6e6);
    assert_int_equal(make("esp/sensor/plug_power/state", ""), 0);
    assert_string_equal(plan.fields[0].name, "plug_power");
    assert_true(hear("61.5"));
    assert_true(reading.values[0] == 61.5);
    assert_int_equal(make("lab/x", ""), 0);
    assert_true(hear("61.5 W"));
    assert_true(reading.values[0] == 61.5);
    assert_int_equal(make("lab/x", "value=/reading"), -EINVAL);
    assert_int_equal(make("lab/x", "value=/reading&unit=W"), 0);
    assert_int_equal(make("sparsnas/1/state", ""), 0);
    assert_true(hear("{\"watt\":512.3,\"total\":1234.567,\"power\":44}"));
    assert_true(reading.values[0] == 512.3 && isnan(reading.values[1]));
    assert_int_equal(make("kasa/plug", ""), 0);
    assert_true(hear("{\"current_ma\":451,\"power_mw\":61753,\"total_wh\":16323}"));
    close_to(reading.values[0], 61.753);
    close_to(reading.values[1], 16323 * 3600.0);
}

static void unknown_devices_by_the_names_of_their_keys(void **state)
{
    (void)state;
    assert_int_equal(make("emon/emonpi", ""), 0);
    assert_true(hear("{\"power1\":120.5,\"power2\":3,\"vrms\":231,\"t1\":19}"));
    assert_true(reading.values[0] == 120.5 && reading.values[2] == 231);
    assert_true(hear("{\"load_mw\":1500,\"energy\":7}"));
    assert_true(reading.values[0] == 1.5 && isnan(reading.values[1])); /* energy in what? */
    assert_false(hear("{\"state\":\"ON\",\"linkquality\":120}"));
}

static void pointers(void **state)
{
    (void)state;
    assert_int_equal(make("lab/meter", "value=/data/0/watts"), 0);
    assert_string_equal(plan.fields[0].name, "watts");
    assert_true(hear("{\"data\":[{\"watts\":\"42.5\"}]}"));
    assert_true(reading.values[0] == 42.5);
    assert_false(hear("{\"data\":[]}"));
    assert_int_equal(make("lab/meter", "value=/a~1b/c~0d&unit=mW"), 0);
    assert_true(hear("{\"a/b\":{\"c~d\":1500}}"));
    close_to(reading.values[0], 1.5);
    assert_int_equal(make("lab/meter", "fields=p:mW=/x/p,u:V=/x/u,e:Wh=/x/e"), 0);
    assert_true(hear("{\"x\":{\"p\":2000,\"e\":1}}"));
    assert_true(reading.values[0] == 2 && isnan(reading.values[1]) && reading.values[2] == 3600);
    assert_int_equal(make("lab/meter", "fields=power,voltage"), 0);
    assert_true(hear("{\"power\":5,\"voltage\":230}"));
    assert_true(reading.values[0] == 5 && reading.values[1] == 230);
}

static void wildcards(void **state)
{
    char text[256], name[32];
    (void)state;
    assert_int_equal(make("emon/emonpi/+", "fields=power1,Vrms"), 0);
    assert_true(hear_from("emon/emonpi/power1", "5", false));
    assert_true(reading.values[0] == 5 && isnan(reading.values[1]));
    assert_true(hear_from("emon/emonpi/Vrms", "230", false));
    assert_true(isnan(reading.values[0]) && reading.values[1] == 230);
    assert_false(hear_from("emon/emonpi/other", "1", false));
    assert_true(reading.harmless);

    assert_int_equal(make("emon/+/+", ""), 0);
    assert_int_equal(plan.n_fields, 0);
    assert_true(nrg_mqtt_plan_learn(&plan, "emon/tx/power1"));
    assert_false(nrg_mqtt_plan_learn(&plan, "emon/tx/power1"));
    assert_false(nrg_mqtt_plan_learn(&plan, "emon/tx/mystery"));
    assert_true(nrg_mqtt_plan_learn(&plan, "emon/pi/Vrms"));
    assert_string_equal(nrg_mqtt_plan_text(&plan, text, sizeof text), "tx-power1:W,pi-Vrms:V");

    assert_true(nrg_mqtt_name("emon/#", "emon/a/b", name, sizeof name));
    assert_string_equal(name, "a-b");
    assert_true(nrg_mqtt_name("+/x", "a/x", name, sizeof name));
    assert_string_equal(name, "a");
    assert_false(nrg_mqtt_name("+/x", "a/y", name, sizeof name));
    assert_false(nrg_mqtt_name("a/+", "a/b/c", name, sizeof name));
    assert_false(nrg_mqtt_name("a/+", "a", name, sizeof name));
    assert_false(nrg_mqtt_name("#", "a/name/that/is/far/longer/than/a/field", name, sizeof name));
}

static void retained_messages_count_by_their_own_time(void **state)
{
    (void)state;
    assert_int_equal(make("tele/plug/SENSOR", ""), 0);
    assert_false(hear_from(plan.topic, "{\"ENERGY\":{\"Power\":5}}", true));
    assert_true(reading.harmless && strstr(reading.why, "retained"));
    assert_false(
        hear_from(plan.topic, "{\"Time\":\"2023-11-14T21:13:20\",\"ENERGY\":{\"Power\":5}}", true));
    assert_non_null(strstr(reading.why, "3600 s old"));
    assert_true(
        hear_from(plan.topic, "{\"Time\":\"2023-11-14T22:13:18\",\"ENERGY\":{\"Power\":5}}", true));
    assert_int_equal(reading.t_ns, 998 * S);
    assert_int_equal(make("emon/pi/power1", ""), 0);
    assert_false(hear_from(plan.topic, "5", true));
    assert_int_equal(make("lab", "fields=p:W=/p&time=/at&fresh=60s"), 0);
    assert_true(hear_from("lab", "{\"p\":5,\"at\":1699999970}", true));
    assert_int_equal(reading.t_ns, 970 * S);
    assert_false(hear_from("lab", "{\"p\":5,\"at\":1699999930}", true));
}

static void wrong_payloads(void **state)
{
    static const char *const wrong[] = {
        "{",  "{\"power\":1e300}", "[[[[",          "\xff\xfe", "true", "{\"power\":\"x\"}",
        "[]", "\"12 apples\"",     "{\"power\":{}}"};
    static char huge[NRG_MQTT_PAYLOAD + 100];
    (void)state;
    assert_int_equal(make("lab/meter", ""), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(hear(wrong[i]));
        assert_true(reading.why[0]);
    }
    memset(huge, '1', sizeof huge - 1);
    assert_false(hear(huge));
}

static void wrong_settings(void **state)
{
    static const char *const wrong[][2] = {{"", ""},
                                           {"a+/b", ""},
                                           {"#/a", ""},
                                           {"a", "value=Power"},
                                           {"a", "value=/P&unit=furlong"},
                                           {"a", "fields=x"},
                                           {"a", "fields=p:W,p:W"},
                                           {"a", "fields=p:W=P"},
                                           {"a", "fields=p:W&value=/p"},
                                           {"a", "time=Time"},
                                           {"a", "fresh=soon"}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(make(wrong[i][0], wrong[i][1]), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_numbers),
        cmocka_unit_test(shelly_first_generation_counts_watt_minutes),
        cmocka_unit_test(tasmota),
        cmocka_unit_test(shelly_second_generation),
        cmocka_unit_test(shelly_energy_meters),
        cmocka_unit_test(phases_are_added_up),
        cmocka_unit_test(phases_with_letters),
        cmocka_unit_test(numbers_in_quotes),
        cmocka_unit_test(zigbee_counts_kwh),
        cmocka_unit_test(unknown_units_are_refused),
        cmocka_unit_test(unknown_devices_by_the_names_of_their_keys),
        cmocka_unit_test(pointers),
        cmocka_unit_test(wildcards),
        cmocka_unit_test(retained_messages_count_by_their_own_time),
        cmocka_unit_test(wrong_payloads),
        cmocka_unit_test(wrong_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
