#!/usr/bin/env python3
"""One training benchmark of an existing system on CPU (gloo), the same work for every engine.

  python3 -m torch.distributed.run --nproc_per_node=2 bench_peer.py --engine fsdp2 --model 110M --dtype bf16

Rank 0 prints one JSON line (and appends it to --out). Everything that must be equal between engines
(weights: seed 0; tokens: splitmix64 of the global token index, so independent of the rank count) is set here.
"""
import argparse, contextlib, ctypes, gc, json, os, statistics, sys, time

ap = argparse.ArgumentParser()
ap.add_argument("--engine", required=True,
                choices=["ddp", "zro", "fsdp2", "deepspeed0", "deepspeed1", "deepspeed2", "deepspeed3"])
ap.add_argument("--model", default="tiny")
ap.add_argument("--dtype", default="fp32", choices=["fp32", "bf16"])
ap.add_argument("--seq", type=int, default=256)
ap.add_argument("--batch", type=int, default=2, help="sequences per rank and micro-step")
ap.add_argument("--accum", type=int, default=1)
ap.add_argument("--steps", type=int, default=8)
ap.add_argument("--warmup", type=int, default=2)
ap.add_argument("--lora", action="store_true", help="PEFT rank 8 on q_proj,v_proj")
ap.add_argument("--lr", type=float, default=1e-3)
ap.add_argument("--wd", type=float, default=0.1)
ap.add_argument("--decay-matrices", action="store_true", help="weight decay on tensors of two or more dimensions alone (ddp, fsdp2)")
ap.add_argument("--matmul", default="highest", choices=["highest", "high", "medium"],
                help="torch.set_float32_matmul_precision: on AMD 'highest' stays in MKL's slow path, 'medium' goes to oneDNN")
ap.add_argument("--bucket", type=float, default=0, help="DeepSpeed bucket sizes in elements instead of its defaults")
ap.add_argument("--timeout-s", type=int, default=900)
ap.add_argument("--tag", default="")
ap.add_argument("--out", default="", help="append the JSON line to this file")
ap.add_argument("--save-init", default="", help="write the initial model as a directory (config.json, model.safetensors) and leave")
a = ap.parse_args()

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import numpy as np, torch, torch.distributed as dist
from datetime import timedelta
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
torch.set_float32_matmul_precision(a.matmul)

#          hidden layers heads kv  inter  vocab  ctx
PRESETS = {
    "tiny": (64, 2, 4, 2, 176, 512, 512),
    "15M": (288, 6, 6, 6, 768, 32000, 1024),
    "110M": (768, 12, 12, 4, 2048, 32000, 2048),
    "tinyllama": (2048, 22, 32, 4, 5632, 32000, 2048),
}


def build_model():
    from transformers import LlamaConfig, LlamaForCausalLM
    h, l, nh, kv, inter, v, ctx = PRESETS[a.model]
    cfg = LlamaConfig(hidden_size=h, num_hidden_layers=l, num_attention_heads=nh, num_key_value_heads=kv,
                      intermediate_size=inter, vocab_size=v, max_position_embeddings=ctx, rms_norm_eps=1e-5,
                      tie_word_embeddings=False, use_cache=False, attn_implementation="sdpa")
    torch.manual_seed(0)
    m = LlamaForCausalLM(cfg)
    if a.lora:
        from peft import LoraConfig, get_peft_model
        if a.dtype == "bf16":
            m = m.to(torch.bfloat16)      # frozen base in bf16; adapters are kept in fp32 by peft
        torch.manual_seed(1)
        m = get_peft_model(m, LoraConfig(r=8, lora_alpha=16, lora_dropout=0.0, target_modules=["q_proj", "v_proj"],
                                         bias="none", task_type="CAUSAL_LM"))
    m.train()
    return m, v


def decay_groups(params):
    """What the optimizer gets: one group, or one with decay and one without (DTensors keep their dimensions)."""
    if not a.decay_matrices:
        return params
    return [{"params": [p for p in params if p.dim() >= 2]}, {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0}]


def splitmix64(i):
    with np.errstate(over="ignore"):
        z = i.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def tokens(step, micro, rank, world, vocab):
    """Global sample index g; token t of it = splitmix64(g*seq+t) mod min(vocab,512): learnable down to ln 512."""
    g0 = ((step * a.accum + micro) * world + rank) * a.batch
    idx = np.arange(g0 * a.seq, (g0 + a.batch) * a.seq, dtype=np.uint64)
    return torch.from_numpy((splitmix64(idx) % np.uint64(min(vocab, 512))).astype(np.int64)).view(a.batch, a.seq)


