/* What nrg makes of packets of another version: their words where these are known, else the head.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sensors/nrgd/link.h"

static void expect(enum nrg_wire_type type, size_t size, const char *program)
{
    union nrg_wire_packet packet, answer;
    struct nrg_error err;
    int ends[2];
    char said[64];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    struct nrg_nrgd_link link = {
        .fd = ends[0], .version = NRG_WIRE_VERSION, .deadline_ns = nrg_now_ns() + NRG_NS_PER_S};
    memset(&packet, 'x', sizeof packet);
    memset(&answer, 'y', sizeof answer);
    packet.head = (struct nrg_wire_head){
        .magic = NRG_WIRE_MAGIC, .version = NRG_WIRE_VERSION + 1, .type = (uint16_t)type};
    assert_int_equal(send(ends[1], &packet, size, 0), size);
    assert_int_equal(nrg_nrgd_answer(&link, NRG_WIRE_WELCOME, &answer, NULL, NULL, &err),
                     -EPROTONOSUPPORT);
    snprintf(said, sizeof said, "nrgd %s speaks version %d ", program, NRG_WIRE_VERSION + 1);
    assert_memory_equal(err.what, said, strlen(said));
    close(ends[0]);
    close(ends[1]);
}

static void packets_of_another_version(void **state)
{
    (void)state;
    expect(NRG_WIRE_WELCOME, sizeof(struct nrg_wire_welcome), "xxxxxxxxxxxxxxxxxxxxxxx");
    expect(NRG_WIRE_REFUSED, sizeof(struct nrg_wire_refused), "xxxxxxxxxxxxxxxxxxxxxxx");
    expect(NRG_WIRE_ROW, sizeof(struct nrg_wire_head), "(of an unknown release)");
    expect(NRG_WIRE_SENSOR, sizeof(union nrg_wire_packet), "(of an unknown release)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(packets_of_another_version)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
