// Kernels with shared memory, barriers, shuffles, votes and atomics.
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))

extern SHARED float dynamic[];

KERNEL sum(const float *in, float *out, int n) {
  SHARED float partial[32];
  int t = __nvvm_read_ptx_sreg_tid_x(), lane = t & 31, warp = t >> 5;
  float v = 0;
  for (int i = t; i < n; i += __nvvm_read_ptx_sreg_ntid_x()) v += in[i];
  for (int d = 16; d > 0; d >>= 1) v += __nvvm_shfl_sync_down_f32(0xffffffff, v, d, 31);
  if (lane == 0) partial[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = lane < (__nvvm_read_ptx_sreg_ntid_x() + 31) / 32 ? partial[lane] : 0;
    for (int d = 16; d > 0; d >>= 1) v += __nvvm_shfl_sync_bfly_f32(0xffffffff, v, d, 31);
    if (lane == 0) __nvvm_atom_add_gen_f(out, v);
  }
}

KERNEL reverse(int *data, int n) {
  SHARED int tile[256];
  int t = __nvvm_read_ptx_sreg_tid_x();
  if (t < n) tile[t] = data[t];
  __syncthreads();
  if (t < n) data[t] = tile[n - 1 - t];
}

KERNEL scan(float *data, int n) {
  int t = __nvvm_read_ptx_sreg_tid_x();
  dynamic[t] = t < n ? data[t] : 0;
  for (int d = 1; d < n; d *= 2) {
    __syncthreads();
    float other = t >= d ? dynamic[t - d] : 0;
    __syncthreads();
    dynamic[t] += other;
  }
  if (t < n) data[t] = dynamic[t];
}

KERNEL count(const int *in, unsigned *out, int n) {
  int t = __nvvm_read_ptx_sreg_tid_x();
  unsigned mask = __nvvm_vote_ballot_sync(0xffffffff, t < n && in[t] > 0);
  if ((t & 31) == 0) __atomic_fetch_add(out, (unsigned)__builtin_popcount(mask), __ATOMIC_RELAXED);
  unsigned expected = 0;
  __atomic_compare_exchange_n(out + 1, &expected, mask, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
