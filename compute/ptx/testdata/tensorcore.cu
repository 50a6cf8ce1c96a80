// Inline assembly: matrix instructions, asynchronous copies, packed arithmetic.
#define KERNEL extern "C" __attribute__((global)) void
#define SHARED __attribute__((shared))

KERNEL tensorcore(const unsigned *a, const unsigned *b, float *c) {
  SHARED __attribute__((aligned(16))) unsigned tile[512];
  int t = __nvvm_read_ptx_sreg_tid_x();
  unsigned address = (unsigned)(unsigned long long)(__attribute__((address_space(3))) unsigned *)tile + t * 16;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(a + t * 4));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, 4;" ::"r"(address + 4096), "l"(b + t));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  unsigned a0, a1, a2, a3, b0, b1;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(address));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(address));
  float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(c0), "f"(c1));
  asm("{ .reg .pred p; setp.ne.b32 p, %1, 0; selp.b32 %0, %0, 7, p; }" : "+r"(packed) : "r"(b0));
  asm("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(packed) : "r"(a0), "r"(a1));
  unsigned least;
  asm("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(least) : "r"(packed));
  c[t * 4] = c0; c[t * 4 + 1] = c1; c[t * 4 + 2] = c2; c[t * 4 + 3] = c3 + least;
}
