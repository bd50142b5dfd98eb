/*
 * Fuzz target: MQTT messages. The first byte chooses the URI, the second is the retain flag, a line
 * is the topic, the rest is the payload.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/mqtt/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *uri, *topic;
} plans[] = {
    {"mqtt://h/x", "tele/plug/SENSOR"},
    {"mqtt://h/x", "emon/pi/power1"},
    {"mqtt://h/x?fields=power1,Vrms", "emon/+/+"},
    {"mqtt://h/x", "emon/#"},
    {"mqtt://h/x?value=/a/0/b~1c&unit=mW", "any"},
    {"mqtt://h/x?fields=p:W=/p,e:kWh=/e&time=/t&fresh=1h", "any"},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_mqtt_plan plan;
    struct nrg_mqtt_reading r;
    struct nrg_uri uri;
    struct nrg_error err;
    char topic[256];
    if (size < 3)
        return 0;
    size_t which = data[0] % (sizeof plans / sizeof *plans), at = 2, n = 0;
    if (nrg_uri_parse(&uri, plans[which].uri, &err) ||
        nrg_mqtt_plan_init(&plan, &uri, plans[which].topic, &err))
        abort();
    for (; at < size && data[at] != '\n' && n + 1 < sizeof topic; at++)
        if (data[at])
            topic[n++] = (char)data[at];
    topic[n] = '\0';
    at += at < size;
    char *payload = malloc(size - at + 1);
    if (!payload)
        return 0;
    memcpy(payload, data + at, size - at);
    const struct nrg_mqtt_message m = {topic, payload, size - at, data[1] & 1, 1000000000};
    nrg_mqtt_plan_learn(&plan, topic);
    bool any = nrg_mqtt_decode(&plan, &m, &r), has = false;
    for (size_t i = 0; i < plan.n_fields; i++) {
        has |= !isnan(r.values[i]);
        if (isinf(r.values[i]))
            abort();
    }
    if ((any && !has) || (!any && !r.why[0]))
        abort();
    free(payload);
    return 0;
}
