"""Models as PyTorch has them: trees of modules, whose leaves take time and draw power, each with a spread of its own."""

from dataclasses import dataclass, field

# Of a class: relative time, watts, watts of memory, whether a pool of threads helps.
CLASSES = {
    "Linear": (1.0, 17.0, 1.2, True),
    "Conv2d": (1.5, 19.0, 0.8, True),
    "LayerNorm": (0.12, 10.5, 2.5, False),
    "BatchNorm2d": (0.2, 10.0, 2.8, False),
    "GELU": (0.15, 11.5, 2.2, False),
    "ReLU": (0.08, 9.5, 2.8, False),
    "Softmax": (0.25, 12.5, 1.8, False),
    "Embedding": (0.1, 7.5, 3.0, False),
    "Dropout": (0.1, 10.0, 2.0, False),
    "MaxPool2d": (0.15, 11.0, 2.0, False),
}


@dataclass
class Module:
    name: str
    type: str
    children: list = field(default_factory=list)
    length_s: float = 0.0
    watts: float = 0.0
    cpus: float = 1.0
    dram_w: float = 0.0
    pick: callable = None  # which children a call calls, where not all

    def leaves(self):
        if not self.children:
            return [self]
        return [leaf for child in self.children for leaf in child.leaves()]

    def forward_s(self):
        return sum(leaf.length_s for leaf in self.leaves())

    def scaled_to(self, seconds):
        """Itself, with a forward pass of so many seconds."""
        factor = seconds / self.forward_s()
        for leaf in self.leaves():
            leaf.length_s *= factor
        return self


class Make:
    """Draws leaves. pool: threads that work for classes which can use them."""

    def __init__(self, rng, pool=1, spread=0.15):
        self.rng, self.pool, self.spread = rng, pool, spread

    def __call__(self, name, type_name, factor=1.0):
        length, watts, dram_w, parallel = CLASSES[type_name]
        cpus = self.pool if parallel and self.pool > 1 else 1.0
        length = length * factor * self.rng.uniform(0.7, 1.3)
        watts = watts * self.rng.normal(1, self.spread) * (1 + 0.8 * (cpus - 1))
        return Module(name, type_name, length_s=length, watts=watts, cpus=cpus, dram_w=dram_w * self.rng.uniform(0.8, 1.2) * cpus**0.5)


def gpt_block(make, at):
    attention = [make(at + ".attn.qkv", "Linear", 1.5), make(at + ".attn.softmax", "Softmax"), make(at + ".attn.drop", "Dropout"),
                 make(at + ".attn.proj", "Linear", 0.5)]
    mlp_parts = [make(at + ".mlp.fc1", "Linear", 2), make(at + ".mlp.act", "GELU"), make(at + ".mlp.fc2", "Linear", 2)]
    return Module(at, "Block", [make(at + ".ln1", "LayerNorm"), Module(at + ".attn", "Attention", attention),
                                make(at + ".ln2", "LayerNorm"), Module(at + ".mlp", "MLP", mlp_parts)])


def gpt(make, n_blocks=12):
    blocks = [gpt_block(make, f"blocks.{i}") for i in range(n_blocks)]
    return Module("GPT", "", [make("embed", "Embedding"), Module("blocks", "ModuleList", blocks), make("ln_f", "LayerNorm"),
                              make("head", "Linear", 3)])


def resnet_block(make, at):
    return Module(at, "BasicBlock", [make(at + ".conv1", "Conv2d"), make(at + ".bn1", "BatchNorm2d"), make(at + ".relu", "ReLU"),
                                     make(at + ".conv2", "Conv2d"), make(at + ".bn2", "BatchNorm2d")])


def resnet(make, n_blocks=(2, 2, 2, 2)):
    stages = [Module(f"layer{stage}", "Sequential", [resnet_block(make, f"layer{stage}.{i}") for i in range(n)])
              for stage, n in enumerate(n_blocks, 1)]
    stem = [make("conv1", "Conv2d"), make("bn1", "BatchNorm2d"), make("relu", "ReLU"), make("maxpool", "MaxPool2d")]
    return Module("ResNet", "", [*stem, *stages, make("fc", "Linear", 0.5)])


def mlp(make, n_layers=10):
    return Module("Net", "", [make(f"fc{i}", "Linear", make.rng.uniform(0.3, 1.7)) for i in range(n_layers)])


def experts_block(make, rng, at, n_experts=8):
    """A block whose gate calls two of its experts, some of them more often than others."""
    parts = []
    for i in range(n_experts):
        expert = f"{at}.moe.experts.{i}"
        parts.append(Module(expert, "Expert", [make(expert + ".w1", "Linear"), make(expert + ".w2", "Linear")]))
    often = rng.dirichlet([2] * n_experts)
    mixture = Module(at + ".moe", "MoE", [make(at + ".moe.gate", "Linear", 0.1), *parts])
    mixture.pick = lambda: [mixture.children[0]] + [parts[i] for i in rng.choice(n_experts, 2, replace=False, p=often)]
    return Module(at, "Block", [make(at + ".ln", "LayerNorm"), make(at + ".attn", "Linear", 1.2), mixture])
