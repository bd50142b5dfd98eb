/* nrg meter list: the meters of nrg.conf, and every kind of meter with its keys. */
#include <string.h>

#include "base/secret.h"
#include "cli/meter/actions.h"
#include "sensors/meter/driver.h"
#include "sensors/registry.h"

/* Keys that all kinds understand stand below the table, once. */
static const struct {
    const char *kind, *place, *keys, *example;
} kinds[] = {
    {"emonpi", "DEVICE", "node layout layout.N baud from",
     "emonpi:/dev/ttyAMA0?node=5&layout=power1,power2,power3,Vrms"},
    {"rpict", "DEVICE", "node board layout line.N baud from", "rpict:/dev/ttyAMA0?board=rpict7v1"},
    {"omegawatt", "DEVICE", "nb baud from", "omegawatt:/dev/ttyUSB0?nb=6"},
    {"mqtt", "//[USER@]HOST[:PORT]/TOPIC",
     "fields value unit time fresh listen qos client keepalive password-file",
     "mqtt://broker/tele/plug/SENSOR"},
    {"mqtts", "//[USER@]HOST[:PORT]/TOPIC", "as mqtt, and cafile cert key check",
     "mqtts://me@broker/emon/emonpi/+?fields=power1,Vrms&password-file=/etc/nrg/mqtt"},
    {"redfish", "//[USER@]HOST[:PORT][/RESOURCE]", "password-file cafile period",
     "redfish://me@bmc.example?password-file=/etc/nrg/bmc"},
    {"exec", "COMMAND", "pattern, or columns separator; comment time",
     "exec:my-meter --watts?pattern=P={power} W"},
    {"file", "PATH", "pattern, or columns separator; comment time from",
     "file:/var/log/meter.csv?columns=time,power:W,voltage:mV"},
    {"lines", "DEVICE", "as file, and baud", "lines:/dev/ttyUSB0?baud=115200&columns=-,power"},
    {"waveform", "PATH",
     "format channels names rate mains v i vcal ical voffset ioffset phase shift dc cycles clock "
     "time",
     "waveform:mains.wav?vcal=0.0123&ical=0.00041&phase=1.5"},
    {"waveform-exec", "COMMAND", "as waveform",
     "waveform-exec:arecord -q -f S16_LE -c 2 -r 8000?vcal=0.0123&ical=0.00041"},
};

/* A meter without a row in the table is listed without keys. */
static void print_kind(const struct nrg_driver *driver)
{
    size_t i = 0, n = sizeof kinds / sizeof *kinds;
    while (i < n && strcmp(kinds[i].kind, driver->name) != 0)
        i++;
    if (i < n)
        printf("%s:%s   %s\n    keys: %s\n    %s\n", driver->name, kinds[i].place, driver->summary,
               kinds[i].keys, kinds[i].example);
    else if (driver->read == nrg_meter_read)
        printf("%s:   %s\n", driver->name, driver->summary);
}

/* As it is written there, right or wrong: so it may hold a password. */
static void print_meter(const struct nrg_meter_entry *meter)
{
    char shown[2 * NRG_URI_TEXT];
    nrg_mask_uri(shown, sizeof shown, meter->text);
    printf("%s   (%s)\n", shown, meter->where);
}

int nrg_meter_cmd_list(struct nrg_cli *cli, struct nrg_meter_values *values)
{
    struct nrg_sensor_options options = {0};
    struct nrg_error err;
    if (nrg_desk_read(&values->desk, cli, &options, &err))
        return nrg_complain(&err, 1);
    const struct nrg_meter_config *config = &values->desk.config;
    for (size_t i = 0; i < config->n_meters; i++)
        print_meter(&config->meters[i]);
    for (size_t i = 0; i < config->n_layouts; i++)
        printf("layout %s = %s   (%s)\n", config->layouts[i].name, config->layouts[i].text,
               config->layouts[i].where);
    if (!config->n_meters)
        printf("No meter is named in ~/.config/nrg/nrg.conf or /etc/nrg.conf; a line there is\n"
               "    meter = URI\n");
    printf("\nKinds of meters:\n");
    for (size_t i = 0; nrg_drivers[i]; i++)
        print_kind(nrg_drivers[i]);
    printf("\nKeys of all: period= average= covers= scale= offset= delay= (docs/meters.md)\n");
    return 0;
}
