import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
x = torch.randn(1000, 2)
y = (x[:, 0] * x[:, 1] > 0).long()
train, test = TensorDataset(x[:960], y[:960]), TensorDataset(x[960:], y[960:])
sampler = DistributedSampler(train, shuffle=False)
loader = DataLoader(train, batch_size=40 // size, sampler=sampler)

net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
model = DistributedDataParallel(net)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.0)
for epoch in range(5):
    sampler.set_epoch(epoch)
    total = torch.zeros(1)
    for step, (data, target) in enumerate(loader):
        last = step % 2 == 1
        model.require_backward_grad_sync = last
        loss = criterion(model(data), target)
        (loss / 2).backward()
        total += loss.detach()
        if last:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    dist.all_reduce(total)
    if rank == 0:
        print(f"epoch {epoch}: loss {total.item() / len(loader) / size:.4f}")
with torch.no_grad():
    data, target = test[rank::size]
    hits = (net(data).argmax(1) == target).sum()
    dist.all_reduce(hits)
if rank == 0:
    print(f"{hits.item()} of {len(test)} right")
    torch.save(net.state_dict(), "model.pt")
dist.destroy_process_group()
