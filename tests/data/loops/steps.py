"""What is in a step: several models, optimizers, passes; loops without a DataLoader; several processes."""
import os
import tempfile
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from common import data, evaluate, fork, loop, loss_of, net, sgd, train, truth


@loop()
def without_loader():
    model, x, y = net(), torch.randn(70, 4), torch.randn(70, 1)
    optimizer = sgd(model)
    for i in range(0, 70, 16):
        loss_of(model, x[i:i + 16], y[i:i + 16]).backward()
        optimizer.step()
    return truth(70, steps=5)


@loop()
def accumulation_without_loader():
    model = net()
    optimizer = sgd(model)
    for i in range(8):
        loss_of(model, torch.randn(4, 4), torch.randn(4, 1)).backward()
        if i % 4 == 3:
            optimizer.step()
    return truth(32, steps=2)


@loop()
def predictions_without_loader():
    model = net().eval()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(7, 4))
    return truth(other=21)


@loop()
def predictions_with_loader():
    model = net().eval()
    with torch.inference_mode():
        for x, _ in data(70):
            model(x)
    return truth(0, 70, evaluations=1)


@loop()
def adversarial():
    """Two models, two optimizers, four passes per batch, three of them of the first model."""
    real, fake = net(), nn.Linear(2, 4)
    first, second = sgd(real), torch.optim.Adam(fake.parameters())
    for x, _ in data(70):
        first.zero_grad()
        real(x).mean().backward()
        made = fake(torch.randn(len(x), 2))
        real(made.detach()).mean().backward()
        first.step()
        second.zero_grad()
        real(made).mean().backward()
        second.step()
    return truth(70, steps=5, epochs=1)


@loop()
def two_optimizers():
    """As with Muon: one for matrices, one for the rest."""
    model = net()
    optimizers = [torch.optim.SGD([p for p in model.parameters() if (p.dim() == 2) == two], 1e-3) for two in (True, False)]
    for _ in range(2):
        for x, y in data(70):
            loss_of(model, x, y).backward()
            for optimizer in optimizers:
                optimizer.step()
    return truth(140, steps=10, epochs=2)


@loop()
def two_optimizers_without_loader():
    model = net()
    optimizers = [torch.optim.SGD([p for p in model.parameters() if (p.dim() == 2) == two], 1e-3) for two in (True, False)]
    for _ in range(5):
        loss_of(model, torch.randn(4, 4), torch.randn(4, 1)).backward()
        for optimizer in optimizers:
            optimizer.step()
    return truth(20, steps=5)


@loop()
def distillation():
    """The teacher, frozen, is called first."""
    teacher, student = net().eval(), net()
    optimizer = sgd(student)
    for _ in range(2):
        for x, _ in data(70):
            with torch.no_grad():
                soft = teacher(x)
            loss_of(student, x, soft).backward()
            optimizer.step()
        evaluate(student, data(40))
    return truth(140, 80, 10, 2, 2)


@loop()
def moving_average():
    """A copy of the model, which nobody trains, is evaluated."""
    model = net()
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = sgd(model)
    for _ in range(2):
        for x, y in data(70):
            loss_of(model, x, y).backward()
            optimizer.step()
            average.update_parameters(model)
        evaluate(average, data(40))
    return truth(140, 80, 10, 2, 2)


@loop()
def contrastive():
    """Two views of each batch, in two passes, for one loss; evaluation before any training."""
    model = net()
    optimizer = sgd(model)
    evaluate(model, data(24))
    for x, _ in data(70):
        (model(x) - model(x + 0.1)).square().mean().backward()
        optimizer.step()
    for _ in range(3):  # without a loader
        x = torch.randn(5, 4)
        (model(x) - model(x + 0.1)).square().mean().backward()
        optimizer.step()
    return truth(85, 24, 8, 1, 1, inside=5)


@loop()
def maml():
    """Inner steps by hand: passes and gradients on half of the batch, then the outer loss on the other half."""
    model = nn.Linear(4, 1)
    optimizer = sgd(model)
    for x, y in data(64):
        half = len(x) // 2
        inner = loss_of(model, x[:half], y[:half])
        weight, = torch.autograd.grad(inner, [model.weight], create_graph=True)
        (loss_of(model, x[half:], y[half:]) + weight.square().sum()).backward()
        optimizer.step()
    return truth(64, steps=4, epochs=1)


@loop()
def lbfgs():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        return loss

    for x, y in data(40):
        optimizer.step(closure)
    x, y = torch.randn(9, 4), torch.randn(9, 1)
    optimizer.step(closure)
    return truth(49, steps=4, epochs=1, inside=3)


@loop()
def folds():
    """Models one after the other, all of them kept; the second half without a loader."""
    kept = []
    for _ in range(2):
        model = net()
        optimizer = sgd(model)
        kept.append((model, optimizer))
        train(model, optimizer, data(40))
        evaluate(model, data(20))
    for _ in range(2):
        model = net()
        optimizer = sgd(model)
        kept.append((model, optimizer))
        for _ in range(3):
            loss_of(model, torch.randn(5, 4), torch.randn(5, 1)).backward()
            optimizer.step()
    return truth(110, 40, 12, 2, 2, inside=6)


@loop()
def pseudo_labels():
    """The model labels each batch itself, without gradients, and is then trained with it."""
    model = net()
    optimizer = sgd(model)
    for x, _ in data(70):
        model.eval()
        with torch.no_grad():
            y = model(x)
        model.train()
        loss_of(model, x, y).backward()
        optimizer.step()
    return truth(70, steps=5, epochs=1, evaluations=1)


