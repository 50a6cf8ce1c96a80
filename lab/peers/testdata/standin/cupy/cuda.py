"""The stand-in's pool, streams and errors."""


class memory:
    class OutOfMemoryError(MemoryError):
        pass


class runtime:
    @staticmethod
    def free(_address):
        pass


class Stream:
    def __init__(self, non_blocking=False):
        self.non_blocking = non_blocking

    def use(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class _Memory:
    def __init__(self, pool, size):
        self.pool, self.size = pool, size

    def __del__(self):
        self.pool.live_bytes -= self.size


class MemoryPool:
    def __init__(self):
        self.live_bytes = self.peak_bytes = 0
        self.most_bytes = 16 << 30

    def malloc(self, size):
        if self.live_bytes + size > self.most_bytes:
            raise memory.OutOfMemoryError(size)
        self.live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        return _Memory(self, size)

    def set_limit(self, size):
        self.most_bytes = size

    def total_bytes(self):
        return self.peak_bytes

    def free_all_blocks(self):
        self.peak_bytes = self.live_bytes
