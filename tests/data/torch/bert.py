"""Trains a small BERT to fill in masked words: a program that knows nothing of nrg. Takes the number of steps."""
import math
import sys

import torch
from torch import nn


class Embeddings(nn.Module):
    def __init__(self, words, width, length):
        super().__init__()
        self.word_embeddings = nn.Embedding(words, width)
        self.position_embeddings = nn.Embedding(length, width)
        self.LayerNorm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, input_ids):
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        return self.dropout(self.LayerNorm(self.word_embeddings(input_ids) + self.position_embeddings(positions)))


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, hidden, attention_mask=None):
        def split(x):
            return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

        q, k, v = split(self.query(hidden)), split(self.key(hidden)), split(self.value(hidden))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, None, :] == 0, -1e9)
        mixed = (self.dropout(scores.softmax(-1)) @ v).transpose(1, 2).flatten(2)
        return self.output(mixed)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.norm1 = nn.LayerNorm(width)
        self.intermediate = nn.Linear(width, 4 * width)
        self.output = nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, hidden, attention_mask=None):
        hidden = self.norm1(hidden + self.attention(hidden, attention_mask=attention_mask))
        return self.norm2(hidden + self.output(nn.functional.gelu(self.intermediate(hidden))))


class Bert(nn.Module):
    def __init__(self, words=1000, width=128, heads=4, layers=4, length=64):
        super().__init__()
        self.embeddings = Embeddings(words, width, length)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, input_ids, attention_mask=None, labels=None):
        hidden = self.embeddings(input_ids)
        for layer in self.layers:
            hidden = layer(hidden, attention_mask=attention_mask)
        logits = self.head(hidden)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()) if labels is not None else None
        return {"loss": loss, "logits": logits}


def main():
    torch.manual_seed(0)
    model = Bert()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model.train()
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 4):
        ids = torch.randint(0, 1000, (4, 64))
        out = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids)
        out["loss"].backward()
        optimizer.step()
        optimizer.zero_grad()
    print("loss %.6f" % out["loss"].item())


if __name__ == "__main__":
    main()
