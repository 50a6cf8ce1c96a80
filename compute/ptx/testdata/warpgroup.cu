// A product in TF32 by two warpgroups of 64 rows each: copies of two stages, matrices with a swizzle of 128 bytes, wgmma.
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE static __attribute__((device)) inline

// A row of 32 numbers is 128 bytes; 8 rows are a pattern of 1024 bytes, whose 16-byte parts are exchanged by the row.
DEVICE unsigned swizzled(unsigned row, unsigned part) { return row * 128 + ((part ^ (row & 7)) * 16); }

DEVICE unsigned long long descriptor(unsigned address) {
  return (unsigned long long)(address >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

DEVICE void copy(unsigned to, const float *from, int rows, int stride, int thread) {
  for (int n = thread; n < rows * 8; n += 256)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + swizzled(n / 8, n % 8)), "l"(from + n / 8 * stride + n % 8 * 4) : "memory");
}

// c[128][64] = a[128][depth] * b[64][depth], depth a multiple of 32.
KERNEL warpgroup(const float *a, const float *b, float *c, int depth) {
  extern __attribute__((shared)) __attribute__((aligned(1024))) float tile[];
  unsigned base = (unsigned)(unsigned long long)(__attribute__((address_space(3))) float *)tile;
  const unsigned stageBytes = (128 + 64) * 128;
  int t = __nvvm_read_ptx_sreg_tid_x();
  float d[32] = {};
  copy(base, a, 128, depth, t);
  copy(base + 128 * 128, b, 64, depth, t);
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int k = 0; k < depth; k += 32) {
    unsigned stage = base + (k / 32 & 1) * stageBytes, next = base + ((k / 32 + 1) & 1) * stageBytes;
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    unsigned long long left = descriptor(stage + t / 128 * 64 * 128), right = descriptor(stage + 128 * 128);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int j = 0; j < 4; j++)
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                   "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 "
                   "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                   "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1;\n}"
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
                     "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),
                     "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]),
                     "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                   : "l"(left + 2 * j), "l"(right + 2 * j), "r"(k + j));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (k + 32 < depth) {
      copy(next, a + k + 32, 128, depth, t);
      copy(next + 128 * 128, b + k + 32, 64, depth, t);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
#pragma unroll
  for (int n = 0; n < 32; n++)
    c[(t / 32 * 16 + t % 32 / 4 + n % 4 / 2 * 8) * 64 + n / 4 * 8 + t % 4 * 2 + n % 2] = d[n];
}