@loop()
def frozen_encoder_without_loader():
    encoder, model = nn.Linear(4, 4).eval(), net()
    optimizer = sgd(model)
    for _ in range(4):
        x = torch.randn(6, 4)
        with torch.no_grad():
            x = encoder(x)
        loss_of(model, x, torch.zeros(6, 1)).backward()
        optimizer.step()
    return truth(24, steps=4)


@loop()
def checkpointed():
    from torch.utils.checkpoint import checkpoint

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.last = net(), nn.Linear(1, 1)

        def forward(self, x):
            return self.last(checkpoint(self.inner, x, use_reentrant=False))

    model = Net()
    train(model, sgd(model), data(70))
    return truth(70, steps=5, epochs=1)


@loop()
def several_updates_per_batch():
    """As in reinforcement learning: each batch of experience is trained with three times."""
    model = net()
    optimizer = sgd(model)
    for x, y in data(48):
        for _ in range(3):
            loss_of(model, x, y).backward()
            optimizer.step()
    return truth(48, steps=9, epochs=1)


@loop()
def one_loss_of_several_batches():
    model = net()
    optimizer = sgd(model)
    losses = []
    for i, (x, y) in enumerate(data(128)):
        losses.append(loss_of(model, x, y))
        if i % 4 == 3:
            sum(losses).backward()
            optimizer.step()
            losses.clear()
    return truth(128, steps=2, epochs=1)


@loop()
def two_evaluations_with_one_model_each():
    """Two models without an optimizer, of which each batch passes both."""
    first, second = nn.Linear(4, 4).eval(), net().eval()
    with torch.no_grad():
        for _ in range(2):
            for x, _ in data(70):
                second(first(x))
    return truth(0, 140, evaluations=2)


@loop(hasattr(torch, "compile"))
def compiled():
    model = torch.compile(net(), backend="eager")
    optimizer = sgd(model)
    train(model, optimizer, data(70))
    evaluate(model, data(40))
    return truth(70, 40, 5, 1, 1)


@loop(hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"))
def scaler_that_skips():
    model = net()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for i, (x, y) in enumerate(data(70)):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(model, x, y)
        scaler.scale(loss * (float("inf") if i == 1 else 1.0)).backward()
        scaler.step(optimizer)
        scaler.update()
    return truth(70, steps=5, epochs=1)


@loop()
def dropout_in_evaluation():
    """Ten passes of each batch, in training mode, without gradients."""
    model = net()
    optimizer = sgd(model)
    train(model, optimizer, data(70))
    with torch.no_grad():
        for x, _ in data(40):
            torch.stack([model(x) for _ in range(10)]).std(0)
    return truth(70, 40, 5, 1, 1)


@loop()
def data_parallel():
    model = nn.DataParallel(net())
    optimizer = sgd(model)
    train(model, optimizer, data(70))
    evaluate(model, data(40))
    return truth(70, 40, 5, 1, 1)


def rank(number, meeting):
    torch.distributed.init_process_group("gloo", init_method="file://" + meeting, rank=number, world_size=2)
    model = nn.parallel.DistributedDataParallel(net())
    optimizer = sgd(model)
    batches = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    sampler = torch.utils.data.distributed.DistributedSampler(batches, 2, number)
    for _ in range(2):
        train(model, optimizer, DataLoader(batches, batch_size=8, sampler=sampler))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


@loop()
def distributed():
    """Two processes, each with half of the samples."""
    meeting = os.path.join(tempfile.mkdtemp(), "meeting")
    pids = [fork(lambda number=number: rank(number, meeting)) for number in range(2)]
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0
    return dict(truth(128, steps=16, epochs=4), pids=pids)


@loop()
def trained_in_evaluation_mode():
    """Nobody switches back to training mode. Until the first step() it looks like an evaluation, which has no samples then."""
    model = net()
    optimizer = sgd(model)
    for _ in range(3):
        for x, y in data(70):
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for x, _ in data(40):
                model(x)
    return truth(210, 120, 15, 3, 3 + 1)


@loop()
def trained_in_evaluation_mode_without_loader():
    model = net().eval()
    optimizer = sgd(model)
    for _ in range(5):
        loss_of(model, torch.randn(16, 4), torch.randn(16, 1)).backward()
        optimizer.step()
    return truth(80, steps=5)


@loop()
def optimizer_of_another_thread():
    model = net()
    optimizer = sgd(model)
    thread = threading.Thread(target=train, args=(model, optimizer, data(70)))
    thread.start()
    thread.join()
    return truth(70, steps=5, epochs=1, evaluations=1)


@loop()
def attacks():
    """An evaluation with gradients, of the inputs, and without a step."""
    model = net()
    train(model, sgd(model), data(70))
    model.eval()
    for x, y in data(40):
        loss_of(model, x.requires_grad_(), y).backward()
        model(x + x.grad.sign())
    return truth(70, 40, 5, 1, 1)


@loop()
def evaluations_by_hand():
    """They have no span of their own, and must not divide the energy of the whole program."""
    model = net()
    optimizer = sgd(model)
    for i in range(6):
        if i % 3 == 0:
            with torch.no_grad():
                model(torch.randn(16, 4))
        loss_of(model, torch.randn(16, 4), torch.randn(16, 1)).backward()
        optimizer.step()
    return truth(96, steps=6)
