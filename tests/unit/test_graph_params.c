/*
 * The parts under the readers of model files: the ZIP reader, the unpickler, the name table, and
 * whole files that are cut or damaged at every byte (under the sanitizers: no crash, a reason).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/reader.h"
#include "graph/torch/unpickle.h"
#include "graph/torch/zip.h"
#include "support/cmocka.h"

#define DATA NRG_TEST_SOURCE "/data/graph/"

struct file {
    uint8_t bytes[16384];
    size_t size;
};

static void load(const char *name, struct file *file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s", DATA, name);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    file->size = fread(file->bytes, 1, sizeof file->bytes, in);
    fclose(in);
    assert_true(file->size > 0 && file->size < sizeof file->bytes);
}

static int read_bytes(const uint8_t *bytes, size_t size, struct nrg_model *model,
                      struct nrg_error *err)
{
    struct nrg_source source = {.bytes = bytes, .size = size, .name = "test"};
    *err = (struct nrg_error){0};
    return nrg_model_read_bytes(&source, NULL, model, err);
}

static void test_zip(void **state)
{
    struct file file;
    struct nrg_zip zip;
    const uint8_t *bytes;
    size_t size;
    load("tied.pt", &file);
    assert_int_equal(nrg_zip_open(&zip, file.bytes, file.size, "test", NULL), 0);
    const struct nrg_zip_entry *entry = nrg_zip_find(&zip, "data.pkl");
    assert_non_null(entry);
    assert_int_equal(nrg_zip_read(&zip, entry, &bytes, &size, NULL), 0);
    assert_int_equal(bytes[0], 0x80);
    assert_null(zip.zlib); /* stored: no library was loaded for it */
    entry = nrg_zip_first(&zip, "code/__torch__/torch/nn/modules/batchnorm.py");
    assert_non_null(entry);
    assert_int_equal(entry->method, 8);
    assert_int_equal(nrg_zip_read(&zip, entry, &bytes, &size, NULL), 0);
    assert_non_null(memmem(bytes, size, "running_mean", 12));
    assert_null(nrg_zip_find(&zip, "data"));
    assert_null(nrg_zip_find(&zip, "zzz"));
    nrg_zip_release(&zip);
}

static bool allow_none(const char *global)
{
    return false;
}

static void test_pickle_values(void **state)
{
    static const uint8_t text[] = "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
                                  "a\x8a\x02\x00\xff\x8c\x01"
                                  "bG?\xf8\x00\x00\x00\x00\x00\x00\x8c\x01"
                                  "cJ\xff\xff\xff\xffu.";
    struct nrg_pickle pickle = {text, sizeof text - 1, "test", allow_none};
    struct nrg_arena arena = {0};
    struct nrg_pkl *root;
    size_t at = 0;
    assert_int_equal(nrg_pickle_read(&pickle, &at, &arena, &root, NULL), 0);
    assert_int_equal(at, sizeof text - 1);
    assert_true(nrg_pkl_is_dict(root));
    assert_int_equal(nrg_pkl_get(root, "a")->i, -256);
    assert_true(nrg_pkl_get(root, "b")->f == 1.5);
    assert_int_equal(nrg_pkl_get(root, "c")->i, -1);
    assert_null(nrg_pkl_get(root, "d"));
    assert_null(nrg_pkl_item(root, 0));
    nrg_arena_release(&arena);
}

static void test_pickle_refuses(void **state)
{
    static const char text[] = "\x80\x02"
                               "cos\nsystem\n(X\x02\x00\x00\x00idtR.";
    struct nrg_pickle pickle = {(const uint8_t *)text, sizeof text - 1, "test", nrg_torch_allows};
    struct nrg_arena arena = {0};
    struct nrg_error err = {0};
    struct nrg_pkl *root;
    size_t at = 0;
    assert_int_equal(nrg_pickle_read(&pickle, &at, &arena, &root, &err), -EPERM);
    assert_non_null(strstr(err.what, "asks for os.system: refused"));
    assert_int_equal(err.offset, 2);
    nrg_arena_release(&arena);
    assert_true(nrg_torch_allows("torch.FloatStorage"));
    assert_true(nrg_torch_allows("torch.bfloat16"));
    assert_false(nrg_torch_allows("torch.load"));
    assert_false(nrg_torch_allows("os.FloatStorage"));
    assert_false(nrg_torch_allows("torch.nn.modules")); /* the family's name alone */
}

/* Every length shorter than the whole is an error with a reason, never a crash. */
static void cut_everywhere(const char *name)
{
    struct file file;
    load(name, &file);
    for (size_t size = 1; size < file.size; size++) {
        struct nrg_model model;
        struct nrg_error err;
        uint8_t *exact = malloc(size); /* so that one byte too far is seen */
        assert_non_null(exact);
        memcpy(exact, file.bytes, size);
        assert_true(read_bytes(exact, size, &model, &err) < 0);
        assert_true(err.what[0] != '\0');
        free(exact);
    }
}

static void test_cut_archives(void **state)
{
    cut_everywhere("tied.pt");
    cut_everywhere("module.pt");
    cut_everywhere("dynamic.pt2");
}

/* A flipped byte may still read; then what was read must be sound and free without a leak. */
static void test_damaged_bytes(void **state)
{
    static const char *const names[] = {"tied.pt", "checkpoint.pt", "dynamic.pt2"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct file file;
        load(names[n], &file);
        for (size_t i = 0; i < file.size; i++) {
            struct nrg_model model;
            struct nrg_error err;
            uint8_t before = file.bytes[i];
            file.bytes[i] ^= (uint8_t)(1 + i % 255);
            if (!read_bytes(file.bytes, file.size, &model, &err)) {
                for (size_t p = 0; p < model.n_params; p++)
                    assert_true(nrg_type_numel(model.params[p].type) >= 0);
                nrg_model_release(&model);
            }
            file.bytes[i] = before;
        }
    }
}

/* The old stream ends with its storages, which are not read: a cut there is not seen. */
static void test_legacy(void **state)
{
    struct file file;
    struct nrg_model model;
    struct nrg_error err;
    load("state_legacy.pt", &file);
    assert_int_equal(read_bytes(file.bytes, file.size, &model, &err), 0);
    assert_string_equal(model.format, "torch-checkpoint");
    assert_int_equal(model.n_params, 9);
    nrg_model_release(&model);
    for (size_t size = 1; size < 600; size++)
        assert_true(read_bytes(file.bytes, size, &model, &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zip),
        cmocka_unit_test(test_pickle_values),
        cmocka_unit_test(test_pickle_refuses),
        cmocka_unit_test(test_cut_archives),
        cmocka_unit_test(test_damaged_bytes),
        cmocka_unit_test(test_legacy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
