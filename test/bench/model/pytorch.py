"""The training step of train.ts with PyTorch on one thread: prints milliseconds of CPU a step."""

import json
import sys
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(1)

T, B, I, H, K = 16, 64, 64, 32, 2
steps = int(sys.argv[1])

lstm = torch.nn.LSTM(I, H, num_layers=2)
heads = torch.nn.Linear(H, K)
parameters = [*lstm.parameters(), *heads.parameters()]
adam = torch.optim.Adam(parameters, lr=1e-3)
quantiles = torch.tensor([0.5, 0.9])
inputs = torch.rand(T, B, I) * 2 - 1
targets = torch.rand(T, B, 1) * 2 - 1
weights = torch.ones(T, B, 1)
initial = (torch.rand(2, B, H) * 2 - 1, torch.rand(2, B, H) * 2 - 1)


def step():
    adam.zero_grad(set_to_none=True)
    h, _ = lstm(inputs, initial)
    e = targets - heads(h)
    loss = (torch.maximum(quantiles * e, (quantiles - 1) * e) * weights).sum() / weights.sum()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    adam.step()
    return loss.item()


for _ in range(steps):  # warm up
    step()
start = time.process_time()
for _ in range(steps):
    step()
print(json.dumps({"version": torch.__version__, "ms": (time.process_time() - start) * 1000 / steps}))
