/*
 * What to do with a TorchScript archive. Its code has operators but no shapes, without which hardly
 * anything has a cost; PyTorch finds them when it exports the model for an input. The command works
 * with PyTorch 1.13 and 2.x: the exporter that takes archives is the old one, which newer releases
 * must be asked for. It writes to the working folder.
 */
#include <stdio.h>
#include <string.h>

#include "report/graph/report.h"

#define COMMAND                                                                                    \
    "python3 -c 'import inspect, torch; e = torch.onnx.export; "                                   \
    "e(torch.jit.load(\"%s\").eval(), (torch.zeros(1, 3, 224, 224),), \"%.*s.onnx\", "             \
    "**({\"dynamo\": False} if \"dynamo\" in inspect.signature(e).parameters else {}))'"

bool nrg_graph_dump_command(const struct nrg_analysis *r, char *buf, size_t size)
{
    const char *path = r->name;
    if (r->has_graph || !r->model.format || strcmp(r->model.format, "torchscript-archive") != 0)
        return false;
    if (strpbrk(path, "'\"\\\n") || !strcmp(path, "stdin"))
        path = "model.pt";
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int stem = (int)(strchr(name, '.') ? strrchr(name, '.') - name : (ptrdiff_t)strlen(name));
    int len = snprintf(buf, size, COMMAND, path, stem, name);
    return len > 0 && (size_t)len < size;
}
