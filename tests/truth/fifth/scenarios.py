"""All scenarios by name. A new one is a function in the file of its group; what its docstring says is what `simulate --list` prints."""

import gpus  # noqa: F401  each adds its own
import inference  # noqa: F401
import training  # noqa: F401
from scene import SCENARIOS, make  # noqa: F401
