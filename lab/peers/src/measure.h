// How a load is measured: settled, repeated, sampled, and printed as a row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "clock.h"

namespace peers {

struct Options {
  std::string impl;
  std::string scenario = "all";
  int repetitions = 5;
  int64_t repetition_ns = 20'000'000;
  int samples = 20'000;
};

struct Repetition {
  int64_t pairs;
  int64_t elapsed_ns;
};

// A prepared piece of work that can be repeated.
struct Load {
  // Does about count pairs, or fewer where it says so.
  std::function<Repetition(int64_t count)> run;
  // Adds times of single pairs until there are `most` or `until_ns` has come.
  std::function<void(std::vector<double>& nanos, size_t most, int64_t until_ns)> sample;
  int64_t sample_pairs = 1;  // how many pairs a time of sample stands for
};

struct Row {
  std::string scenario, impl;
  int64_t size_bytes = 0;
  int64_t count = 1;
  int threads = 1;
};

class Meter {
 public:
  explicit Meter(const Options& options) : options_(options), timer_ns_(timer_cost()) {}

  double timer_ns() const { return timer_ns_; }

  // Measures and prints a line of JSON at once, so that what ends early has told what it knew.
  void measure(const Row& row, const Load& load) {
    int64_t count = settle(load);
    std::vector<double> per_pair;
    for (int i = 0; i < options_.repetitions; i++) {
      Repetition r = load.run(count);
      per_pair.push_back(static_cast<double>(r.elapsed_ns) / static_cast<double>(r.pairs));
    }
    std::vector<double> nanos;
    // No longer than ten repetitions: slow calls need no more samples than that.
    load.sample(nanos, static_cast<size_t>(options_.samples), now_ns() + 10 * options_.repetition_ns);
    for (double& n : nanos) n = std::max(0.0, n - timer_ns_) / static_cast<double>(load.sample_pairs);
    std::printf(
        "{\"scenario\":\"%s\",\"impl\":\"%s\",\"size_bytes\":%lld,\"n\":%lld,\"goroutines\":%d,"
        "\"ns_per_op\":%.3f,\"p50_ns\":%.3f,\"p99_ns\":%.3f,\"p999_ns\":%.3f}\n",
        row.scenario.c_str(), row.impl.c_str(), static_cast<long long>(row.size_bytes),
        static_cast<long long>(row.count), row.threads, quantile(per_pair, 0.5), quantile(nanos, 0.5),
        quantile(nanos, 0.99), quantile(nanos, 0.999));
    std::fflush(stdout);
  }

 private:
  // Runs the load until a run takes a noticeable part of a repetition: that warms it up and says how
  // many pairs a repetition has. The fastest of several runs counts.
  int64_t settle(const Load& load) {
    const int64_t first_pairs = 256;  // a pair of the slowest calls takes a tenth of a millisecond
    const int64_t enough_ns = options_.repetition_ns / 8;
    for (int64_t count = first_pairs;; count *= 4) {
      Repetition fastest = load.run(count);
      for (int i = 1; i < 4 && fastest.elapsed_ns >= enough_ns; i++) {
        Repetition r = load.run(count);
        if (r.elapsed_ns < fastest.elapsed_ns) fastest = r;
      }
      if (fastest.elapsed_ns >= enough_ns || fastest.pairs < count) {
        double per_pair = std::max(1.0, static_cast<double>(fastest.elapsed_ns) / static_cast<double>(fastest.pairs));
        return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(options_.repetition_ns) / per_pair));
      }
    }
  }

  Options options_;
  double timer_ns_;
};

}  // namespace peers
