/* Fuzz target: nrg dataset of a recording with spans and a kept model, and predict --against it. */
#include "fuzz_mutate.h"

/* A profile that prices every kind by bytes and multiply-accumulates, as nrg train writes one. */
static const char rows[] =
    "id,device,model,node,kind,level,parts,batch,macs,read_bytes,written_bytes,rest_bytes,time_s,"
    "energy_mj,multiplicity,counts,provenance\n"
    "1,d,m,a,Linear,operator,,1,1000,4000,400,,0.001,1.5,1,nrg,measured\n"
    "2,d,m,b,Linear,operator,,1,3000,9000,500,,0.002,3.5,1,nrg,measured\n"
    "3,d,n,c,ReLU,operator,,1,0,4000,4000,,0.0005,0.5,1,nrg,measured\n"
    "4,d,n,e,Linear,operator,,1,9000,16000,800,,0.005,9.5,1,nrg,measured\n";
static const char graph[] =
    "graph(%self : __torch__.Net,\n"
    "      %x : Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu)):\n"
    "  %w : Float(16, 8, strides=[8, 1], requires_grad=1, device=cpu) = "
    "prim::GetAttr[name=\"weight\"](%self), scope: __module.fc1\n"
    "  %b : Float(16, strides=[1], requires_grad=1, device=cpu) = "
    "prim::GetAttr[name=\"bias\"](%self), scope: __module.fc1\n"
    "  %y : Float(4, 16, strides=[16, 1], requires_grad=1, device=cpu) = aten::linear(%x, %w, %b), "
    "scope: __module.fc1\n"
    "  return (%y)\n";

/* Once: the profile is the same for all inputs. */
static void make_profile(void)
{
    enter_folder();
    if (!access("profile.json", F_OK))
        return;
    write_file("rows.csv", (const uint8_t *)rows, sizeof rows - 1);
    run_nrg((const char *const[]){"train", "-q", "rows.csv", "-o", "profile.json", NULL});
    unlink("rows.csv");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    make_profile();
    write_file("model", (const uint8_t *)graph, sizeof graph - 1);
    if (sum_input(data, size) % 2)
        run_on_recording(data, size, (const char *const[]){"dataset", "run.nrg", NULL});
    else
        run_on_recording(data, size,
                         (const char *const[]){"predict", "model", "--profile", "profile.json",
                                               "--against", "run.nrg", NULL});
    return 0;
}