def vm(key):
    for line in open("/proc/self/status"):
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024


def pss():
    try:
        for line in open("/proc/self/smaps_rollup"):
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def local(t):
    return t.to_local() if hasattr(t, "to_local") else t


def nb(ts):
    """Bytes of distinct tensors (by address and length), DTensors by their local part."""
    seen = {}
    for t in ts:
        if torch.is_tensor(t) and t.device.type == "cpu":
            t = local(t)
            if t.numel():
                seen[(t.data_ptr(), t.numel())] = t.numel() * t.element_size()
    return sum(seen.values())


def live_bytes():
    """All storages that Python can see (model states, buckets, saved buffers), each counted once."""
    seen = {}
    for o in gc.get_objects():
        try:
            if isinstance(o, torch.Tensor) and o.device.type == "cpu":
                s = local(o).untyped_storage()
                seen[s.data_ptr()] = s.nbytes()
        except Exception:
            pass
    return sum(seen.values())


def flat(x):
    if torch.is_tensor(x):
        yield x
    elif isinstance(x, dict):
        for v in x.values():
            yield from flat(v)
    elif isinstance(x, (list, tuple, set)):
        for v in x:
            yield from flat(v)


def state_bytes(params, opt, ds):
    """params / grads / optimizer (fp32 masters are counted as optimizer) held by this rank after backward."""
    part = [getattr(p, "ds_tensor", None) for p in params]
    p_b = nb(params) + nb([t for t in part if t is not None])
    g_b = nb([p.grad for p in params if p.grad is not None])
    base = opt
    if ds is not None:
        z = ds.optimizer
        base = getattr(z, "optimizer", z)
        names = [n for n in ("averaged_gradients", "all_grad_tensors", "fp32_groups_gradients_flat", "fp32_groups_gradients") if hasattr(z, n)]
        if ds.zero_optimization_stage() == 3:
            g = nb([x for x in flat(getattr(z, "_DeepSpeedZeroOptimizer_Stage3__param_id_to_grad_partition", {}))])
        elif names:
            g = max(nb(list(flat(getattr(z, n)))) for n in names)
        else:
            g = 0
        g_b += g
    if hasattr(base, "optim"):          # ZeroRedundancyOptimizer
        base = base.optim
    groups = [p for gr in base.param_groups for p in gr["params"]]
    known = {id(p) for p in params} | {local(p).data_ptr() for p in params}
    master = [p for p in groups if id(p) not in known and local(p).data_ptr() not in known]
    o_b = nb(list(flat(list(base.state.values())))) + nb(master)
    return {"params": p_b, "grads": g_b, "optim": o_b, "sum": p_b + g_b + o_b}


