"""Loops over a DataLoader: epochs, evaluations, loaders of all kinds, ways to leave them."""
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

from common import Stream, data, evaluate, loop, loss_of, net, sgd, train, truth


@loop()
def plain():
    model = net()
    train(model, sgd(model), data(640))
    return truth(640, steps=40, epochs=1)


@loop()
def uneven_last_batch():
    model = net()
    train(model, sgd(model), data(70, shuffle=True))
    return truth(70, steps=5, epochs=1)


@loop()
def drop_last():
    model = net()
    train(model, sgd(model), data(70, drop_last=True))
    return truth(64, steps=4, epochs=1)


@loop()
def several_epochs_with_validation():
    model = net()
    optimizer = sgd(model)
    for _ in range(3):
        train(model, optimizer, data(70))
        evaluate(model, data(40))
    return truth(210, 120, 15, 3, 3)


@loop()
def evaluation_before_training():
    model = net()
    optimizer = sgd(model)
    evaluate(model, data(40))
    train(model, optimizer, data(64))
    return truth(64, 40, 4, 1, 1)


@loop()
def evaluation_inside_an_epoch():
    model = net()
    optimizer = sgd(model)
    for i, (x, y) in enumerate(data(128)):
        loss_of(model, x, y).backward()
        optimizer.step()
        if i % 4 == 3:
            evaluate(model, data(40))
    return truth(128, 80, 8, 1, 2)


@loop()
def evaluation_before_the_first_step_of_an_epoch():
    model = net()
    optimizer = sgd(model)
    for i, (x, y) in enumerate(data(64)):
        if i % 2 == 0:
            evaluate(model, data(40))
        loss_of(model, x, y).backward()
        optimizer.step()
    return truth(64, 80, 4, 1, 2)


@loop()
def gradient_accumulation():
    model = net()
    optimizer = sgd(model)
    for i, (x, y) in enumerate(data(128)):
        loss_of(model, x, y).backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    return truth(128, steps=2, epochs=1)


@loop()
def iterable_dataset():
    model = net()
    train(model, sgd(model), DataLoader(Stream(70), batch_size=16))
    return truth(70, steps=5, epochs=1)


@loop()
def iterable_dataset_that_makes_batches():
    class Batches(Stream):
        def __iter__(self):
            return ((torch.randn(n, 4), torch.randn(n, 1)) for n in (16, 16, 9))
    model = net()
    train(model, sgd(model), DataLoader(Batches(3), batch_size=None))
    return truth(41, steps=3, epochs=1)


@loop()
def workers():
    model = net()
    optimizer = sgd(model)
    for _ in range(2):
        train(model, optimizer, data(70, num_workers=2))
    return truth(140, steps=10, epochs=2)


@loop()
def workers_that_persist():
    model = net()
    optimizer = sgd(model)
    batches = data(70, num_workers=2, persistent_workers=True)
    for _ in range(2):
        train(model, optimizer, batches)
    for x, y in batches:
        loss_of(model, x, y).backward()
        optimizer.step()
        break
    train(model, optimizer, batches)
    return truth(226, steps=16, epochs=4)


@loop()
def breaks_early():
    model = net()
    optimizer = sgd(model)
    for _ in range(2):
        for i, (x, y) in enumerate(data(640)):
            loss_of(model, x, y).backward()
            optimizer.step()
            if i == 4:
                break
    return truth(160, steps=10, epochs=2)


@loop()
def exceptions():
    """The third batch does not fit into the model; the program goes on."""
    model = net()
    optimizer = sgd(model)
    for i, (x, y) in enumerate(data(80)):
        try:
            loss_of(model, x if i != 2 else x[:, :2], y).backward()
            optimizer.step()
        except RuntimeError:
            continue
    return truth(80, steps=5, epochs=1)


@loop()
def skipped_batches():
    """A program that goes on where it stopped skips what it has seen."""
    model = net()
    optimizer = sgd(model)
    for i, (x, y) in enumerate(data(70)):
        if i < 2:
            continue
        loss_of(model, x, y).backward()
        optimizer.step()
    return truth(38, steps=3, epochs=1)


@loop()
def nested_loaders():
    """For each batch of tasks an epoch over its examples."""
    model = net()
    optimizer = sgd(model)
    for _ in DataLoader(range(3), batch_size=1):
        train(model, optimizer, data(40))
    return truth(120, steps=9, epochs=3)


@loop()
def zipped_loaders():
    model = net()
    optimizer = sgd(model)
    for (x, y), (more, _) in zip(data(64), data(64)):
        (loss_of(model, x, y) + model(more).mean()).backward()
        optimizer.step()
    return truth(64, steps=4, epochs=1)


