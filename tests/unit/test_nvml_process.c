/*
 * nvml: which process uses the GPU, and whose pids those are. The tree's /proc decides what a pid
 * of the device means.
 */
#include "fake_nvml/fixture.h"
#include "support/cmocka.h"

#include <string.h>

#include "base/clock.h"

static const struct nrg_gpu_process *process(const struct nvml_fixture *f, int32_t device_pid)
{
    for (size_t i = 0; i < f->keep->n_gpu; i++)
        if (f->keep->gpu[i].device_pid == device_pid)
            return &f->keep->gpu[i];
    fail_msg("no process %d", (int)device_pid);
    return NULL;
}

static void processes(void **state)
{
    struct nvml_fixture f;
    (void)state;
    static const unsigned bytes[] = {16, 24, 32};
    for (size_t i = 0; i < 3; i++) {
        char script[300];
        snprintf(script, sizeof script,
                 "gpu X\nentry-bytes %u\nprocess 100 1048576 60\nprocess 200 na 25\n"
                 "process 300 7 -\ngarbage 5\n",
                 bytes[i]);
        nvml_probe_with(&f, script);
        tree_write(&f.tree, "/proc/100/status", "Name:\ta\n");
        tree_write(&f.tree, "/proc/300/status", "Name:\tb\n");
        nvml_open_gpu(&f, 0);
        nap_ms(5);
        int64_t first_ns = nrg_now_ns();
        assert_int_equal(nvml_read_gpu(&f), 0);
        assert_int_equal(nvml_read_gpu(&f), 0); /* at once, if we were let: no new interval */
        bool at_once = nrg_now_ns() - first_ns < 100 * NRG_NS_PER_MS;
        assert_int_equal(f.keep->n_gpu, at_once ? 3 : f.keep->n_gpu);
        const struct nrg_gpu_process *p = process(&f, 100);
        assert_int_equal(p->pid, 100);
        assert_int_equal(p->sm_ppm, 600000);
        assert_int_equal(p->memory_bytes, 1048576);
        assert_true(p->t_ns > nrg_now_ns() - NRG_NS_PER_S && p->t_ns <= nrg_now_ns());
        p = process(&f, 200);
        assert_int_equal(p->pid, -1); /* gone, or never ours */
        assert_int_equal(p->sm_ppm, 250000);
        assert_int_equal(p->memory_bytes, NRG_MISSING);
        p = process(&f, 300);
        assert_int_equal(p->pid, 300);
        assert_int_equal(p->sm_ppm, 0); /* the others' shares prove that it had none */
        assert_int_equal(p->memory_bytes, 7);
        size_t seen = f.keep->n_gpu;
        nap_ms(110);
        assert_int_equal(nvml_read_gpu(&f), 0);
        assert_int_equal(f.keep->n_gpu, seen + 3);
        nvml_done(&f);
    }
}

static void processes_not_told(void **state)
{
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, "gpu X\nfail process-utilization 3\nfail processes 3\nprocess 1 1 1\n");
    assert_non_null(strstr(probe_why(&f.probe, "per process")->why, "Not Supported"));
    nvml_open_gpu(&f, 0);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(f.keep->n_gpu, 0);
    nvml_done(&f);
    nvml_probe_with(&f, "gpu X\nprocess 9 100 -\n"); /* no process has a share: missing, not 0 */
    nvml_open_gpu(&f, 0);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(f.keep->n_gpu, 1);
    assert_int_equal(f.keep->gpu[0].sm_ppm, NRG_MISSING);
    assert_int_equal(f.keep->gpu[0].memory_bytes, 100);
    nvml_done(&f);
}

/* Instances of 42 and 14 of 56 multiprocessors; two processes in the larger one. */
static void shares_by_mig_instance(void **state)
{
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, "gpu A100\nmig 1000 42\nmig 2000 14\nprocess 100 7 - 1\n"
                        "process 200 7 - 1\nprocess 300 7 - 2\nprocess 400 7 - 9\n");
    for (int pid = 100; pid <= 400; pid += 100) {
        char path[32];
        snprintf(path, sizeof path, "/proc/%d/status", pid);
        tree_write(&f.tree, path, "Name:\tx\n");
    }
    nvml_open_gpu(&f, 0);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(process(&f, 100)->sm_ppm, 375000);
    assert_int_equal(process(&f, 200)->sm_ppm, 375000);
    assert_int_equal(process(&f, 300)->sm_ppm, 250000);
    assert_int_equal(process(&f, 400)->sm_ppm, NRG_MISSING); /* an instance that is not listed */
    nvml_done(&f);
    /* A size that is not told: no division by half a table. */
    nvml_probe_with(&f, "gpu A100\nmig 1000 42\nmig 2000\nprocess 100 7 - 1\n");
    nvml_open_gpu(&f, 0);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(process(&f, 100)->sm_ppm, NRG_MISSING);
    nvml_done(&f);
}

