/*
 * See document.h. Three kinds of documents hold a power:
 *   Power               PowerControl[].PowerConsumedWatts: the first that is there; further ones
 * are parts of the first, or other views of it EnvironmentMetrics  PowerWatts.Reading, with the
 * Sensor that it comes from in DataSourceUri Sensor              Reading, where ReadingUnits is W,
 * with ReadingTime
 */
#include "sensors/redfish/document.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/channel.h"
#include "sensors/meter/time.h"

#define MOST_W 1e6

static void copy_path(const json_t *text, char *path)
{
    const char *from = json_string_value(text);
    size_t len = from ? json_string_length(text) : 0;
    path[0] = '\0';
    if (!len || len >= NRG_REDFISH_PATH || from[0] != '/' || strstr(from, ".."))
        return;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)from[i] <= ' ' || (unsigned char)from[i] >= 127)
            return;
    memcpy(path, from, len + 1);
}

static void copy_link(const json_t *object, const char *key, char *path)
{
    copy_path(json_object_get(json_object_get(object, key), "@odata.id"), path);
}

static void take_members(const json_t *object, struct nrg_redfish_document *out)
{
    const json_t *members = json_object_get(object, "Members");
    for (size_t i = 0; i < json_array_size(members) && out->n_members < NRG_REDFISH_MEMBERS; i++) {
        copy_path(json_object_get(json_array_get(members, i), "@odata.id"),
                  out->members[out->n_members]);
        out->n_members += out->members[out->n_members][0] != '\0';
    }
}

static void take_number(const json_t *number, struct nrg_redfish_document *out)
{
    if (!json_is_number(number)) {
        out->error = -ENODATA; /* null: not measured now */
        return;
    }
    out->watts = json_number_value(number);
    /* A machine that answers draws something. */
    out->error = !(out->watts >= 0 && out->watts <= MOST_W) ? -ERANGE
                 : out->watts > 0                           ? 0
                                                            : -ENODATA;
}

static void take_time(const json_t *text, struct nrg_redfish_document *out)
{
    struct nrg_meter_times since_1970 = {.first_ns = NRG_MISSING};
    if (!json_is_string(text) || nrg_meter_time(&since_1970, json_string_value(text),
                                                json_string_length(text), 0, &out->stamp_ns))
        out->stamp_ns = NRG_MISSING;
}

static bool is_watts(const json_t *units)
{
    const char *text = json_string_value(units);
    return text && (!strcmp(text, "W") || !strcmp(text, "Watts"));
}

static void take_reading(const json_t *object, struct nrg_redfish_document *out)
{
    const json_t *controls = json_object_get(object, "PowerControl");
    const json_t *power = json_object_get(object, "PowerWatts"), *number = NULL;
    for (size_t i = 0; i < json_array_size(controls) && !number; i++)
        number = json_object_get(json_array_get(controls, i), "PowerConsumedWatts");
    if (!number)
        number = json_object_get(power, "Reading");
    if (!number && is_watts(json_object_get(object, "ReadingUnits")))
        number = json_object_get(object, "Reading");
    if (!number)
        return;
    take_number(number, out);
    copy_path(json_object_get(power, "DataSourceUri"), out->source);
    take_time(json_object_get(object, "ReadingTime"), out);
}

static bool can_be_a_machine(const json_t *type)
{
    static const char *const types[] = {"RackMount", "StandAlone", "Blade", "Sled", "Other"};
    const char *text = json_string_value(type);
    for (size_t i = 0; text && i < sizeof types / sizeof *types; i++)
        if (!strcmp(text, types[i]))
            return true;
    return false;
}

int nrg_redfish_parse(const char *body, size_t len, struct nrg_redfish_document *out)
{
    json_error_t why;
    *out = (struct nrg_redfish_document){.error = -ENOENT, .stamp_ns = NRG_MISSING};
    json_t *object = json_loadb(body, len, 0, &why);
    if (!json_is_object(object)) {
        bool lack = !object && json_error_code(&why) == json_error_out_of_memory;
        json_decref(object);
        return lack ? -ENOMEM : -EPROTO;
    }
    const json_t *id = json_object_get(object, "Id");
    if (json_is_string(id))
        nrg_copy_clean(out->id, sizeof out->id, json_string_value(id), json_string_length(id));
    out->is_machine = can_be_a_machine(json_object_get(object, "ChassisType"));
    copy_link(object, "Power", out->power);
    copy_link(object, "EnvironmentMetrics", out->environment);
    copy_link(object, "Chassis", out->chassis);
    take_members(object, out);
    take_reading(object, out);
    json_decref(object);
    return 0;
}
