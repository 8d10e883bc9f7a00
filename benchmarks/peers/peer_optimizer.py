"""Fused AdamW of PyTorch, and DeepSpeedCPUAdam where it is installed, beside zero_bench optimizer.

usage: peer_optimizer.py [--elements N] [--threads 1,2] [--repeats 7]
Prints JSON lines with the fields of zero_bench optimizer --json.
"""
import argparse
import json
import statistics
import time

import torch


def median_seconds(run, repeats):
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def report(what, threads, elements, seconds):
    speed = elements / seconds
    print(json.dumps({"version": 1, "benchmark": "optimizer", "what": what, "threads": threads, "elements": elements,
                      "elements_per_second": speed, "bytes_per_element": 28, "bytes_per_second": 28 * speed}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=100_000_000)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    makers = {"torch.optim.AdamW fused": lambda p: torch.optim.AdamW(p, lr=1e-5, fused=True)}
    try:
        from deepspeed.ops.adam import DeepSpeedCPUAdam
        makers["DeepSpeedCPUAdam"] = lambda p: DeepSpeedCPUAdam(p, lr=1e-5, adamw_mode=True)
    except ImportError:
        pass
    for threads in (int(t) for t in options.threads.split(",")):
        torch.set_num_threads(threads)
        for what, make in makers.items():
            weights = torch.nn.Parameter(torch.full((options.elements,), 0.5))
            weights.grad = torch.full_like(weights, 1e-3)
            optimizer = make([weights])
            report(what, threads, options.elements, median_seconds(optimizer.step, options.repeats))


if __name__ == "__main__":
    main()