def main():
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    versions = {"torch": torch.__version__}
    import transformers
    versions["transformers"] = transformers.__version__
    model, vocab = build_model()
    if a.save_init:
        if rank == 0:
            model.save_pretrained(a.save_init)
        return
    n_all = sum(p.numel() for p in model.parameters())
    n_train = sum(p.numel() for p in model.parameters() if p.requires_grad)
    dist.init_process_group("gloo", timeout=timedelta(seconds=a.timeout_s))
    train = [p for p in model.parameters() if p.requires_grad]
    adam = dict(lr=a.lr, betas=(0.9, 0.95), eps=1e-8, weight_decay=a.wd)
    ds, opt, opt_name = None, None, "torch AdamW(fused)"
    autocast = contextlib.nullcontext
    if a.dtype == "bf16" and not a.engine.startswith("deepspeed") and a.engine != "fsdp2":
        autocast = lambda: torch.autocast("cpu", dtype=torch.bfloat16)

    if a.engine in ("ddp", "zro"):
        from torch.nn.parallel import DistributedDataParallel as DDP
        net = DDP(model, gradient_as_bucket_view=True)
        if a.engine == "ddp":
            opt = torch.optim.AdamW(decay_groups(train), fused=True, **adam)
        else:
            from torch.distributed.optim import ZeroRedundancyOptimizer
            opt = ZeroRedundancyOptimizer(train, torch.optim.AdamW, parameters_as_bucket_view=True, fused=True, **adam)
    elif a.engine == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        kw = dict(mesh=init_device_mesh("cpu", (world,)))
        if a.dtype == "bf16":
            kw["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        core = model.base_model.model if a.lora else model
        for layer in core.model.layers:
            fully_shard(layer, **kw)
        fully_shard(model, **kw)
        net = model
        train = [p for p in model.parameters() if p.requires_grad]
        opt = torch.optim.AdamW(decay_groups(train), fused=True, **adam)
    else:
        import deepspeed
        from deepspeed.ops.adam import DeepSpeedCPUAdam
        versions["deepspeed"] = deepspeed.__version__
        deepspeed.init_distributed(dist_backend="gloo", timeout=timedelta(seconds=a.timeout_s), verbose=False)
        stage = int(a.engine[-1])
        cfg = {"train_micro_batch_size_per_gpu": a.batch, "gradient_accumulation_steps": a.accum,
               "zero_optimization": {"stage": stage}, "bf16": {"enabled": a.dtype == "bf16"},
               "gradient_clipping": 0.0,      # DeepSpeed clips to 1.0 when this is left out; the others do not clip
               "zero_allow_untested_optimizer": True, "wall_clock_breakdown": False, "steps_per_print": 10 ** 9}
        if a.bucket:
            n = int(a.bucket)
            cfg["zero_optimization"].update(reduce_bucket_size=n, allgather_bucket_size=n)
            if stage == 3:
                cfg["zero_optimization"].update(stage3_prefetch_bucket_size=n, stage3_max_live_parameters=4 * n,
                                                stage3_max_reuse_distance=n)
        cpu_adam = DeepSpeedCPUAdam(train, adamw_mode=True, **adam)
        ds, _, _, _ = deepspeed.initialize(model=model, optimizer=cpu_adam, config=cfg, dist_init_required=False)
        net, opt_name = ds, "DeepSpeedCPUAdam"
    if a.lora:
        import peft
        versions["peft"] = peft.__version__

    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    rss0, hwm_init = vm("VmRSS"), vm("VmHWM")
    try:
        open("/proc/self/clear_refs", "w").write("5")        # start VmHWM again: the peak is that of training
    except OSError:
        pass

    losses, times = [], []

    def step(s, probe=None):
        total = 0.0
        for m in range(a.accum):
            ids = tokens(s, m, rank, world, vocab)
            last = m == a.accum - 1
            ctx = contextlib.nullcontext
            if a.engine in ("ddp", "zro") and not last:
                ctx = net.no_sync
            if a.engine == "fsdp2":
                net.set_requires_gradient_sync(last)
            with ctx():
                with autocast():
                    loss = net(input_ids=ids, labels=ids).loss
                if ds is not None:
                    ds.backward(loss)
                    if not last:
                        ds.step()
                else:
                    (loss / a.accum).backward()
            total += loss.item() / a.accum
        if probe:
            probe()
        if ds is not None:
            ds.step()
        else:
            opt.step()
            opt.zero_grad(set_to_none=True)
        return total

    dist.barrier()
    for s in range(a.steps):
        t0 = time.perf_counter()
        losses.append(step(s))
        times.append(time.perf_counter() - t0)
    hwm = vm("VmHWM")
    found = {}
    if a.steps > 1:        # one more, untimed: what is held between backward and optimizer step
        def probe():
            gc.collect()
            found["state"] = state_bytes(list(model.parameters()), opt, ds)
            found["live"] = live_bytes()
        step(a.steps, probe)

    mine = {"rss_before_train": rss0, "vmhwm_init": hwm_init, "vmhwm_train": hwm, "rss_end": vm("VmRSS"), "pss_end": pss(),
            "state_bytes": found.get("state"), "live_tensor_bytes": found.get("live"), "losses": losses}
    got = [None] * world
    dist.all_gather_object(got, mine)
    if rank == 0:
        timed = times[a.warmup:] or times[-1:]
        med = statistics.median(timed)
        r = {"kind": "train", "tag": a.tag, "engine": a.engine, "model": a.model, "params": n_all, "trainable": n_train,
             "dtype": a.dtype, "matmul": a.matmul, "bucket": a.bucket, "lora": a.lora, "world": world, "omp": torch.get_num_threads(), "seq": a.seq, "batch": a.batch,
             "accum": a.accum, "steps": a.steps, "optimizer": opt_name,
             "losses": [sum(g["losses"][i] for g in got) / world for i in range(a.steps)],
             "step_s": [round(t, 4) for t in times], "median_step_s": med, "min_step_s": min(timed), "max_step_s": max(timed),
             "tokens_per_s": a.seq * a.batch * a.accum * world / med,
             "per_rank": [{k: v for k, v in g.items() if k != "losses"} for g in got], "versions": versions}
        line = json.dumps(r)
        print(line, flush=True)
        if a.out:
            with open(a.out, "a") as f:
                f.write(line + "\n")
    dist.barrier()
    sys.stdout.flush()
    dist.destroy_process_group()


main()