static void nap_until_read(struct nvml_fixture *f)
{
    nap_ms(110);
    f->keep->n_gpu = 0;
    assert_int_equal(nvml_read_gpu(f), 0);
}

/* The performance monitor says how busy each instance was: 20 % of 42 and 90 % of 14 processors. */
static void shares_by_what_mig_instances_did(void **state)
{
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, "gpu H100\nmig 1000 42 20\nmig 2000 14 90\nprocess 100 7 - 1\n"
                        "process 300 7 - 2\n");
    nvml_open_gpu(&f, 0);
    nap_until_read(&f);
    assert_int_equal(process(&f, 100)->sm_ppm, 150000);
    assert_int_equal(process(&f, 100)->size_ppm, 750000);
    assert_int_equal(process(&f, 300)->sm_ppm, 225000);
    assert_int_equal(process(&f, 300)->size_ppm, 250000);
    nap_until_read(&f); /* the samples change places */
    assert_int_equal(process(&f, 300)->sm_ppm, 225000);
    nvml_done(&f);

    /* Two in an instance: who of them did it is not known. */
    nvml_probe_with(&f, "gpu H100\nmig 1000 42 20\nmig 2000 14 90\nprocess 100 7 - 1\n"
                        "process 200 7 - 1\nprocess 300 7 - 2\n");
    nvml_open_gpu(&f, 0);
    nap_until_read(&f);
    assert_int_equal(process(&f, 200)->sm_ppm, 75000);
    assert_int_equal(process(&f, 200)->size_ppm, NRG_MISSING);
    nvml_done(&f);

    /* One instance can't be read, or lies: then sizes count for all. */
    static const char *const odd[] = {"", " 400", " nan"};
    for (size_t i = 0; i < 3; i++) {
        char script[160];
        snprintf(script, sizeof script,
                 "gpu H100\nmig 1000 42 20\nmig 2000 14%s\nprocess 100 7 - 1\nprocess 300 7 - 2\n",
                 odd[i]);
        nvml_probe_with(&f, script);
        nvml_open_gpu(&f, 0);
        nap_until_read(&f);
        assert_int_equal(process(&f, 100)->sm_ppm, 750000);
        assert_int_equal(process(&f, 100)->size_ppm, NRG_MISSING);
        nvml_done(&f);
    }
}

/* What the server computes is its clients', whoever they are. */
static void an_mps_server_is_nobody(void **state)
{
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, "gpu X\nprocess 100 10 60\nprocess 200 20 30\n");
    tree_write(&f.tree, "/proc/100/comm", "nvidia-cuda-mps\n");
    tree_write(&f.tree, "/proc/200/comm", "python3\n");
    nvml_open_gpu(&f, 0);
    nap_ms(5);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(process(&f, 100)->pid, -1);
    assert_int_equal(process(&f, 100)->sm_ppm, 600000);
    assert_int_equal(process(&f, 200)->pid, 200);
    nvml_done(&f);
}

/* 60 % of the server for two clients, one of which may use a quarter of the processors. */
static void an_mps_server_computes_for_its_clients(void **state)
{
    static const char limited[] = "A=1\0CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25\0B=2";
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, "gpu X\nprocess 100 10 60\nprocess 200 20 30\n"
                        "mps-client 300 30 -\nmps-client 400 40 -\nmps-client 500 50 10\n");
    tree_write(&f.tree, "/proc/100/comm", "nvidia-cuda-mps\n");
    tree_write(&f.tree, "/proc/200/comm", "python3\n");
    for (int pid = 300; pid <= 500; pid += 100) {
        char path[32];
        snprintf(path, sizeof path, "/proc/%d/comm", pid);
        tree_write(&f.tree, path, "python3\n");
    }
    tree_write_bytes(&f.tree, "/proc/300/environ", limited, sizeof limited);
    nvml_open_gpu(&f, 0);
    nap_ms(5);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(f.keep->n_gpu, 4); /* without the server */
    assert_int_equal(process(&f, 200)->sm_ppm, 300000);
    assert_int_equal(process(&f, 200)->size_ppm, NRG_MISSING);
    assert_int_equal(process(&f, 300)->sm_ppm, 120000);
    assert_int_equal(process(&f, 300)->size_ppm, 600000);
    assert_int_equal(process(&f, 300)->memory_bytes, 30);
    assert_int_equal(process(&f, 400)->sm_ppm, 480000);
    assert_int_equal(process(&f, 400)->size_ppm, 600000);
    assert_int_equal(process(&f, 500)->sm_ppm, 100000); /* the driver named it itself */
    assert_int_equal(process(&f, 500)->size_ppm, 100000);
    nvml_done(&f);
}

