/*
 * NVTX's calls (inject.h): ranges and marks go to ranges.c, texts to nvtx_names.c. Every copy of
 * NVTX in a process, and each library may have its own, hands over its table once.
 */
#include "inject/ranges.h"
#include "nrg/nrg.h"

#define EXPORTED __attribute__((visibility("default")))

static struct nrg_nvtx_event wide_event(const wchar_t *text)
{
    return (struct nrg_nvtx_event){.message_type = NRG_NVTX_UNICODE, .message.unicode = text};
}

/* The functions of the global domain, in three forms each. */
#define FORMS(result, verb, function)                                                              \
    static result verb##_ex(const struct nrg_nvtx_event *e)                                        \
    {                                                                                              \
        return function(NULL, e);                                                                  \
    }                                                                                              \
    static result verb##_a(const char *text)                                                       \
    {                                                                                              \
        struct nrg_nvtx_event e = nrg_nvtx_ascii(text);                                            \
        return function(NULL, &e);                                                                 \
    }                                                                                              \
    static result verb##_w(const wchar_t *text)                                                    \
    {                                                                                              \
        struct nrg_nvtx_event e = wide_event(text);                                                \
        return function(NULL, &e);                                                                 \
    }
FORMS(void, mark, nrg_range_mark)
FORMS(int, push, nrg_range_push)
FORMS(uint64_t, start, nrg_range_start)
#undef FORMS

static int pop(void)
{
    return nrg_range_pop(NULL);
}

static void end(uint64_t id)
{
    nrg_range_end(id);
}

static void domain_end(struct nrg_nvtx_domain *domain, uint64_t id)
{
    (void)domain;
    nrg_range_end(id);
}

static void domain_category_a(struct nrg_nvtx_domain *domain, uint32_t category, const char *name)
{
    if (name)
        nrg_nvtx_category(domain, category, name);
}

static void domain_category_w(struct nrg_nvtx_domain *domain, uint32_t category,
                              const wchar_t *name)
{
    char narrow[NRG_NVTX_WIDE_BYTES];
    if (name)
        nrg_nvtx_category(domain, category, nrg_nvtx_narrow(name, narrow, sizeof narrow));
}

static void category_a(uint32_t category, const char *name)
{
    domain_category_a(NULL, category, name);
}

static void category_w(uint32_t category, const wchar_t *name)
{
    domain_category_w(NULL, category, name);
}

static void *string_a(struct nrg_nvtx_domain *domain, const char *text)
{
    (void)domain;
    return text ? nrg_nvtx_string(text) : NULL;
}

static void *string_w(struct nrg_nvtx_domain *domain, const wchar_t *text)
{
    char narrow[NRG_NVTX_WIDE_BYTES];
    return text ? string_a(domain, nrg_nvtx_narrow(text, narrow, sizeof narrow)) : NULL;
}

static void *domain_a(const char *name)
{
    return name ? nrg_nvtx_domain(name) : NULL;
}

static void *domain_w(const wchar_t *name)
{
    char narrow[NRG_NVTX_WIDE_BYTES];
    return name ? nrg_nvtx_domain(nrg_nvtx_narrow(name, narrow, sizeof narrow)) : NULL;
}

struct hook {
    unsigned place;
    nrg_nvtx_function function;
};

#define HOOK(place, function)                                                                      \
    {                                                                                              \
        place, (nrg_nvtx_function)(function)                                                       \
    }

static const struct hook core[] = {
    HOOK(NRG_NVTX_MARK_EX, mark_ex),
    HOOK(NRG_NVTX_MARK_A, mark_a),
    HOOK(NRG_NVTX_MARK_W, mark_w),
    HOOK(NRG_NVTX_START_EX, start_ex),
    HOOK(NRG_NVTX_START_A, start_a),
    HOOK(NRG_NVTX_START_W, start_w),
    HOOK(NRG_NVTX_END, end),
    HOOK(NRG_NVTX_PUSH_EX, push_ex),
    HOOK(NRG_NVTX_PUSH_A, push_a),
    HOOK(NRG_NVTX_PUSH_W, push_w),
    HOOK(NRG_NVTX_POP, pop),
    HOOK(NRG_NVTX_CATEGORY_A, category_a),
    HOOK(NRG_NVTX_CATEGORY_W, category_w),
    {0},
};

static const struct hook core2[] = {
    HOOK(NRG_NVTX2_MARK, nrg_range_mark),
    HOOK(NRG_NVTX2_START, nrg_range_start),
    HOOK(NRG_NVTX2_END, domain_end),
    HOOK(NRG_NVTX2_PUSH, nrg_range_push),
    HOOK(NRG_NVTX2_POP, nrg_range_pop),
    HOOK(NRG_NVTX2_CATEGORY_A, domain_category_a),
    HOOK(NRG_NVTX2_CATEGORY_W, domain_category_w),
    HOOK(NRG_NVTX2_STRING_A, string_a),
    HOOK(NRG_NVTX2_STRING_W, string_w),
    HOOK(NRG_NVTX2_DOMAIN_A, domain_a),
    HOOK(NRG_NVTX2_DOMAIN_W, domain_w),
    {0},
};

static void set_hooks(const struct nrg_nvtx_callbacks *callbacks, int module,
                      const struct hook *hooks)
{
    nrg_nvtx_function **table = NULL;
    unsigned length = 0;
    if (!callbacks->function_table(module, &table, &length) || !table)
        return;
    for (; hooks->function; hooks++)
        if (hooks->place < length && table[hooks->place])
            *table[hooks->place] = hooks->function;
}

/* Called by each NVTX in the process. 0: there is nobody to tell, so it stays switched off. */
EXPORTED int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id));
EXPORTED int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id))
{
    const struct nrg_nvtx_callbacks *callbacks =
        nrg_recording_active() && export_table ? export_table(NRG_NVTX_CALLBACKS) : NULL;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks)
        return 0;
    set_hooks(callbacks, NRG_NVTX_CORE, core);
    set_hooks(callbacks, NRG_NVTX_CORE2, core2);
    return 1;
}
