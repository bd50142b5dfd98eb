"""Workers by fork, also such as persist."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __init__(self):
        self.inside = nn.Linear(2, 2)

    def __len__(self):
        return 12

    def __getitem__(self, i):
        return self.inside(torch.full((2,), float(i))).detach() * 0 + i


if __name__ == "__main__":
    loader = DataLoader(Squares(), batch_size=4, num_workers=2, persistent_workers=True)
    for _ in range(2):
        print([batch[:, 0].tolist() for batch in loader])
    for batch in loader:
        break
    print(torch.utils.data.get_worker_info())
