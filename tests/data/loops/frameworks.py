"""Loops of Accelerate, of Hugging Face's Trainer and of Lightning, where they are installed."""
import collections
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

from common import Stream, data, evaluate, loop, loss_of, net, sgd, train, truth

try:
    import accelerate
except ImportError:
    accelerate = None
try:
    import transformers
except ImportError:
    transformers = None
try:
    import lightning.pytorch as pl
except ImportError:
    pl = None

SEEN = collections.Counter()  # samples that a Trainer's model was given, by its mode


@loop(accelerate)
def accelerate_loop():
    tool = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = net()
    model, optimizer, batches, held = tool.prepare(model, sgd(model), data(128), data(40))
    for _ in range(2):
        for x, y in batches:
            with tool.accumulate(model):
                tool.backward(loss_of(model, x, y))
                optimizer.step()
                optimizer.zero_grad()
        evaluate(model, held)
    return truth(256, 80, 8, 2, 2)


@loop(accelerate)
def accelerate_adversarial():
    """One batch ahead, and several passes, backward passes and optimizers per batch."""
    tool = accelerate.Accelerator(cpu=True)
    real, fake = net(), nn.Linear(2, 4)
    first, second = sgd(real), torch.optim.Adam(fake.parameters())
    real, fake, first, second, batches = tool.prepare(real, fake, first, second, data(70))
    for x, _ in batches:
        tool.backward(real(x).mean() + real(x + 1).mean())
        first.step()
        tool.backward(real(fake(torch.randn(len(x), 2))).mean())
        second.step()
    return truth(70, steps=5, epochs=1)


@loop(accelerate)
def accelerate_single_batches():
    """Each loader has one batch, so that it has ended before a model is called."""
    tool = accelerate.Accelerator(cpu=True)
    model = net()
    model, optimizer, batches, held = tool.prepare(model, sgd(model), data(16), data(9))
    for _ in range(3):
        train(model, optimizer, batches)
        evaluate(model, held)
    return truth(48, 27, 3, 3, 3)


@loop(accelerate)
def accelerate_skips():
    tool = accelerate.Accelerator(cpu=True)
    model = net()
    model, optimizer, batches = tool.prepare(model, sgd(model), data(70))
    train(model, optimizer, tool.skip_first_batches(batches, 2))
    return truth(38, steps=3, epochs=1)


class Rows(torch.utils.data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return {"x": torch.full((4,), float(i)), "labels": torch.zeros(1)}


def trainer(n=640, held=128, callbacks=(), out=None, **options):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x, labels=None):
            SEEN[self.training] += len(x)
            out = self.layer(x)
            return {"loss": (out - labels).square().mean(), "logits": out}

    settings = dict(output_dir=out or tempfile.mkdtemp(), per_device_train_batch_size=16, report_to="none", disable_tqdm=True, save_strategy="no",
                    use_cpu=True, learning_rate=1e-4)
    settings.update(options)
    return transformers.Trainer(Net(), transformers.TrainingArguments(**settings), train_dataset=Rows(n), eval_dataset=Rows(held),
                                callbacks=list(callbacks))


@loop(transformers, accelerate)
def trainer_with_evaluations():
    trainer(max_steps=40, eval_strategy="steps", eval_steps=20).train()
    return truth(640, 256, 40, 1, 2)


@loop(transformers, accelerate)
def trainer_epochs():
    made = trainer(n=70, held=40, num_train_epochs=3, eval_strategy="epoch", eval_on_start=True)
    made.train()
    made.evaluate()
    made.predict(Rows(20))
    return truth(210, 220, 15, 3, 6)


@loop(transformers, accelerate)
def trainer_accumulates():
    trainer(n=160, held=40, num_train_epochs=2, gradient_accumulation_steps=4, eval_strategy="epoch").train()
    return truth(320, 80, 6, 2, 2)


@loop(transformers, accelerate)
def trainer_small_sets():
    """All batches of an epoch are fetched before its only step, and the evaluation has one batch."""
    made = trainer(n=40, held=40, num_train_epochs=2, gradient_accumulation_steps=8, eval_strategy="epoch", per_device_eval_batch_size=64)
    made.train()
    made.predict(Rows(5))
    return truth(80, 85, 2, 2, 3)


