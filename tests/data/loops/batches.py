"""Batches of all kinds, and layouts in which the batch is not the first dimension."""
import collections
import dataclasses

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from common import loop, sgd, truth

Batch = collections.namedtuple("Batch", "ids x y")


@loop()
def batch_sampler_of_lengths():
    """Batches of a number of tokens: each has another number of samples, padded and transposed."""
    lengths = [3, 3, 5, 8, 8, 8, 2, 9, 9]
    texts = [torch.randint(0, 10, (n,)) for n in lengths]
    batches = DataLoader(texts, batch_sampler=[[0, 1, 6], [2], [3, 4, 5], [7, 8]], collate_fn=nn.utils.rnn.pad_sequence)
    embed, rnn = nn.Embedding(10, 4), nn.LSTM(4, 4)
    model = nn.ModuleDict({"embed": embed, "rnn": rnn})
    optimizer = sgd(model)
    for ids in batches:  # (time, batch)
        rnn(embed(ids))[0].sum().backward()
        optimizer.step()
    return truth(9, steps=4, epochs=1)


@loop()
def transposed_transformer():
    model = nn.Transformer(8, 2, 1, 1, 16)
    optimizer = sgd(model)
    for x, in DataLoader(TensorDataset(torch.randn(20, 6, 8)), batch_size=8):
        x = x.transpose(0, 1)
        model(x, x).sum().backward()
        optimizer.step()
    return truth(20, steps=3, epochs=1)


@loop()
def transposed_without_loader():
    model = nn.GRU(4, 4)
    optimizer = sgd(model)
    for _ in range(3):
        model(torch.randn(11, 5, 4))[0].sum().backward()
        optimizer.step()
    return truth(15, steps=3)


@loop()
def packed_sequences():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(3, 4, batch_first=True)

        def forward(self, packed):
            return self.rnn(packed)[0].data.sum()

    model = Tagger()
    optimizer = sgd(model)
    texts = [torch.randn(n % 5 + 1, 3) for n in range(13)]
    for packed in DataLoader(texts, batch_size=4, collate_fn=lambda s: nn.utils.rnn.pack_sequence(s, enforce_sorted=False)):
        model(packed).backward()
        optimizer.step()
    model(nn.utils.rnn.pack_sequence(texts, enforce_sorted=False)).backward()
    optimizer.step()
    return truth(26, steps=5, epochs=1, inside=4)


@loop()
def sequences_in_one_row():
    """As collators for flash attention do: no padding, a batch of one."""
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 1))
    optimizer = sgd(model)
    texts = [torch.randint(0, 10, (n % 5 + 1,)) for n in range(20)]
    for row in DataLoader(texts, batch_size=8, collate_fn=lambda s: torch.cat(s)[None]):
        model(row).sum().backward()
        optimizer.step()
    return truth(20, steps=3, epochs=1)


class Takes(nn.Module):
    """A model whose arguments are of any kind."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, batch=None, scale=1.0, x=None):
        if x is None:
            x = batch["x"] if isinstance(batch, dict) else batch.x
        return self.layer(x) * scale


@dataclasses.dataclass
class Data:
    names: list
    x: torch.Tensor


class Opaque:
    def __init__(self, x):
        self.size, self.x = None, x


def of_kind(make, call=None):
    model = Takes()
    optimizer = sgd(model)
    for batch in DataLoader(torch.randn(20, 4), batch_size=8, collate_fn=lambda rows: make(torch.stack(rows))):
        (call(model, batch) if call else model(batch)).sum().backward()
        optimizer.step()
    optimizer.zero_grad()
    for batch in (make(torch.randn(3, 4)), make(torch.randn(2, 4))):  # without a loader
        (call(model, batch) if call else model(batch)).sum().backward()
        optimizer.step()
    return truth(25, steps=5, epochs=1, inside=3)


@loop()
def dicts():
    return of_kind(lambda x: {"id": "a", "x": x})


@loop()
def namedtuples():
    return of_kind(lambda x: Batch(None, x, None))


@loop()
def dataclass_batches():
    return of_kind(lambda x: Data(["a"], x))


@loop()
def objects():
    return of_kind(Opaque)


@loop()
def keyword_arguments():
    return of_kind(lambda x: x, lambda model, x: model(scale=2.0, x=x))


@loop()
def sampler_of_batches():
    """The sampler gives lists, the data set makes the batch, transposed."""
    class Transposed(torch.utils.data.Dataset):
        def __len__(self):
            return 20

        def __getitem__(self, rows):
            return torch.randn(5, len(rows), 4)

    model = nn.GRU(4, 4)
    optimizer = sgd(model)
    sampler = torch.utils.data.BatchSampler(range(20), 8, False)
    for x in DataLoader(Transposed(), sampler=sampler, batch_size=None):
        model(x)[0].sum().backward()
        optimizer.step()
    return truth(20, steps=3, epochs=1)


@loop()
def transposed_stream():
    model = nn.GRU(4, 4)
    optimizer = sgd(model)

    class Rows4(IterableDataset):
        def __iter__(self):
            return (torch.randn(30, 4) for _ in range(21))

    for x in DataLoader(Rows4(), batch_size=8, collate_fn=lambda rows: torch.stack(rows, 1)):
        model(x)[0].sum().backward()
        optimizer.step()
    return truth(21, steps=3, epochs=1)
