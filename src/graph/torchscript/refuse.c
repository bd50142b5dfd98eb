/*
 * Texts that look like TorchScript and are not. torch.fx prints graphs that also begin with
 * "graph(", ONNX's helper prints "graph name (", and PowerShell's ">" writes UTF-16. Each is
 * refused by name, with the way to a file that nrg reads.
 */
#include "base/input.h"
#include "graph/torchscript/lex.h"

#define FX_LOOK_AT 4000

/* The first node of torch.fx has its number of users and an opcode of fx's own. */
bool ts_is_fx(const char *graph, const char *end)
{
    if ((size_t)(end - graph) > FX_LOOK_AT)
        end = graph + FX_LOOK_AT;
    const char *colon = memchr(graph, ')', (size_t)(end - graph));
    if (!colon)
        return false;
    const char *line = memchr(colon, '\n', (size_t)(end - colon));
    while (line && line + 1 < end && (line[1] == '\n' || line[1] == '#'))
        line = memchr(line + 1, '\n', (size_t)(end - line - 1));
    if (!line)
        return false;
    const char *eol = ts_end_of_line(line + 1, end);
    return ts_find_word(line, eol, "users=") || ts_find_word(line, eol, "[uses=") ||
           ts_find_word(line, eol, "= placeholder[") || ts_find_word(line, eol, "= call_") ||
           ts_find_word(line, eol, "= get_attr[");
}

/* "graph(x, y):" of torch.fx up to 1.8, whose header has names without "%". */
static bool has_fx(const char *text, const char *end)
{
    const char *p = text;
    while ((p = ts_find_word(p, end, "graph("))) {
        if (ts_is_fx(p, end))
            return true;
        p += 6;
    }
    return false;
}

/* "graph torch-jit-export (", then "%input[FLOAT, 1x3]". */
static bool has_onnx_print(const char *text, const char *end)
{
    const char *p = text;
    while ((p = ts_find_word(p, end, "graph "))) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        if (!eol)
            return false;
        const char *name = ts_after_blanks(ts_name_end(p + 6, eol), eol);
        const char *next = ts_after_blanks(eol + 1, end);
        const char *after = next < end && *next == '%' ? ts_name_end(next, end) : NULL;
        if (name < eol && (*name == '(' || *name == '{') && after && after < end && *after == '[')
            return true;
        p += 6;
    }
    return false;
}

static bool is_utf16(const char *text, size_t len)
{
    static const char word[] = {'g', 0, 'r', 0, 'a', 0, 'p', 0, 'h'};
    if (len < 2 || ((uint8_t)text[0] != 0xff && (uint8_t)text[0] != 0xfe))
        return false;
    return memmem(text, len, word, sizeof word);
}

const char *ts_other_format(const char *text, size_t len)
{
    const char *end = text + len;
    if (is_utf16(text, len))
        return NRG_UTF16_ADVICE;
    if (has_fx(text, end))
        return "is a torch.fx graph, which has no types: save the model with torch.export.save and "
               "give the .pt2 file, or print torch.jit.trace(model, input).inlined_graph";
    if (ts_find_word(text, end, "class GraphModule(torch.nn.Module)"))
        return "is the print of an ExportedProgram or a torch.fx module: save the program with "
               "torch.export.save and give the .pt2 file";
    if (has_onnx_print(text, end))
        return "is what onnx.helper.printable_graph prints: give the .onnx file itself";
    return NULL;
}