@loop(transformers, accelerate)
def trainer_resumes():
    """Stopped in the middle of an epoch; the second goes on there."""
    out = tempfile.mkdtemp()
    trainer(n=160, out=out, max_steps=13, save_strategy="steps", save_steps=13).train()
    trainer(n=160, out=out, max_steps=25).train(resume_from_checkpoint=True)
    return truth(400, steps=25, epochs=4)


@loop(transformers, accelerate)
def trainer_streams():
    """A stream, read by a worker; then on from a checkpoint: what was seen is fetched and dropped."""
    class Endless(IterableDataset):
        def __iter__(self):
            return (Rows(70)[i] for i in range(70))

    out = tempfile.mkdtemp()
    for steps, resume in ((3, False), (5, True)):
        made = trainer(held=40, out=out, max_steps=steps, save_strategy="steps", save_steps=3, eval_strategy="steps", eval_steps=steps,
                       dataloader_num_workers=1)
        made.train_dataset = Endless()
        made.train(resume_from_checkpoint=resume)
    return truth(SEEN[True], SEEN[False], 5, 2, 2)


if pl is not None:
    class Lit(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 8), nn.Linear(8, 1)

        def training_step(self, batch, i):
            x, y = batch
            return (self.two(self.one(x)) - y).square().mean()

        def validation_step(self, batch, i):
            x, y = batch
            self.log("v", (self.two(self.one(x)) - y).square().mean())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 1e-3)


def lightning_fit(batches, held=None, model=None, **options):
    options = dict(dict(max_epochs=2, logger=False, enable_progress_bar=False, enable_checkpointing=False, enable_model_summary=False,
                        accelerator="cpu"), **options)
    made = pl.Trainer(**options)
    made.fit(model or Lit(), batches, held)
    return made


@loop(pl)
def lightning_validates():
    """A check of two batches before, then two epochs."""
    lightning_fit(data(70), data(40))
    return truth(140, 112, 10, 2, 3)


@loop(pl)
def lightning_validates_inside():
    lightning_fit(data(128), data(40), val_check_interval=4, num_sanity_val_steps=0)
    return truth(256, 160, 16, 2, 4)


@loop(pl)
def lightning_accumulates():
    lightning_fit(data(128), accumulate_grad_batches=4)
    return truth(256, steps=4, epochs=2)


@loop(pl)
def lightning_streams():
    lightning_fit(DataLoader(Stream(70), batch_size=16), DataLoader(Stream(40), batch_size=16), num_sanity_val_steps=0)
    return truth(140, 80, 10, 2, 2)


@loop(pl)
def lightning_limits():
    """Part of each loader, two loaders for validation, then a test and a prediction."""
    class Limited(Lit):
        def test_step(self, batch, i):
            self.two(self.one(batch[0]))

        def predict_step(self, batch, i):
            return self.two(self.one(batch[0]))

        def validation_step(self, batch, i, dataloader_idx=0):
            self.two(self.one(batch[0]))

    model = Limited()
    made = lightning_fit(data(640), [data(40), data(24)], model=model, limit_train_batches=5, num_sanity_val_steps=0)
    made.test(model, data(40), verbose=False)
    made.predict(model, data(24))
    return truth(160, 192, 10, 2, 6)


@loop(pl)
def lightning_adversarial():
    """Optimization by hand, with two optimizers."""
    class Gan(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.real, self.fake = net(), nn.Linear(2, 4)

        def training_step(self, batch, i):
            x, first, second = batch[0], *self.optimizers()
            first.zero_grad()
            self.manual_backward(self.real(x).mean() - self.real(self.fake(torch.randn(len(x), 2)).detach()).mean())
            first.step()
            second.zero_grad()
            self.manual_backward(self.real(self.fake(torch.randn(len(x), 2))).mean())
            second.step()

        def configure_optimizers(self):
            return [torch.optim.SGD(self.real.parameters(), 1e-3), torch.optim.SGD(self.fake.parameters(), 1e-3)]

    lightning_fit(data(70), model=Gan())
    return truth(140, steps=10, epochs=2)
