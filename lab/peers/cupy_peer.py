"""CuPy's memory pool in the scenarios and traces of the other peers, with Python in the loop.

  cupy_peer.py bench  [--scenario NAME] [--repetitions N] [--time-ms N] [--samples N]
  cupy_peer.py replay [--rounds N] [--work-us N] [--limit TIMES] [--deadline-s N] FILE.csv

Results are lines of JSON on the standard output, as the other peers print them.
"""

import argparse
import json
import math
import os
import random
import sys
from time import perf_counter_ns as now_ns

import cupy

KIB, MIB = 1 << 10, 1 << 20
SMALL_BYTES = 4 * KIB
BETWEEN_NS = 5_000


def quantile(values, q):
    values.sort()
    if not values:
        return 0.0
    last = len(values) - 1
    if q == 0.5:
        return (values[last // 2] + values[len(values) // 2]) / 2
    return values[min(last, int(q * len(values)))]


def timer_cost():
    nanos = []
    for _ in range(20_001):
        start = now_ns()
        nanos.append(now_ns() - start)
    return quantile(nanos, 0.5)


def work(wanted_ns):
    start = now_ns()
    while now_ns() - start < wanted_ns:
        pass


class Meter:
    """Settles, repeats, samples and prints."""

    def __init__(self, options):
        self.options = options
        self.timer_ns = timer_cost()
        self.repetition_ns = options.time_ms * 1_000_000

    def measure(self, row, run, sample, sample_pairs=1):
        """run(count) answers with pairs and nanoseconds; sample(most, until_ns) with times."""
        count = 64
        while True:
            pairs, elapsed_ns = run(count)
            if elapsed_ns >= self.repetition_ns / 8 or pairs < count:
                break
            count *= 4
        count = max(1, int(self.repetition_ns / max(elapsed_ns / pairs, 1.0)))
        per_pair = []
        for _ in range(self.options.repetitions):
            pairs, elapsed_ns = run(count)
            per_pair.append(elapsed_ns / pairs)
        nanos = sample(self.options.samples, now_ns() + 10 * self.repetition_ns)
        nanos = [max(0.0, n - self.timer_ns) / sample_pairs for n in nanos]
        scenario, impl, size_bytes, n = row
        result = {"scenario": scenario, "impl": impl, "size_bytes": size_bytes, "n": n, "goroutines": 1}
        result["ns_per_op"] = quantile(per_pair, 0.5)
        for name, q in (("p50_ns", 0.5), ("p99_ns", 0.99), ("p999_ns", 0.999)):
            result[name] = quantile(nanos, q)
        print(json.dumps(result), flush=True)


def timed(call, most, until_ns):
    nanos = []
    while len(nanos) < most and now_ns() < until_ns:
        start = now_ns()
        call()
        nanos.append(now_ns() - start)
    return nanos


def repeated(call, pairs_of_call=1):
    """A run that calls until count pairs are done."""

    def run(count):
        times = -(-count // pairs_of_call)
        start = now_ns()
        for _ in range(times):
            call()
        return times * pairs_of_call, now_ns() - start

    return run


def bench_pair(meter, malloc, _pool):
    for size in (512, 4 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 128 * MIB):

        def run(count, size=size):
            start = now_ns()
            for _ in range(count):
                p = malloc(size)
                del p
            return count, now_ns() - start

        def one(size=size):
            p = malloc(size)
            del p

        meter.measure(("pair", "cupy", size, 1), run, lambda most, until, one=one: timed(one, most, until))


def bench_lifo(meter, malloc, _pool):
    depth = 1000

    def once():
        live = [malloc(SMALL_BYTES) for _ in range(depth)]
        while live:
            live.pop()

    def sample(most, until_ns):
        nanos = []
        while len(nanos) < most and now_ns() < until_ns:
            live, times = [], []
            for _ in range(depth):
                start = now_ns()
                p = malloc(SMALL_BYTES)
                times.append(now_ns() - start)
                live.append(p)
            del p
            for i in reversed(range(depth)):
                start = now_ns()
                live.pop()
                times[i] += now_ns() - start
            nanos += times
        return nanos

    meter.measure(("lifo", "cupy", SMALL_BYTES, depth), repeated(once, depth), sample)


def bench_varied(meter, malloc, _pool):
    count = 500
    rng = random.Random(1)
    low, high = math.log(64 * KIB), math.log(64 * MIB)
    steps = [(int(math.exp(rng.uniform(low, high))), rng.randrange(count)) for _ in range(1 << 16)]
    live = [malloc(steps[i][0]) for i in range(count)]
    at = count

    def churn():
        nonlocal at
        size, victim = steps[at & 0xFFFF]
        at += 1
        live[victim] = None
        live[victim] = malloc(size)

    meter.measure(("varied", "cupy", 0, count), repeated(churn), lambda most, until: timed(churn, most, until))


def bench_batch(meter, malloc, _pool):
    mixed = [3 * KIB, 4 * KIB, 12 * KIB, 48 * KIB, 64 * KIB, 768 * KIB, 2304 * KIB, 3 * MIB]
    for count in (64, 1000):
        for sizes in ([SMALL_BYTES], mixed):
            bytes_of = [sizes[i % len(sizes)] for i in range(count)]

            def once(bytes_of=bytes_of):
                live = [malloc(n) for n in bytes_of]
                del live

            def sample(most, until_ns, bytes_of=bytes_of):
                nanos = []
                while len(nanos) < most and now_ns() < until_ns:
                    start = now_ns()
                    live = [malloc(n) for n in bytes_of]
                    nanos.append(now_ns() - start)
                    del live
                return nanos

            size = sizes[0] if len(sizes) == 1 else 0
            meter.measure(("batch", "cupy", size, count), repeated(once, count), sample, count)


def bench_paced(meter, malloc, _pool):
    def requests(count):
        nanos = []
        for _ in range(count):
            work(BETWEEN_NS)
            start = now_ns()
            p = malloc(SMALL_BYTES)
            nanos.append(now_ns() - start)
            work(BETWEEN_NS)
            start = now_ns()
            del p
            nanos.append(now_ns() - start)
        return nanos

    def run(count):
        count = min(count, 1000)
        return count, sum(max(0.0, n - meter.timer_ns) for n in requests(count))

    def sample(most, until_ns):
        nanos = []
        while len(nanos) < most and now_ns() < until_ns:
            nanos += requests(1)
        return nanos

    meter.measure(("paced", "cupy", SMALL_BYTES, 1), run, sample)


def bench_warmup(meter, malloc, pool):
    count, size = 100, 16 * MIB
    for warm in (False, True):

        def first(nanos=None, warm=warm):
            if warm:
                live = [malloc(size) for _ in range(count)]
                live.clear()
            live = []
            begin = now_ns()
            for _ in range(count):
                start = now_ns()
                live.append(malloc(size))
                if nanos is not None:
                    nanos.append(now_ns() - start)
            elapsed_ns = now_ns() - begin
            live.clear()
            pool.free_all_blocks()
            return count, elapsed_ns

        def sample(most, until_ns, first=first):
            nanos = []
            while len(nanos) < most and now_ns() < until_ns:
                first(nanos)
            return nanos

        meter.measure(
            ("warmup", "cupy" if warm else "cupy-cold", size, count), lambda _count, first=first: first(), sample
        )


SCENARIOS = {
    "pair": bench_pair,
    "lifo": bench_lifo,
    "varied": bench_varied,
    "batch": bench_batch,
    "paced": bench_paced,
    "warmup": bench_warmup,
}


def bench(options):
    chosen = SCENARIOS if options.scenario == "all" else {options.scenario: SCENARIOS.get(options.scenario)}
    if None in chosen.values():
        sys.exit(f"cupy: no scenario {options.scenario}: want all or one of {', '.join(SCENARIOS)}")
    pool = cupy.cuda.MemoryPool()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        meter = Meter(options)
        for measure in chosen.values():
            measure(meter, pool.malloc, pool)
            pool.free_all_blocks()


def read_trace(path):
    """Events as (is an allocation, id, bytes, stream of the buffer), and the most bytes live at once."""
    events, owner = [], {}
    live_bytes = peak_bytes = 0
    with open(path, encoding="ascii") as lines:
        if next(lines).strip() != "t_us,op,id,size,stream":
            sys.exit(f"cupy: {path}: not the header of a trace")
        for line in lines:
            _, op, i, size, stream = line.split(",")
            i, size = int(i), int(size)
            if op == "a":
                owner[i] = int(stream)
                live_bytes += size
                peak_bytes = max(peak_bytes, live_bytes)
            else:
                live_bytes -= size
            events.append((op == "a", i, size, owner[i]))
    return events, len(owner), max(owner.values()) + 1, peak_bytes


class Player:
    """Plays a trace on one pool."""

    def __init__(self, events, buffer_count, stream_count, until_ns):
        self.events = events
        self.buffers = [None] * buffer_count
        self.pool = cupy.cuda.MemoryPool()
        self.streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(stream_count)]
        self.until_ns = until_ns
        self.cut_short = False
        self.streams[0].use()

    def round(self):
        """Events done, nanoseconds, allocations that found no memory."""
        buffers, malloc, streams = self.buffers, self.pool.malloc, self.streams
        many, last_stream = len(streams) > 1, 0
        done = failed = 0
        start = now_ns()
        for is_alloc, i, size, stream in self.events:
            if is_alloc:
                if many and stream != last_stream:
                    streams[stream].use()
                    last_stream = stream
                try:
                    buffers[i] = malloc(size)
                except cupy.cuda.memory.OutOfMemoryError:
                    failed += 1
                    if now_ns() > self.until_ns:
                        self.cut_short = True
            else:
                buffers[i] = None
            done += 1
            if self.cut_short or (done & 0xFFF == 0 and now_ns() > self.until_ns):
                self.cut_short = True
                break
        elapsed_ns = now_ns() - start
        if many:
            streams[0].use()
        held_bytes = self.pool.total_bytes()
        self.free_all()
        return done, elapsed_ns, failed, held_bytes

    def free_all(self):
        for i in range(len(self.buffers)):
            self.buffers[i] = None

    def paced(self, between_ns):
        timer_ns = timer_cost()
        buffers, malloc, streams, nanos = self.buffers, self.pool.malloc, self.streams, []
        for is_alloc, i, size, stream in self.events:
            work(between_ns)
            start = now_ns()
            if is_alloc:
                if len(streams) > 1:
                    streams[stream].use()
                try:
                    buffers[i] = malloc(size)
                except cupy.cuda.memory.OutOfMemoryError:
                    pass
            else:
                buffers[i] = None
            end = now_ns()
            nanos.append(max(0.0, end - start - timer_ns))
            if end > self.until_ns:
                self.cut_short = True
                break
        self.free_all()
        return {"gap_ns": between_ns, "p50_ns": quantile(nanos, 0.5), "p99_ns": quantile(nanos, 0.99),
                "p999_ns": quantile(nanos, 0.999)}


def replay(options):
    events, buffer_count, stream_count, peak_bytes = read_trace(options.file)
    cupy.cuda.runtime.free(0)  # the context is there before the clock runs
    until_ns = now_ns() + int(options.deadline_s * 1e9) if options.deadline_s else math.inf
    player = Player(events, buffer_count, stream_count, until_ns)
    if options.limit:
        player.pool.set_limit(size=int(options.limit * peak_bytes))
    rounds = []
    while len(rounds) < options.rounds and not player.cut_short:
        done, elapsed_ns, failed, held_bytes = player.round()
        rounds.append({"ns_per_op": elapsed_ns / done, "peak_reserved_bytes": held_bytes, "failed": failed,
                       "events": done})
    held_bytes = max(r["peak_reserved_bytes"] for r in rounds)
    result = {
        "trace": os.path.basename(options.file).removesuffix(".csv"), "driver": "cupy", "events": len(events),
        "streams": stream_count, "peak_live_bytes": peak_bytes, "peak_reserved_bytes": held_bytes,
        "reserved_over_live": held_bytes / peak_bytes, "rounds": rounds,
    }
    warm = [r["ns_per_op"] for r in rounds[1:] if r["events"] == len(events)]
    if warm:
        result["warm_ns_per_op"] = quantile(warm, 0.5)
    if options.work_us and not player.cut_short:
        paced = player.paced(int(options.work_us * 1000))
        if not player.cut_short:
            result.update(paced)
    result["cut_short"] = player.cut_short
    print(json.dumps(result), flush=True)


def main():
    parser = argparse.ArgumentParser(description="CuPy's memory pool, measured as the other peers are.")
    commands = parser.add_subparsers(dest="command", required=True)
    bench_flags = commands.add_parser("bench")
    bench_flags.add_argument("--scenario", default="all")
    bench_flags.add_argument("--repetitions", type=int, default=5)
    bench_flags.add_argument("--time-ms", type=int, default=20)
    bench_flags.add_argument("--samples", type=int, default=20_000)
    replay_flags = commands.add_parser("replay")
    replay_flags.add_argument("--rounds", type=int, default=5)
    replay_flags.add_argument("--work-us", type=float, default=0)
    replay_flags.add_argument("--limit", type=float, default=0)
    replay_flags.add_argument("--deadline-s", type=float, default=0)
    replay_flags.add_argument("file")
    options = parser.parse_args()
    if options.command == "bench":
        bench(options)
    else:
        replay(options)


if __name__ == "__main__":
    main()