/* Both clients computed 80 % of the time, one of them on at most a quarter of the processors. */
static void clients_of_mps_by_what_they_did(void **state)
{
    static const char limited[] = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25";
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, "gpu X\nmps-client 300 30 80\nmps-client 400 40 80\n");
    tree_write(&f.tree, "/proc/300/comm", "python3\n");
    tree_write(&f.tree, "/proc/400/comm", "python3\n");
    tree_write_bytes(&f.tree, "/proc/300/environ", limited, sizeof limited);
    nvml_open_gpu(&f, 0);
    nap_ms(5);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(process(&f, 300)->sm_ppm, 200000);
    assert_int_equal(process(&f, 300)->size_ppm, 800000);
    assert_int_equal(process(&f, 400)->sm_ppm, 800000);
    assert_int_equal(process(&f, 400)->size_ppm, 800000);
    nvml_done(&f);
}

static const char crowd[] = "gpu X\nprocess 4242 10 50\nprocess 4343 20 30\nprocess 17 30 5\n"
                            "process 99 40 5\n";

static void pids_of_another_namespace(void **state)
{
    struct nvml_fixture f;
    (void)state;
    /* A container whose /proc is the host's: NSpid has our own number last. */
    nvml_probe_with(&f, crowd);
    tree_link(&f.tree, "pid:[4026532500]", "/proc/self/ns/pid");
    tree_write(&f.tree, "/proc/self/status", "Name:\tnrg\nNSpid:\t4200\t5\n");
    tree_write(&f.tree, "/proc/4242/status", "Name:\ttrain\nNSpid:\t4242\t17\nNSsid:\t1\t1\n");
    tree_link(&f.tree, "pid:[4026532500]", "/proc/4242/ns/pid");
    tree_write(&f.tree, "/proc/4343/status", "Name:\tother\nNSpid:\t4343\t17\n");
    tree_link(&f.tree, "pid:[4026539999]", "/proc/4343/ns/pid");
    tree_write(&f.tree, "/proc/17/status", "Name:\tkworker\nNSpid:\t17\n");
    nvml_open_gpu(&f, 0);
    nap_ms(2);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(process(&f, 4242)->pid, 17);
    assert_int_equal(process(&f, 4343)->pid, -1); /* another container's 17 */
    assert_int_equal(process(&f, 17)->pid, -1);   /* the host's own */
    assert_int_equal(process(&f, 99)->pid, -1);
    assert_null(probe_why(&f.probe, "per process"));
    nvml_done(&f);
}

static void pids_in_a_closed_container(void **state)
{
    struct nvml_fixture f;
    (void)state;
    nvml_probe_with(&f, crowd);
    tree_link(&f.tree, "pid:[4026532500]", "/proc/self/ns/pid");
    tree_write(&f.tree, "/proc/self/status", "Name:\tnrg\nNSpid:\t5\n");
    tree_write(&f.tree, "/proc/17/status", "Name:\ttrain\nNSpid:\t17\n");
    tree_link(&f.tree, "/dev/nvidia0", "/proc/17/fd/12");
    tree_write(&f.tree, "/proc/99/status", "Name:\tnested\nNSpid:\t99\t1\n");
    tree_link(&f.tree, "/dev/null", "/proc/99/fd/0");
    nrg_probe_release(&f.probe);
    tree_probe(&f.tree, &f.probe, "nvml");
    assert_non_null(strstr(probe_why(&f.probe, "per process")->fix, "--pid=host"));
    nvml_open_gpu(&f, 0);
    nap_ms(2);
    assert_int_equal(nvml_read_gpu(&f), 0);
    assert_int_equal(process(&f, 4242)->pid, -1);
    assert_int_equal(process(&f, 17)->pid, 17); /* the driver translated: it has the GPU open */
    assert_int_equal(process(&f, 99)->pid, -1);
    nvml_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes),
        cmocka_unit_test(processes_not_told),
        cmocka_unit_test(shares_by_mig_instance),
        cmocka_unit_test(shares_by_what_mig_instances_did),
        cmocka_unit_test(an_mps_server_is_nobody),
        cmocka_unit_test(an_mps_server_computes_for_its_clients),
        cmocka_unit_test(clients_of_mps_by_what_they_did),
        cmocka_unit_test(pids_of_another_namespace),
        cmocka_unit_test(pids_in_a_closed_container),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
