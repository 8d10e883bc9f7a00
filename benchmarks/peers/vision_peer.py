"""ResNet18 under PyTorch's DDP or FSDP2 over gloo, one thread a process: for compare_vision.

  torchrun ... vision_peer.py time --engine ddp|fsdp2 --batch N --width N --steps N       a JSON object like bench_vision's
  torchrun ... vision_peer.py case CASE_DIR OUT.safetensors       a reference case (tests/data/vision) under DDP, with each
                                                                  process's own batch statistics, as resnet18 --local-statistics
"""
import argparse, importlib.util, json, os, time

import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
spec = importlib.util.spec_from_file_location("make_vision", os.path.join(root, "tests/data/make_vision.py"))
vision = importlib.util.module_from_spec(spec)
spec.loader.exec_module(vision)


def time_steps(a):
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = vision.ResNet18(a.width, 10, torch.nn.BatchNorm2d)
    if a.engine == "ddp":
        model = DistributedDataParallel(model)
    else:
        from torch.distributed.fsdp import fully_shard
        for layer in (model.layer1, model.layer2, model.layer3, model.layer4):
            fully_shard(layer)
        fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    pictures, labels = torch.randn(a.batch, 3, 32, 32).chunk(size)[rank], torch.randint(10, (a.batch,)).chunk(size)[rank]
    seconds, losses = [], []
    for _ in range(a.steps):
        dist.barrier()
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        dist.barrier()
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
    if rank == 0:
        print(json.dumps({"step_s": seconds, "losses": losses}), flush=True)


def gather(rows):
    parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, rows.contiguous())
    return torch.cat(parts)


def run_case(a):
    from safetensors.torch import load_file, save_file
    rank, size = dist.get_rank(), dist.get_world_size()
    with open(os.path.join(a.case, "case.json")) as file:
        case = json.load(file)
    assert case["batch"] % size == 0, "DDP averages over processes: all need as many rows"
    inner = vision.model_of(case)
    inner.load_state_dict(load_file(os.path.join(a.case, "model", "model.safetensors")))
    model = DistributedDataParallel(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=case["lr"], momentum=case["momentum"], weight_decay=case["weight_decay"], nesterov=case["nesterov"])
    pictures, labels = vision.pictures_of(os.path.join(a.case, "data_batch_1.bin"), case)
    own, out, losses, norms = case["batch"] // size, {}, [], []
    for step in range(case["steps"]):
        begin = step * case["batch"] + rank * own
        optimizer.zero_grad()
        logits = model(pictures[begin:begin + own])
        loss = F.cross_entropy(logits, labels[begin:begin + own])
        loss.backward()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item() / size)
        if step == 0:
            out |= {"logits": gather(logits.detach()), "loss": total / size}
            out |= {f"grad.{name}": p.grad.clone() for name, p in inner.named_parameters()}
        norms.append(sum(p.grad.double().square().sum() for p in inner.parameters()).sqrt().item())
        optimizer.step()
    model.eval()
    with torch.no_grad():
        x, labels = vision.pictures_of(os.path.join(a.case, "test_batch.bin"), case)
        out["test.logits"] = model(x)  # with the main process's running statistics
        out["test.loss"] = F.cross_entropy(out["test.logits"], labels)
    out |= {f"final.{name}": t.clone() for name, t in inner.state_dict().items()}
    out |= {"step.loss": torch.tensor(losses, dtype=torch.float64), "step.grad_norm": torch.tensor(norms, dtype=torch.float64)}
    if rank == 0:
        save_file({name: t.contiguous() for name, t in out.items()}, a.out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    timing, case = commands.add_parser("time"), commands.add_parser("case")
    timing.add_argument("--engine", choices=["ddp", "fsdp2"], default="ddp")
    for name, default in (("batch", 64), ("width", 64), ("steps", 8)):
        timing.add_argument("--" + name, type=int, default=default)
    case.add_argument("case")
    case.add_argument("out")
    a = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    run_case(a) if a.command == "case" else time_steps(a)
    dist.destroy_process_group()
