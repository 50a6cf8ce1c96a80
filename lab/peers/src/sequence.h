// The sizes and victims of the scenario varied: the very ones that vram bench draws, from the same
// generator (PCG with DXSM output, as in Go's math/rand/v2) and the same seed.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace peers {

class Pcg {
 public:
  Pcg(uint64_t seed1, uint64_t seed2) : hi_(seed1), lo_(seed2) {}

  uint64_t next() {
    using wide = unsigned __int128;
    const wide mul = (static_cast<wide>(2549297995355413924ull) << 64) | 4865540595714422341ull;
    const wide inc = (static_cast<wide>(6364136223846793005ull) << 64) | 1442695040888963407ull;
    wide state = ((static_cast<wide>(hi_) << 64) | lo_) * mul + inc;
    hi_ = static_cast<uint64_t>(state >> 64);
    lo_ = static_cast<uint64_t>(state);
    const uint64_t cheap = 0xda942042e4dd58b5ull;
    uint64_t hi = hi_;
    hi ^= hi >> 32;
    hi *= cheap;
    hi ^= hi >> 48;
    hi *= lo_ | 1;
    return hi;
  }

  double uniform() { return static_cast<double>(next() << 11 >> 11) / 9007199254740992.0; }

  // Below n, each as likely as the others.
  uint64_t below(uint64_t n) {
    if ((n & (n - 1)) == 0) return next() & (n - 1);
    unsigned __int128 product = static_cast<unsigned __int128>(next()) * n;
    if (static_cast<uint64_t>(product) < n) {
      uint64_t least = -n % n;
      while (static_cast<uint64_t>(product) < least) product = static_cast<unsigned __int128>(next()) * n;
    }
    return static_cast<uint64_t>(product >> 64);
  }

 private:
  uint64_t hi_, lo_;
};

struct Step {
  int64_t bytes;
  uint16_t victim;
};

// A series that is longer than any allocator remembers.
class Sequence {
 public:
  explicit Sequence(int live) : steps_(size_t{1} << 20) {
    const double low = std::log(64.0 * 1024), high = std::log(64.0 * 1024 * 1024);
    Pcg random(1, static_cast<uint64_t>(live));
    for (Step& s : steps_) {
      s.bytes = static_cast<int64_t>(std::exp(low + random.uniform() * (high - low)));
      s.victim = static_cast<uint16_t>(random.below(static_cast<uint64_t>(live)));
    }
  }

  const Step& next() { return steps_[at_++ & (steps_.size() - 1)]; }

 private:
  std::vector<Step> steps_;
  size_t at_ = 0;
};

}  // namespace peers
