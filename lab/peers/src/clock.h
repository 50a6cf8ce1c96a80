// The clock, and what is made of its readings.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace peers {

inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Keeps the processor busy: what a caller does between two requests.
inline void work(int64_t wanted_ns) {
  for (int64_t start = now_ns(); now_ns() - start < wanted_ns;) {
  }
}

// Sorts values and picks; the middle of an even count is the mean of two.
inline double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  size_t last = values.size() - 1;
  if (q == 0.5) return (values[last / 2] + values[values.size() / 2]) / 2;
  return values[std::min(last, static_cast<size_t>(q * static_cast<double>(values.size())))];
}

// What two readings of the clock side by side show.
inline double timer_cost() {
  std::vector<double> nanos(20001);
  for (double& n : nanos) {
    int64_t start = now_ns();
    n = static_cast<double>(now_ns() - start);
  }
  return quantile(nanos, 0.5);
}

}  // namespace peers