@loop()
def loaders_in_turns():
    """Several tasks: a step for a batch of each. Samples of the second were missing."""
    model = net()
    optimizer = sgd(model)
    iterators = [iter(data(48)), iter(data(24, batch_size=8))]
    for _ in range(3):
        for iterator in iterators:
            x, y = next(iterator)
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
    return truth(72, steps=6, epochs=2)


@loop()
def unlabelled_beside():
    """A second loader's batch in each step, begun first: the loader that is looped over counts."""
    model = net()
    optimizer = sgd(model)
    unlabelled = iter(data(224, batch_size=28))
    for x, y in data(64, batch_size=8):
        more, _ = next(unlabelled)
        optimizer.zero_grad()
        (loss_of(model, x, y) + model(more).mean()).backward()
        optimizer.step()
    return truth(64, steps=8, epochs=1)


@loop()
def iterator_without_end():
    """By the number of steps, with an iterator that is made anew when it has ended."""
    model = net()
    optimizer = sgd(model)
    batches = data(48)
    iterator = iter(batches)
    for _ in range(7):
        try:
            x, y = next(iterator)
        except StopIteration:
            iterator = iter(batches)
            x, y = next(iterator)
        loss_of(model, x, y).backward()
        optimizer.step()
    return truth(112, steps=7, epochs=3)


@loop()
def prefetcher():
    """One batch ahead, as programs for GPUs do; its iterator lives on."""
    class Ahead:
        def __init__(self, batches):
            self.batches = iter(batches)
            self.load()

        def load(self):
            self.next = next(self.batches, None)

        def take(self):
            taken = self.next
            self.load()
            return taken

    model = net()
    optimizer = sgd(model)
    kept = []
    for _ in range(2):
        ahead = Ahead(data(70))
        kept.append(ahead)
        batch = ahead.take()
        while batch is not None:
            loss_of(model, *batch).backward()
            optimizer.step()
            batch = ahead.take()
        evaluate(model, data(40))
    return truth(140, 80, 10, 2, 2)


@loop()
def cycled_loader():
    """The second round is not asked of the loader."""
    model = net()
    train(model, sgd(model), itertools.islice(itertools.cycle(data(48)), 7))
    return truth(112, steps=7, epochs=1, inside=3)


@loop()
def sliced_loader():
    model = net()
    optimizer = sgd(model)
    for _ in range(2):
        train(model, optimizer, itertools.islice(data(640), 5))
        evaluate(model, itertools.islice(data(640), 2))
    return truth(160, 64, 10, 2, 2)


@loop()
def model_in_the_collator():
    """Features are made while a batch is fetched."""
    features = nn.Linear(4, 4)

    def collate(rows):
        with torch.no_grad():
            return features(torch.stack([x for x, _ in rows])), torch.stack([y for _, y in rows])

    model = net()
    train(model, sgd(model), data(70, collate_fn=collate))
    return truth(70, steps=5, epochs=1)


@loop()
def loader_in_a_data_set():
    class Inner(IterableDataset):
        def __iter__(self):
            for x, y in data(70, batch_size=2):
                yield from zip(x, y)

    model = net()
    train(model, sgd(model), DataLoader(Inner(), batch_size=16))
    return truth(70, steps=5, epochs=1)


@loop()
def broken_off_and_again():
    """An exception ends the first epoch."""
    model = net()
    optimizer = sgd(model)
    try:
        for i, (x, y) in enumerate(data(80)):
            loss_of(model, x, y).backward()
            optimizer.step()
            if i == 2:
                raise KeyError("of the program")
    except KeyError:
        pass
    train(model, optimizer, data(32))
    evaluate(model, data(20))
    return truth(80, 20, 5, 2, 1)


@loop()
def generator_around_a_loader():
    def batches(n):
        for x, y in data(n, num_workers=1):
            yield x * 2, y

    model = net()
    optimizer = sgd(model)
    for _ in range(2):
        train(model, optimizer, batches(70))
        evaluate(model, batches(40))
    return truth(140, 80, 10, 2, 2)


@loop()
def batches_that_are_kept():
    """list(loader) is a round without a model. The samples of what follows are the arguments'; a validation with them is by hand."""
    model = net()
    optimizer = sgd(model)
    batches, held = list(data(70)), list(data(40))
    for _ in range(2):
        train(model, optimizer, batches)
        evaluate(model, held)
    return truth(140, steps=10)
