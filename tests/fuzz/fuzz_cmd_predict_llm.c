/*
 * Fuzz target: nrg predict --llm of a model from anywhere: a config.json, headers of GGUF or
 * safetensors with a config.json beside them or without, a folder of both, sizes by hand. Input: a
 * byte for the form, the length of the model as four bytes, the model, its config.json.
 */
#include "fuzz_command.h"

#define BY_HAND 200 /* bytes of it */

/* As nrg train writes one of made rows. */
static const char profile[] =
    "{\"schema\":\"nrg.profile/1\",\"device\":\"Z9\",\"model\":\"llm\",\"features\":\"sta"
    "tic\",\"counts\":\"nrg\",\"provenance\":\"measured\",\"confidence\":0.95,\"trained_o"
    "n\":{\"sources\":[\"rows.json\"],\"models\":[\"Qwen3-8B\",\"Qwen3-14B\",\"Qwen3-32B"
    "\",\"Llama-3-8B\",\"Llama-3-70B\"],\"rows\":50.0,\"distinct\":50,\"fingerprint\":\"2"
    "bb4ac16c8d9ebcd\"},\"llm\":{\"rows\":50,\"timed_rows\":0,\"models\":5,\"static_w\":0"
    ".0,\"joules\":{\"launches\":0.0122786763992,\"dense_bytes\":1.98916914183e-10,\"cach"
    "e_bytes\":1.44560835131e-10,\"macs\":2.60771269227e-12,\"prompt_macs\":3.57919024933"
    "e-12,\"activation_bytes\":1.70159643289e-08},\"expected_error_percent\":0.4238847357"
    "07,\"interval_ln\":{\"any\":0.124050204814,\"spread\":0.0802971973509,\"quantile\":0"
    ".894351963156,\"groups\":{\"storage\":{\"dense_16bit\":{\"times\":0.288671720393,\"m"
    "odels\":5.0}},\"lengths\":{\"short\":{\"times\":0.296744955376,\"models\":5.0},\"lon"
    "g\":{\"times\":0.295173566887,\"models\":5.0}},\"batch\":{\"below_16\":{\"times\":0."
    "329584288537,\"models\":5.0},\"below_64\":{\"times\":0.321677845057,\"models\":5.0},"
    "\"below_256\":{\"times\":0.314339134924,\"models\":5.0}}}},\"limits\":{\"batch\":[8."
    "0,128.0],\"gpus\":[1.0,1.0],\"context\":[350.0,2800.0],\"token_macs\":[7596539904.0,"
    "73172385792.0]}}}";

enum form { A_FILE, A_FOLDER, SIZES, A_TABLE };

static void put(const char *name, const uint8_t *bytes, size_t n)
{
    unlink(name);
    if (n)
        write_file(name, bytes, n);
}

/* No argument has a NUL in it. */
static void write_sizes(char *to, const uint8_t *bytes, size_t n)
{
    size_t used = (size_t)snprintf(to, BY_HAND, "params=");
    for (size_t i = 0; i < n && used < BY_HAND - 1 && bytes[i]; i++)
        to[used++] = (char)bytes[i];
    to[used] = 0;
}

static void predict(enum form form, const char *model, bool json)
{
    const char *words[16] = {"predict", "--llm", model, "--profile", "profile.json"};
    size_t n = 5;
    words[n++] = "--prompt";
    words[n++] = "700";
    words[n++] = form == A_TABLE ? "--what-if" : "--batch";
    words[n++] = form == A_TABLE ? "batch=1,64" : "8";
    if (json)
        words[n++] = "--json";
    else
        words[n++] = "--explain";
    words[n] = NULL;
    run_nrg(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char by_hand[BY_HAND];
    if (size < 5)
        return 0;
    enum form form = (enum form)(data[0] % 4);
    size_t left = size - 5, len = read_u32(data + 1);
    len = len < left ? len : left;
    enter_folder();
    if (access("profile.json", F_OK))
        write_file("profile.json", (const uint8_t *)profile, sizeof profile - 1);
    put(form == A_FOLDER ? "model.safetensors" : "model", data + 5, len);
    put("config.json", data + 5 + len, left - len);
    write_sizes(by_hand, data + 5, len);
    predict(form, form == SIZES ? by_hand : form == A_FOLDER ? "." : "model", data[0] & 4);
    leave_recording();
    return 0;
}
